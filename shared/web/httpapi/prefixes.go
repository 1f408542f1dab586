package httpapi

import (
	"net/http"
	"strings"
)

// Prefixes serves a request with the first handler whose prefix matches whole
// segments of the path. It answers 404 if there is none.
type Prefixes []Prefix

// Prefix is the handler of the paths below one.
type Prefix struct {
	Prefix  string
	Handler http.Handler
}

// ServeHTTP routes a request.
func (p Prefixes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, c := range p {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), c.Prefix)
		if ok && (rest == "" || rest[0] == '/') {
			c.Handler.ServeHTTP(w, r)
			return
		}
	}
	_ = WriteMessage(w, http.StatusNotFound, UnknownPath)
}
