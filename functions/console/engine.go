package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// engine makes requests to the API within the process: through the client that programs use, to the
// handlers that answer them, in the name of a session. So a page can do and show what the API does
// with the session's permissions, under the limits of the app, and nothing else.
type engine struct{ api http.Handler }

// maxCalls is how many requests of a page are shown.
const maxCalls = 12

// calls are the requests that a page has made. Some are made at the same time.
type calls struct {
	mu      sync.Mutex
	made    []call
	headers http.Header // of the answer about the app
}

type call struct {
	Method, Path, Body string
	User               string // of the header that keeps a token out of addresses
}

// userHeader names the user of a request whose address does not.
const userHeader = "X-Algolia-Usertoken"

func (c *calls) add(one call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.made) < maxCalls {
		c.made = append(c.made, one)
	}
}

func (c *calls) answered(h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = h
}

// header returns a header of the answer about the app.
func (c *calls) header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Get(name)
}

// list returns the calls so far.
func (c *calls) list() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]call(nil), c.made...)
}

// client returns a client for a session, which notes its requests. They come from where the
// request for the page came from.
func (e engine) client(page *http.Request, s auth.Session, made *calls) (*client.Client, error) {
	return client.New(client.Config{
		URL: "http://engine", App: s.App, Key: "session", // the key is not read, see auth.WithSession
		HTTPClient: &http.Client{Transport: transport{e.api, page, s, made}}, Retry: client.NoRetry,
	})
}

type transport struct {
	api     http.Handler
	page    *http.Request
	session auth.Session
	made    *calls
}

// RoundTrip answers a request without a connection.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	t.made.add(call{r.Method, r.URL.RequestURI(), string(body), r.Header.Get(userHeader)})
	ctx := auth.WithSession(r.Context(), t.session)
	in, err := http.NewRequestWithContext(ctx, r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	in.RequestURI, in.Host, in.RemoteAddr = r.URL.RequestURI(), r.Host, t.page.RemoteAddr
	if from := t.page.Header.Values("X-Forwarded-For"); from != nil {
		in.Header["X-Forwarded-For"] = from
	}
	if user := r.Header.Get(userHeader); user != "" {
		in.Header.Set(userHeader, user)
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	t.api.ServeHTTP(w, in)
	if r.URL.Path == "/1/app" { // one of them, so that the page shows the limit of one request
		t.made.answered(w.header)
	}
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// maxAnswer is how many bytes of an answer a page keeps. A handler sees a longer one as a
// connection that broke.
const maxAnswer = 32 << 20

// recorder keeps an answer.
type recorder struct {
	header http.Header
	body   bytes.Buffer
	status int
	sent   bool
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if !w.sent {
		w.status, w.sent = status, true
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.sent = true
	if w.body.Len()+len(b) > maxAnswer {
		return 0, errors.New("the answer is too large for a page")
	}
	return w.body.Write(b)
}
