package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// Handler answers a request or says why not.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Router is a ServeMux whose every answer is JSON and readable from any web
// page: an unknown path, a wrong method, a failure and a crash included. Paths
// are matched as they were escaped, so that a token may hold a slash.
type Router struct {
	mux *http.ServeMux
	log *slog.Logger
	// NotFound is the message for a path that does not exist.
	NotFound string
}

// NewRouter makes a Router without routes.
func NewRouter(log *slog.Logger) *Router {
	return &Router{mux: http.NewServeMux(), log: log, NotFound: "Path not supported by this API: functions/README.md lists its routes"}
}

// Handle adds a route, with a pattern as http.ServeMux has them.
func (rt *Router) Handle(pattern string, h Handler) {
	rt.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			WriteError(rt.log, w, r, err)
		}
	})
}

// ServeHTTP routes a request, and answers in JSON where no route takes it.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	AllowOrigin(w.Header())
	r = r.WithContext(telemetry.WithTrace(r.Context(), r.Header))
	defer func() {
		if cause := recover(); cause != nil {
			WriteError(rt.log, w, r, fmt.Errorf("crash: %v\n%s", cause, debug.Stack()))
		}
	}()
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if handler, pattern := rt.mux.Handler(r); pattern == "" {
		rt.refuse(handler, w, r)
		return
	}
	rt.mux.ServeHTTP(w, r)
}

// refuse turns the mux's own answer, plain text, into the JSON one.
func (rt *Router) refuse(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	plain := answer{header: http.Header{}}
	handler.ServeHTTP(&plain, r)
	if plain.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", plain.header.Get("Allow"))
		WriteError(rt.log, w, r, Errorf(http.StatusMethodNotAllowed, "Method Not Allowed"))
		return
	}
	WriteError(rt.log, w, r, Errorf(http.StatusNotFound, "%s", rt.NotFound))
}

// answer keeps the status and the header of an answer that is not sent.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.status = code }
func (a *answer) Write(b []byte) (int, error) { return len(b), nil }

// AllowOrigin lets web pages of any origin call and read the answer: keys, not
// cookies, say who calls.
func AllowOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "content-type, x-algolia-application-id, x-algolia-api-key, x-algolia-agent, "+
		"x-algolia-usertoken, request-id, accept, content-encoding, authorization")
	h.Set("Access-Control-Max-Age", "86400")
}
