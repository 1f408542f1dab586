package stack

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
)

// Requests of operators are let in once the engine is ready, and are waited for before it ends.
func TestOperatorsWaitForTheEngine(t *testing.T) {
	d := &adminDoor{}
	d.requests, d.cancel = context.WithCancel(t.Context())
	d.state.Store(new("starts"))
	d.gate.Lock()
	want := func(path string, want int) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		if d.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	want("/readyz", 503)
	want("/local", 503)
	began, end := make(chan bool), make(chan bool)
	var lacking error
	d.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- true
		<-end
	}), func() error { return lacking })
	want("/readyz", 200)
	lacking = errors.New("the disk is nearly full")
	want("/readyz", 503)
	lacking = nil
	request, drained := make(chan bool), make(chan bool)
	go func() { want("/local", 200); close(request) }()
	<-began
	go func() { _ = d.drain(); close(drained) }()
	for d.state.Load() == nil {
		runtime.Gosched()
	}
	want("/readyz", 503)
	select {
	case <-drained:
		t.Error("the engine has ended before a request")
	default:
	}
	close(end)
	<-request
	<-drained
	want("/local", 503)
}
