package apicheck

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// shared checks all exchanges of a test program, so that Operations counts them
// together.
var shared = sync.OnceValues(New)

// Shared returns the Checker that every Proxy of the process uses.
func Shared() (*Checker, error) { return shared() }

// Stay makes an http.Client return a redirect as it is.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Proxy starts a server before the engine at url and returns its own URL. The
// test fails for each exchange that is not as described.
func Proxy(tb testing.TB, url string) string {
	tb.Helper()
	checker, err := Shared()
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}, CheckRedirect: Stay}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		onward, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.RequestURI(), bytes.NewReader(request))
		if err != nil {
			tb.Errorf("%s %s: %v", r.Method, path(r.URL), err)
			return
		}
		onward.Header, onward.Host = r.Header.Clone(), r.Host
		onward.Header.Del("Accept-Encoding") // the checker reads plain answers
		res, err := client.Do(onward)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return // the engine or the client is gone
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			return
		}
		if err := checker.Check(r, request, res.StatusCode, res.Header, answer); err != nil {
			tb.Errorf("%s %s: %v", r.Method, path(r.URL), err)
		}
		for key, values := range res.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(answer)
	}))
	tb.Cleanup(func() {
		server.Close()
		client.CloseIdleConnections()
	})
	return server.URL
}
