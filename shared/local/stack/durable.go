package stack

import "net/http"

// durable makes the answers to requests that may change something wait for sync, which returns nil once all
// changes until then are safe. What a request has changed was committed before its answer, whichever
// function did it, and so was what it found done already.
func durable(sync func() error, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads(r) {
			h.ServeHTTP(w, r)
			return
		}
		d := &durableWriter{ResponseWriter: w, sync: sync}
		h.ServeHTTP(d, r)
		d.WriteHeader(http.StatusOK) // an answer without a body
	})
}

// readPosts are the routes that change nothing although their method is POST: their answers do not wait.
var readPosts = map[string]bool{
	"/1/rank": true, "/1/recommend": true, "/1/profiles/batch": true, "/1/segments/query": true,
	"/1/strategies/personalization/preview": true, "/1/recommend/1/indexes/*/recommendations": true,
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	case http.MethodPost:
		return readPosts[r.URL.EscapedPath()]
	}
	return false
}

// durableWriter sends nothing of an answer before its changes are safe. Answers that are sent while their
// handler goes on are those of reads.
type durableWriter struct {
	http.ResponseWriter
	sync  func() error
	begun bool
	lost  bool // nobody knows whether the changes are safe
}

// Unwrap is for http.ResponseController.
func (w *durableWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader waits, unless the status says that nothing was changed.
func (w *durableWriter) WriteHeader(status int) {
	if w.begun || status < http.StatusOK {
		return
	}
	w.begun = true
	if !changesNothing(status) && w.sync() != nil {
		w.lost, status = true, http.StatusServiceUnavailable
		w.Header().Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *durableWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.lost {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// changesNothing reports whether a status says that a request has changed nothing, and found nothing done.
func changesNothing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusUnauthorized ||
		status == http.StatusForbidden || status == http.StatusTooManyRequests
}
