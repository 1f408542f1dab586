// Package client is a Go client of an Affinity engine: one method for each
// public route, over the types of package api.
//
// A refused request returns an [api.Error]; one that got no answer returns an
// [UnreachableError]. Requests that may be repeated are repeated while the
// engine is busy or does not answer, see [Retry].
package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

const (
	// requestTimeout is longer than any route takes to answer.
	requestTimeout = 2 * time.Minute
	// gzipFrom is the size in bytes from which a body is worth packing.
	gzipFrom = 1 << 10
	// maxIdle is how many connections are kept open for later requests.
	maxIdle = 512
)

// Config names an engine, an app and a key.
type Config struct {
	// URL is the address of the engine, such as https://affinity.example.com.
	URL string
	// App is the ID of the app, and Key one of its keys. Each method says which
	// permission the key needs.
	App, Key string
	// HTTPClient sends the requests. Default: one with a timeout of two minutes
	// that keeps connections to the engine open.
	HTTPClient *http.Client
	// Retry says how long to repeat requests. Default: for a minute.
	Retry Retry
	// Gzip packs the bodies of large requests. It pays off on slow networks.
	Gzip bool
}

// Client speaks to one engine as one app. It is safe for concurrent use.
type Client struct {
	base, app, key string
	http           *http.Client
	retry          Retry
	gzip           bool
	// answered reports whether the engine has ever answered. If it has, a
	// failed connection is an outage; if not, the address is more likely wrong.
	answered *atomic.Bool
}

// New returns a client. It connects to nothing yet.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the URL of the engine must be an http or https address, got %q", cfg.URL)
	}
	if cfg.App == "" || cfg.Key == "" {
		return nil, errors.New("the app and its key must not be empty")
	}
	c := &Client{
		base: strings.TrimRight(cfg.URL, "/"), app: cfg.App, key: cfg.Key,
		http: cfg.HTTPClient, retry: cfg.Retry.orDefault(), gzip: cfg.Gzip, answered: new(atomic.Bool),
	}
	if c.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, maxIdle
		c.http = &http.Client{Transport: transport, Timeout: requestTimeout}
	}
	return c, nil
}

// URL returns the address of the engine, without a slash at its end.
func (c *Client) URL() string { return c.base }

// App returns the ID of the app.
func (c *Client) App() string { return c.app }

// WithRetry returns a client that repeats requests in another way and shares
// everything else with c.
func (c *Client) WithRetry(r Retry) *Client {
	other := *c
	other.retry = r.orDefault()
	return &other
}

// Health returns the version of the engine. Any key will do.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var answer api.Health
	err := c.call(ctx, always, http.MethodGet, "/health", nil, &answer)
	return answer, err
}

type (
	rawKey  struct{}
	userKey struct{}
)

// WithRawAnswer returns a context for a method of Client. The method stores the
// body of the engine's answer in raw.
func WithRawAnswer(ctx context.Context, raw *[]byte) context.Context {
	return context.WithValue(ctx, rawKey{}, raw)
}

// Do sends one request, once, and returns the body of the answer. path begins
// with a slash and is escaped, with its query. It is for routes that have no
// method here.
func (c *Client) Do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return c.send(ctx, method, path, body)
}

// DoAgain is Do for a request that does no harm when it is sent again: it is repeated as
// the Retry of the client says.
func (c *Client) DoAgain(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	var answer []byte
	err := c.repeat(ctx, always, func() (err error) {
		answer, err = c.send(ctx, method, path, body)
		return err
	})
	return answer, err
}

// call sends request as JSON, or no body if it is nil. It decodes the answer
// into answer, unless that is nil.
func (c *Client) call(ctx context.Context, when repeat, method, path string, request, answer any) error {
	var body []byte
	if request != nil {
		var err error
		if body, err = encode(request); err != nil {
			return fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
	}
	return c.callRaw(ctx, when, method, path, body, answer)
}

// encode encodes JSON without escapes for HTML, with which a record could
// exceed the limit of its size.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// callRaw is call with an encoded body.
func (c *Client) callRaw(ctx context.Context, when repeat, method, path string, body []byte, answer any) error {
	var received []byte
	err := c.repeat(ctx, when, func() (err error) {
		received, err = c.send(ctx, method, path, body)
		return err
	})
	if err != nil {
		return err
	}
	if raw, ok := ctx.Value(rawKey{}).(*[]byte); ok {
		*raw = received
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(received, answer); err != nil {
		return fmt.Errorf("read the answer of %s %s%s, which is not what an Affinity engine sends: %w", method,
			c.base, path, err)
	}
	return nil
}

// send sends one request and returns the body of a 2xx answer.
func (c *Client) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	packed := c.gzip && len(body) >= gzipFrom
	if packed {
		body = pack(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("X-Algolia-Application-Id", c.app)
	request.Header.Set("X-Algolia-API-Key", c.key)
	if user, given := ctx.Value(userKey{}).(string); given {
		request.Header.Set("X-Algolia-Usertoken", user)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if packed {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	c.answered.Store(true)
	if response.StatusCode/100 == 2 {
		return answer, nil
	}
	return nil, fmt.Errorf("%s %s%s: %w", method, c.base, path, refusal(response, answer))
}

// pack compresses a body with gzip.
func pack(body []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the level exists
	_, _ = w.Write(body)                                 // writing to a buffer cannot fail
	_ = w.Close()
	return packed.Bytes()
}

// refusal decodes an answer that is not a success. The status comes from the
// status line, not from the body.
func refusal(response *http.Response, body []byte) *api.Error {
	var e api.Error
	if err := json.Unmarshal(body, &e); err != nil || e.Message == "" {
		e.Message = http.StatusText(response.StatusCode)
	}
	e.Status = response.StatusCode
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.RetryAfter = max(0, time.Until(at))
	}
	return &e
}

// UnreachableError is the error of a request that got no answer.
type UnreachableError struct {
	// URL is the address of the engine.
	URL string
	// Reached reports whether a server is at the address: it accepted the
	// connection or answered an earlier request. If not, the address may be
	// wrong.
	Reached bool
	// Err says what happened.
	Err error
}

// Error says what happened at which address.
func (e *UnreachableError) Error() string {
	if e.Reached {
		return fmt.Sprintf("the engine at %s stopped answering (%v)", e.URL, e.Err)
	}
	return fmt.Sprintf("no engine answers at %s (%v)", e.URL, e.Err)
}

// Unwrap returns Err.
func (e *UnreachableError) Unwrap() error { return e.Err }

func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, which the message has already
	}
	var dial *net.OpError
	connected := !errors.As(err, &dial) || dial.Op != "dial"
	return &UnreachableError{URL: c.base, Reached: connected || c.answered.Load(), Err: err}
}
