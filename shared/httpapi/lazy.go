package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
)

// Lazy is a function whose configuration is read and whose clients are made at
// its first request, not when its process starts: one that is configured wrong
// still starts, and answers 503 with all its faults until they are mended.
type Lazy struct {
	build func(context.Context) (http.Handler, error)
	log   *slog.Logger
	mu    sync.Mutex
	ready http.Handler
}

// NewLazy makes a Lazy from what builds the handler; build runs again for every
// request until it succeeds.
func NewLazy(log *slog.Logger, build func(context.Context) (http.Handler, error)) *Lazy {
	return &Lazy{build: build, log: log}
}

// ServeHTTP makes the handler if there is none yet, and serves with it.
func (l *Lazy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := l.handler()
	if err != nil {
		AllowOrigin(w.Header())
		WriteError(l.log, w, r, Errorf(http.StatusServiceUnavailable, "The function is not configured: %v", err))
		return
	}
	h.ServeHTTP(w, r)
}

func (l *Lazy) handler() (http.Handler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready != nil {
		return l.ready, nil
	}
	// Clients outlive the request that happens to come first.
	h, err := l.build(context.Background())
	if err != nil {
		return nil, err
	}
	l.ready = h
	return h, nil
}
