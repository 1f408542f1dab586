package httpapi_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// ask sends a GET request, and does not read the answer.
func ask(t *testing.T, conn net.Conn, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
		t.Error(err)
	}
}

// holds checks how many bytes are taken of a gate of 100.
func holds(t *testing.T, what string, g *admission.Gate, n int64) {
	t.Helper()
	n = 100 - n
	ctx, leave := g.EnterFor(t.Context(), 0)
	defer leave()
	began := time.Now()
	if err := admission.Take(ctx, 1); err != nil {
		t.Errorf("%s: the gate is full, want %d free bytes", what, n)
		return
	}
	if err := admission.Take(ctx, n-1); err != nil || time.Since(began) > 0 {
		t.Errorf("%s: fewer than %d bytes are free", what, n)
	}
	if err := admission.Take(ctx, 1); n < 100 && !errors.Is(err, admission.ErrFull) {
		t.Errorf("%s: more than %d bytes are free", what, n)
	}
}

// large answers with size bytes and a newline, for which it takes three times as many.
func large(size int) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := admission.Take(r.Context(), int64(3*size)); err != nil {
			return err
		}
		return httpapi.WriteAppended(w, http.StatusOK, func(b []byte) ([]byte, error) {
			return append(b, make([]byte, size)...), nil
		})
	}
}

// Connections whose clients read nothing end after half a minute, and hold no memory then.
func TestAnswersThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, clients = 256 << 10, 80
		rt := httpapi.NewRouter(quiet)
		rt.Gate = admission.NewGate(1 << 30)
		rt.Handle("GET /document", large(size))
		rt.Handle("GET /stream", func(w http.ResponseWriter, r *http.Request) error {
			part := make([]byte, size)
			if _, err := w.Write(part); err == nil {
				t.Error("a write to a client that reads nothing succeeds")
			}
			return nil
		})
		heap := func() uint64 {
			runtime.GC()
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return s.HeapAlloc
		}
		before := heap()
		var conns []net.Conn
		for i := range clients {
			conn := connect(t, rt)
			conns = append(conns, conn)
			ask(t, conn, map[bool]string{true: "/document", false: "/stream"}[i%4 > 0])
		}
		synctest.Wait()
		time.Sleep(httpapi.AnswerTime - time.Second)
		if held := heap() - before; held < clients*size {
			t.Errorf("%d bytes are held before the time is over, so this test measures something else", held)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for i, conn := range conns {
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("connection %d: %v, want its end", i, err)
			}
		}
		if held := int64(heap()) - int64(before); held > 4<<20 {
			t.Errorf("%d connections that read nothing hold %d bytes", clients, held)
		}
		ctx, leave := rt.Gate.EnterFor(t.Context(), 0)
		defer leave()
		if err := admission.Take(ctx, admission.Heaviest(1<<30)); err != nil {
			t.Errorf("the gate holds bytes of connections that have ended: %v", err)
		}
	})
}

// A client that reads slowly gets its whole answer, however long that takes, and the
// gate holds no more than the part that is left, and as much again.
func TestSlowReaderGetsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, capacity = 1<<19 - 1, 1 << 20
		rt := httpapi.NewRouter(quiet)
		rt.Gate, rt.Life = admission.NewGate(capacity), 10*time.Second // which bounds the handler, and not the client
		rt.Handle("GET /", func(w http.ResponseWriter, r *http.Request) error {
			if err := admission.Take(r.Context(), capacity); err != nil {
				return err
			}
			return httpapi.WriteEncoded(w, http.StatusOK, make([]byte, size, size+1))
		})
		conn := connect(t, rt)
		defer conn.Close()
		ask(t, conn, "/")
		in := bufio.NewReaderSize(conn, 1<<10)
		response, err := http.ReadResponse(in, nil)
		must.Succeed(t, err)
		for read := 0; read <= size; read += 1 << 10 {
			if _, err := io.ReadFull(response.Body, make([]byte, 1<<10)); err != nil {
				t.Fatalf("after %d bytes: %v", read, err)
			}
			synctest.Wait()
			if left := int64(size + 1 - read); left < capacity/4 {
				ctx, leave := rt.Gate.EnterFor(t.Context(), 0)
				began := time.Now()
				err := errors.Join(admission.Take(ctx, 1), admission.Take(ctx, capacity-2*left-2*httpapi.AnswerStep))
				if leave(); err != nil || time.Since(began) > 0 {
					t.Fatalf("with %d bytes left to send: %v", left, err)
				}
			}
			time.Sleep(1500 * time.Millisecond)
		}
		if n, err := io.Copy(io.Discard, response.Body); n > 0 || err != nil {
			t.Errorf("%d more bytes, %v", n, err)
		}
	})
}

// runaway is a router with a handler that goes on after its context has ended, until
// release is called.
func runaway(t *testing.T, life time.Duration, log *slog.Logger, before func(http.ResponseWriter)) (rt *httpapi.Router, wrote <-chan error, release func()) {
	t.Helper()
	rt = httpapi.NewRouter(log)
	rt.Gate, rt.Life = admission.NewGate(100), life
	stop, result := make(chan struct{}), make(chan error, 1)
	rt.Handle("/", func(w http.ResponseWriter, r *http.Request) error {
		if err := admission.Take(r.Context(), 60); err != nil {
			return err
		}
		before(w)
		<-stop
		_, err := w.Write(make([]byte, 1<<20))
		result <- err
		return err
	})
	return rt, result, sync.OnceFunc(func() { close(stop) })
}

// A request whose handler does not end is answered at the end of its time. The handler
// keeps its bytes of the gate, and nothing of what it writes later reaches the client.
func TestHandlerThatDoesNotEnd(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		synctest.Test(t, func(t *testing.T) {
			var logged bytes.Buffer
			rt, wrote, release := runaway(t, time.Minute, slog.New(slog.NewTextHandler(&logged, nil)), func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "a part")
			})
			defer release()
			conn := connect(t, rt)
			defer conn.Close()
			in, began := bufio.NewReader(conn), time.Now()
			if _, err := fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi", method); err != nil {
				t.Fatal(err)
			}
			if got := answered(t, in, began, http.StatusServiceUnavailable, time.Minute); got != `{"status":503,"message":"The service is unavailable, try again"}`+"\n" {
				t.Errorf("answer %q", got)
			}
			if !strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), "path=/ status=503") || !strings.Contains(logged.String(), "goes on") {
				t.Errorf("logged %q", logged.String())
			}
			holds(t, "while the handler goes on", rt.Gate, 60)
			release()
			if err := <-wrote; !errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("the late handler writes: %v", err)
			}
			synctest.Wait()
			holds(t, "once the handler has ended", rt.Gate, 0)
		})
	}
}

// A client that goes away does not end the work on its request. The router logs nothing then.
func TestHandlerOutlivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		rt, wrote, release := runaway(t, time.Minute, slog.New(slog.NewTextHandler(&logged, nil)), func(http.ResponseWriter) {})
		conn := connect(t, rt)
		ask(t, conn, "/")
		synctest.Wait()
		must.Succeed(t, conn.Close())
		time.Sleep(30 * time.Second)
		holds(t, "the handler goes on", rt.Gate, 60)
		release()
		<-wrote
		synctest.Wait()
		holds(t, "the handler has ended", rt.Gate, 0)
		if logged.Len() > 0 {
			t.Errorf("logged %s", logged.String())
		}
	})
}

// An answer that has begun and does not go on ends without its end.
func TestAnswerIsCutOff(t *testing.T) {
	for name, handler := range map[string]httpapi.Handler{
		"it hangs": func(w http.ResponseWriter, r *http.Request) error {
			_, err := w.Write(make([]byte, 100<<10))
			<-r.Context().Done()
			time.Sleep(time.Hour)
			return err
		},
		"it fails": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write(make([]byte, 100<<10))
			return errors.Join(err, errors.New("a fault"))
		},
		"it panics": func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = w.Write(make([]byte, 100<<10))
			panic("a bug")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := httpapi.NewRouter(quiet)
				rt.Life = 10 * time.Second
				rt.Handle("GET /", handler)
				conn := connect(t, rt)
				defer conn.Close()
				ask(t, conn, "/")
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				must.Succeed(t, err)
				if n, err := io.Copy(io.Discard, response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%d bytes, %v; want an answer that is not whole", n, err)
				}
				time.Sleep(2 * time.Hour) // the handler ends with the test
			})
		})
	}
}

// A handler that sends for longer than its time goes on while its client reads.
func TestLongStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := httpapi.NewRouter(quiet)
		rt.Life = 10 * time.Second
		rt.Handle("GET /", func(w http.ResponseWriter, _ *http.Request) error {
			for range 10 {
				if _, err := w.Write(make([]byte, 100<<10)); err != nil {
					return err
				}
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		conn := connect(t, rt)
		defer conn.Close()
		ask(t, conn, "/")
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must.Succeed(t, err)
		if n, err := io.Copy(io.Discard, response.Body); err != nil || n != 1000<<10 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// A route that loops without looking at anything is answered like any other.
func TestLoopingRouteIsAnswered(t *testing.T) {
	rt := httpapi.NewRouter(quiet)
	rt.Life = 50 * time.Millisecond
	var stop atomic.Bool
	ended := make(chan struct{})
	rt.Handle("GET /", func(http.ResponseWriter, *http.Request) error {
		defer close(ended)
		for !stop.Load() {
		}
		return nil
	})
	server := httptest.NewServer(rt)
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	must.Succeed(t, err)
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || len(body) == 0 {
		t.Errorf("%d %s, %v", response.StatusCode, body, err)
	}
	_ = response.Body.Close()
	stop.Store(true)
	<-ended
}
