package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// pipes is a listener whose connections are in memory, so that their deadlines
// go by the clock of a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// connect serves a handler until the test ends, and returns a connection to it.
func connect(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(p) }()
	near, far := net.Pipe()
	p.conns <- far
	must.CloseAtEnd(t, server)
	return near
}

// drip sends a request that announces 1,000 bytes, and then a byte a second for
// as long as the server reads or the connection is open.
func drip(conn net.Conn, path string) {
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n", path)
	for err == nil {
		time.Sleep(time.Second)
		_, err = conn.Write([]byte("a"))
	}
}

// answered reads an answer, and checks its status and the time that it took.
func answered(t *testing.T, in *bufio.Reader, began time.Time, status int, after time.Duration) string {
	t.Helper()
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	if took := time.Since(began); response.StatusCode != status || took != after {
		t.Errorf("%d after %v, want %d after %v: %s", response.StatusCode, took, status, after, body)
	}
	return string(body)
}

func readOn(within time.Duration) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := httpapi.ReadBodyWithin(w, r, 10_000, within); err != nil {
			return err
		}
		return httpapi.WriteMessage(w, http.StatusOK, "read")
	}
}

func TestSlowBodyIsRefused(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		after  time.Duration
		words  string
	}{
		"/events":  {http.StatusRequestTimeout, httpapi.BodyTime, "the body did not arrive within 10 seconds"},
		"/import":  {http.StatusRequestTimeout, time.Minute, "the body did not arrive within 60 seconds"},
		"/refused": {http.StatusUnauthorized, httpapi.BodyTime, "no key"},
		"/nowhere": {http.StatusNotFound, httpapi.BodyTime, "Path not supported"},
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := httpapi.NewRouter(quiet)
				rt.Handle("POST /events", readOn(httpapi.BodyTime))
				rt.Handle("POST /import", readOn(time.Minute))
				rt.Handle("POST /refused", func(http.ResponseWriter, *http.Request) error {
					return httpapi.Errorf(http.StatusUnauthorized, "no key") // without reading the body
				})
				conn := connect(t, rt)
				began := time.Now()
				var client sync.WaitGroup
				client.Go(func() { drip(conn, path) })
				defer client.Wait()
				defer conn.Close()
				in := bufio.NewReader(conn)
				if got := answered(t, in, began, want.status, want.after); !strings.Contains(got, want.words) {
					t.Errorf("%s, want %q", got, want.words)
				}
				if _, err := in.ReadByte(); err == nil {
					t.Error("the connection stays open")
				}
			})
		})
	}
}

// The deadline of a body does not end the work on it, nor the connection.
func TestDeadlineEndsWithTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := httpapi.NewRouter(quiet)
		rt.Handle("POST /", func(w http.ResponseWriter, r *http.Request) error {
			if _, err := httpapi.ReadBody(w, r, 10); err != nil {
				return err
			}
			time.Sleep(time.Minute)
			return r.Context().Err()
		})
		rt.Handle("GET /", func(_ http.ResponseWriter, r *http.Request) error {
			time.Sleep(time.Minute)
			return r.Context().Err()
		})
		conn := connect(t, rt)
		in := bufio.NewReader(conn)
		for range 2 {
			for _, request := range []string{"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi", "GET / HTTP/1.1\r\nHost: test\r\n\r\n"} {
				began := time.Now()
				go func() { _, _ = io.WriteString(conn, request) }()
				answered(t, in, began, http.StatusOK, time.Minute)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Requests that hold bodies until they are answered keep others out: these wait a
// second and are then refused with 429.
func TestFullGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const body = 10_000
		rt := httpapi.NewRouter(quiet)
		rt.Gate = admission.NewGate(2*httpapi.BodyWeight*body + 1_000)
		release := make(chan struct{})
		rt.Handle("POST /", func(w http.ResponseWriter, r *http.Request) error {
			if _, err := httpapi.ReadBody(w, r, body); err != nil {
				return err
			}
			<-release
			return nil
		})
		send := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			rt.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("a", body))))
			return w
		}
		var holding sync.WaitGroup
		for range 2 {
			holding.Go(func() {
				if w := send(); w.Code != http.StatusOK {
					t.Errorf("%d %s, want 200", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		w := send()
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || err != nil || after < 1 || after > 10 || time.Since(began) != time.Second {
			t.Errorf("%d after %v, retry-after %q; want 429 after a second, 1 to 10", w.Code, time.Since(began), w.Header().Get("Retry-After"))
		}
		if exposed := w.Header().Get("Access-Control-Expose-Headers"); !strings.HasPrefix(exposed, "retry-after") {
			t.Errorf("a web page may read %q", exposed)
		}
		close(release)
		holding.Wait()
		if w := send(); w.Code != http.StatusOK {
			t.Errorf("%d %s once the gate is empty, want 200", w.Code, w.Body)
		}
	})
}

// A body that unpacks to much waits for a turn, and a small one does not.
func TestLargeUnpackedBodyTakesATurn(t *testing.T) {
	g := admission.NewGate(1 << 30)
	for range max(2, runtime.GOMAXPROCS(0)) { // all turns
		ctx, leave := g.Enter(t.Context())
		defer leave()
		must.Succeed(t, admission.AwaitTurn(ctx, 0))
	}
	read := func(size int) error {
		gone, cancel := context.WithCancel(t.Context())
		cancel() // so that it does not wait for long
		ctx, leave := g.Enter(gone)
		defer leave()
		r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(gzipped(strings.Repeat("a", size))))
		r.Header.Set("Content-Encoding", "gzip")
		body, err := httpapi.ReadBody(httptest.NewRecorder(), r, 4*admission.Heavy)
		if err == nil && len(body) != size {
			t.Errorf("read %d bytes of %d", len(body), size)
		}
		return err
	}
	if err := read(admission.Heavy - 1); err != nil {
		t.Errorf("a body below the size of a heavy one: %v", err)
	}
	if err := read(2 * admission.Heavy); !errors.Is(err, context.Canceled) {
		t.Errorf("a heavy body is unpacked without a turn: %v", err)
	}
}
