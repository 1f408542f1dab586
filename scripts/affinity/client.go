package main

import (
	"bytes"
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

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// requestTimeout is how long one request may take, the answer's body included: longer than any route of the engine is given.
const requestTimeout = 2 * time.Minute

// client speaks to one running engine as one app.
type client struct {
	base, app, key string
	http           *http.Client
	answered       atomic.Bool // whether the engine has ever answered: then no connection is an outage, else a wrong address
}

// client makes one for the engine that the flags name.
func (t *tool) client() (*client, error) {
	u, err := url.Parse(t.url)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, cli.Usagef("--url %q is no http or https address", t.url)
	}
	if t.app == "" || t.key == "" {
		return nil, cli.Usagef("--app and --key must not be empty")
	}
	return newClient(t.url, t.app, t.key), nil
}

func newClient(base, app, key string) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 512 // `load` keeps many connections to one host
	return &client{
		base: strings.TrimRight(base, "/"), app: app, key: key,
		http: &http.Client{Transport: transport, Timeout: requestTimeout},
	}
}

// do sends one request and returns the body of a 2xx answer. Other answers are a *refusedError, no answer an *unreachableError.
func (c *client) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("X-Algolia-Application-Id", c.app)
	request.Header.Set("X-Algolia-API-Key", c.key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
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
	return nil, c.refused(method, path, response, answer)
}

// get reads a JSON document into v.
func (c *client) get(ctx context.Context, path string, v any) error {
	body, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("read the answer of GET %s%s, which is not what an Affinity engine sends: %w", c.base, path, err)
	}
	return nil
}

func (c *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the address, which the message names anyway
	}
	var dial *net.OpError
	connected := !errors.As(err, &dial) || dial.Op != "dial"
	return &unreachableError{base: c.base, there: connected || c.answered.Load(), err: err}
}

func (c *client) refused(method, path string, response *http.Response, body []byte) error {
	e := &refusedError{Status: response.StatusCode, app: c.app, where: method + " " + c.base + path}
	var said struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Message == "" {
		said.Message = http.StatusText(response.StatusCode)
	}
	e.Message = cli.Printable(said.Message)
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.retryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// unreachableError: the engine gave no answer.
type unreachableError struct {
	base  string
	there bool // something is there: it took the connection, or answered earlier
	err   error
}

func (e *unreachableError) Error() string {
	if e.there {
		return fmt.Sprintf("the engine at %s stopped answering (%v)", e.base, e.err)
	}
	return fmt.Sprintf("no engine answers at %s (%v): start one with `go run ./scripts/affinity up`, or name yours with --url", e.base, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// refusedError: the engine answered, but not with success.
type refusedError struct {
	Status     int
	Message    string
	app, where string
	retryAfter time.Duration // what the engine asked for; 0 when nothing
}

func (e *refusedError) Error() string {
	said := fmt.Sprintf("%s: %d %s", e.where, e.Status, e.Message)
	switch e.Status {
	case http.StatusUnauthorized:
		return fmt.Sprintf("%s: the engine does not know app %q with this key: give --app and --key", said, e.app)
	case http.StatusForbidden:
		return said + ": give --key a key that has the right for this"
	default:
		return said
	}
}

// statusOf is the HTTP status behind an error, 0 when the engine did not refuse.
func statusOf(err error) int {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// answerOf is what the engine said when it refused, without where.
func answerOf(err error) string {
	var refused *refusedError
	if errors.As(err, &refused) {
		return fmt.Sprintf("%d %s", refused.Status, refused.Message)
	}
	return err.Error()
}
