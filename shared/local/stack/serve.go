package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// drainTime is how long requests in progress may go on when an engine ends.
const drainTime = 5 * time.Second

// idleTime is how long a connection stays open without a request: longer than load balancers keep theirs.
const idleTime = 620 * time.Second

// serve serves a listener until the stack closes, with TLS unless its configuration is nil. Requests in
// progress then have drainTime to end, and are then canceled: a task may take minutes.
func (s *Stack) serve(l net.Listener, secured *tls.Config, h http.Handler, log *slog.Logger) {
	unused := unusedConns{conns: map[net.Conn]bool{}}
	requests, cancelAll := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTime, ConnState: unused.track,
		TLSConfig: secured, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	done := make(chan error, 1)
	go func() {
		if secured != nil {
			done <- server.ServeTLS(l, "", "")
			return
		}
		done <- server.Serve(l)
	}()
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		defer time.AfterFunc(drainTime, cancelAll).Stop()
		unused.close()
		err := server.Shutdown(ctx)
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		cancelAll()
		return err
	})
}

// unusedConns holds the connections on which no request has arrived. Go's HTTP
// client often opens one that it then does not need, and Server.Shutdown waits
// five seconds for each.
type unusedConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func (u *unusedConns) track(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, c)
	case u.closed:
		c.Close()
	default:
		u.conns[c] = true
	}
}

func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		c.Close()
	}
}
