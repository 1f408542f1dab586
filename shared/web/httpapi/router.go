package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// Handler answers a request, or returns why it cannot.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Router is a ServeMux whose every answer is JSON and readable from any web page,
// including those to an unknown path, a wrong method, a failure and a panic, unless its
// fields say otherwise. It matches paths as they were escaped, so that a token may hold
// a slash.
type Router struct {
	mux    *http.ServeMux
	log    *slog.Logger
	denied *denials
	kinds  map[string]limit.Kind // by pattern, if they are not reads
	pages  map[string]bool       // by pattern, if AllowCredentials has it
	// Gate holds the bytes of requests until they are answered. It is the process's
	// unless a test sets another.
	Gate *admission.Gate
	// Wait is how long a request waits for its first bytes of the gate. 0: a second,
	// because a client waits for the answer.
	Wait time.Duration
	// Life is when a request has an answer at the latest. Shortly before, the request may no
	// longer use Bigtable, neither itself nor by what it leaves behind. 0: as long as package
	// deadline permits.
	Life time.Duration
	// Limits counts what apps ask for. It may be nil.
	Limits *limit.Limiter
	// NotFound is the message for a path that does not exist.
	NotFound string
	// Hint returns what a client that no route serves may have looked for, or "". The
	// message of the answer ends with it. It may be nil.
	Hint func(*http.Request) string
	// Transient reports whether an error that Status does not know may be gone at
	// the next attempt. It may be nil.
	Transient func(error) bool
	// OwnOrigin keeps the pages of other origins from reading the answers, which are for
	// people with a cookie.
	OwnOrigin bool
	// Refuse answers a request that fails in another form than JSON, such as a page. It may
	// be nil.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, message string)
}

// UnknownPath is the message for a path that does not exist, if the Router has no
// other.
const UnknownPath = "Path not supported by this API: GET /docs lists its routes"

// NewRouter returns a Router without routes.
func NewRouter(log *slog.Logger) *Router {
	return &Router{mux: http.NewServeMux(), log: log, denied: newDenials(log), kinds: map[string]limit.Kind{},
		pages: map[string]bool{}, Gate: admission.Process(), NotFound: UnknownPath}
}

// Handle adds a route, with a pattern of http.ServeMux. Its requests count as reads,
// see Count.
func (rt *Router) Handle(pattern string, h Handler) {
	rt.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if rt.Limits != nil {
			kind, given := rt.kinds[pattern]
			if !given {
				kind = limit.Reads
			}
			r = r.WithContext(rt.Limits.Begin(r.Context(), kind, func(s limit.State) { WriteLimit(w.Header(), s) }))
		}
		if err := h(w, r); err != nil {
			if code, _ := Status(err); code < http.StatusInternalServerError {
				limit.GiveBack(r.Context())
			}
			rt.fail(w, r, err)
		}
	})
}

// Count says as what the requests of routes count against the limits of the app that
// they authenticate as.
func (rt *Router) Count(k limit.Kind, patterns ...string) {
	for _, pattern := range patterns {
		rt.kinds[pattern] = k
	}
}

// ServeHTTP routes a request, and answers in JSON if no route takes it. It is the
// one place where the telemetry of a request begins and ends, for all functions:
// it has a span, log lines carry its trace, and a panic or a failure is logged. It is
// also where a request enters the process's gate and leaves it, and where its time begins.
//
// The context of the handler ends some time before Life is over. A handler that has not
// returned when it is over has ignored that: the client gets a 503, or the connection
// ends if the handler has begun to answer. Nothing can stop the handler. ServeHTTP returns
// when it does. It keeps what it has of the gate until then, so that its memory is counted.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, w, span := telemetry.StartRequest(telemetry.WithTrace(r.Context(), r.Header), w, r)
	life := cmp.Or(rt.Life, deadline.Longest)
	ctx, over := deadline.Begin(ctx, life-grace(life))
	ctx, leave := rt.Gate.EnterFor(ctx, cmp.Or(rt.Wait, time.Second))
	asked := r
	r = r.WithContext(ctx)
	if r.ContentLength != 0 {
		// For a body that no handler reads: the server reads the rest of it before it
		// sends the answer.
		setReadDeadline(w, time.Now().Add(BodyTime))
	}
	a := rt.newAnswer(w)
	end, _ := deadline.End(ctx)
	// The handler runs in the goroutine of its connection: to start another one wakes a second
	// processor, which takes longer than a small answer.
	a.watch(time.Until(end)+grace(life), func() { rt.answerLate(w, asked.WithContext(ctx), a, span) })
	rt.serve(a, r)
	defer over()
	defer leave()
	if a.finish() {
		return
	}
	if span != nil {
		defer func() { span.End(route(r)) }()
	}
	a.send(ctx)
	if a.cut {
		a.abort()
	}
}

// grace is how long before the end of a request its handler learns of it.
func grace(life time.Duration) time.Duration { return min(time.Second, life/10) }

// newAnswer returns an answer with the headers that all have.
func (rt *Router) newAnswer(w http.ResponseWriter) *answer {
	a := newAnswer(w)
	if !rt.OwnOrigin {
		allowOrigin(a.header)
	}
	forbidStoring(a.header)
	return a
}

// serve routes a request. It returns when the handler does.
func (rt *Router) serve(a *answer, r *http.Request) {
	defer func() {
		if cause := recover(); cause != nil {
			rt.fail(a, r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	if r.Method == http.MethodOptions && !rt.OwnOrigin {
		rt.preflight(a.header, r)
		a.WriteHeader(http.StatusNoContent)
		return
	}
	handler, pattern := rt.mux.Handler(r)
	if pattern == "" {
		rt.refuse(handler, a, r)
		return
	}
	rt.allowPage(a.header, r, pattern)
	rt.mux.ServeHTTP(a, r)
}

// errLate says that a handler goes on after the end of its request.
var errLate = fmt.Errorf("the handler has not returned, and goes on without a client: %w", context.DeadlineExceeded)

// answerLate answers a request whose handler still runs. The connection takes no other request,
// because its goroutine is that of the handler.
func (rt *Router) answerLate(w http.ResponseWriter, r *http.Request, a *answer, span *telemetry.Request) {
	_, r.Pattern = rt.mux.Handler(r) // the handler's own copy of the request may change
	if span != nil {
		defer func() { span.End(route(r)) }()
	}
	late := rt.newAnswer(w)
	rt.allowPage(late.header, r, r.Pattern)
	rt.fail(late, r, errLate)
	if a.cut {
		a.close()
		return
	}
	late.header.Set("Connection", "close")
	late.header.Set("Content-Length", strconv.Itoa(len(late.held)))
	late.send(admission.Exempt(r.Context()))
	_ = http.NewResponseController(w).Flush()
}

// fail answers with {"status":N,"message":"..."}, and logs what is not the
// client's mistake.
func (rt *Router) fail(w http.ResponseWriter, r *http.Request, err error) {
	code, message := Status(err)
	if code == http.StatusInternalServerError && rt.Transient != nil && rt.Transient(err) {
		code, message = http.StatusServiceUnavailable, unavailable
	}
	if code >= http.StatusInternalServerError &&
		!errors.Is(r.Context().Err(), context.Canceled) { // else the client is gone
		// The route and not the path, which may hold a user token.
		rt.log.LogAttrs(r.Context(), slog.LevelError, "request failed",
			slog.String("method", r.Method), slog.String("path", route(r)), slog.Int("status", code), slog.Any("error", err))
	}
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		rt.denied.count(r, code, message)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusTooManyRequests:
		writeRetry(w.Header(), err)
	}
	if rt.Refuse != nil {
		rt.Refuse(w, r, code, message)
		return
	}
	answer := statusMessage{Status: code, Message: message}
	if refusal, ok := errors.AsType[*fault.Error](err); ok && refusal.Message == message {
		answer.Field, answer.Hint, answer.Others = refusal.Field, refusal.Hint, refusal.Others
	}
	if shaped, ok := errors.AsType[*shapedError](err); ok {
		code, document := shaped.shape(code, message, answer.Hint)
		_ = WriteExact(w, code, document)
		return
	}
	_ = WriteJSON(w, code, answer) // a number and texts can be encoded
}

// refuse replaces the mux's own answer, which is plain text.
func (rt *Router) refuse(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	plain := newAnswer(nil) // is not sent
	handler.ServeHTTP(plain, r)
	if plain.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", plain.header.Get("Allow"))
		rt.fail(w, r, Errorf(http.StatusMethodNotAllowed, "%s", rt.hinted("Method Not Allowed", r)))
		return
	}
	rt.fail(w, r, Errorf(http.StatusNotFound, "%s", rt.hinted(rt.NotFound, r)))
}

func (rt *Router) hinted(message string, r *http.Request) string {
	if rt.Hint == nil {
		return message
	}
	if hint := rt.Hint(r); hint != "" {
		return message + ": " + hint
	}
	return message
}

// route is the pattern that matched a request, without its method.
func route(r *http.Request) string {
	if _, path, ok := strings.Cut(r.Pattern, " "); ok {
		return path
	}
	return r.Pattern
}
