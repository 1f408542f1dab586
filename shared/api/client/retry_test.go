package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// replies is an engine that gives its answers in turn and then repeats the last
// one. It needs no network, so that a test can run on a fake clock.
type replies struct {
	list []reply
	n    int // requests so far
}

type reply struct {
	status     int // 0: no answer
	retryAfter string
	err        error
}

func (r *replies) RoundTrip(*http.Request) (*http.Response, error) {
	now := r.list[min(r.n, len(r.list)-1)]
	r.n++
	if now.err != nil {
		return nil, now.err
	}
	header := http.Header{}
	if now.retryAfter != "" {
		header.Set("Retry-After", now.retryAfter)
	}
	return &http.Response{StatusCode: now.status, Header: header, Body: io.NopCloser(strings.NewReader(`{"message":"said"}`))}, nil
}

var (
	busy    = reply{status: http.StatusServiceUnavailable}
	fault   = reply{status: http.StatusInternalServerError}
	ok      = reply{status: http.StatusOK}
	reset   = reply{err: errors.New("connection reset by peer")}
	nothing = reply{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
)

// over runs a test on a client of an engine, on a fake clock.
func over(t *testing.T, engine *replies, retry client.Retry, test func(*testing.T, *client.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newClient(t, client.Config{URL: "http://engine", HTTPClient: &http.Client{Transport: engine}, Retry: retry}))
	})
}

func TestRequestsAreRepeated(t *testing.T) {
	timed, untimed := api.Event{UserToken: "ann", Timestamp: 1}, api.Event{UserToken: "ann"}
	read := func(ctx context.Context, c *client.Client) error { _, err := c.Schema().Get(ctx); return err }
	send := func(events ...api.Event) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error { return c.Events().Send(ctx, events...) }
	}
	add := func(a api.BatchAction) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.Catalog().Batch(ctx, "shoes", a)
			return err
		}
	}
	for _, test := range []struct {
		name    string
		answers []reply
		do      func(context.Context, *client.Client) error
		want    int // requests
	}{
		{"a read that succeeds", []reply{ok}, read, 1},
		{"a read, the engine busy", []reply{busy, {status: http.StatusTooManyRequests}, ok}, read, 3},
		{"a read, the engine at fault", []reply{fault, ok}, read, 2},
		{"a read, the connection lost", []reply{reset, ok}, read, 2},
		{"a read, nothing at the address", []reply{nothing}, read, 1},
		{"a read, the engine away", []reply{busy, nothing, ok}, read, 3},
		{"a read that is refused", []reply{{status: http.StatusForbidden}}, read, 1},
		{"events with timestamps, the connection lost", []reply{reset, ok}, send(timed), 2},
		{"events without, the connection lost", []reply{reset}, send(timed, untimed), 1},
		{"events without, the engine at fault", []reply{fault}, send(timed, untimed), 1},
		{"events without, not accepted", []reply{busy, ok}, send(timed, untimed), 2},
		{"an object with an id beside it", []reply{reset, ok}, add(api.BatchAction{Action: api.ActionAddObject, ObjectID: 7, Body: json.RawMessage(`{}`)}), 2},
		{"an object with an id in it", []reply{reset, ok}, add(api.BatchAction{Action: api.ActionAddObject, Body: json.RawMessage(`{"objectID":"7"}`)}), 2},
		{"an object without an id", []reply{busy}, add(api.BatchAction{Action: api.ActionAddObject, Body: json.RawMessage(`{"name":"7"}`)}), 1},
		{"a step", []reply{busy}, func(ctx context.Context, c *client.Client) error { _, err := c.Schema().Rollback(ctx); return err }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine := &replies{list: test.answers}
			over(t, engine, client.Retry{}, func(t *testing.T, c *client.Client) {
				err := test.do(t.Context(), c)
				if last := test.answers[len(test.answers)-1]; (err == nil) != (last == ok) {
					t.Errorf("error %v", err)
				}
				if engine.n != test.want {
					t.Errorf("%d requests, want %d", engine.n, test.want)
				}
			})
		})
	}
}

func TestWaitsDouble(t *testing.T) {
	engine := &replies{list: []reply{busy, busy, busy, busy, ok}}
	var waits []time.Duration
	retry := client.Retry{First: 100 * time.Millisecond, Max: 300 * time.Millisecond, Notify: func(_ error, wait time.Duration) { waits = append(waits, wait) }}
	over(t, engine, retry, func(t *testing.T, c *client.Client) {
		begun := time.Now()
		if _, err := c.Schema().Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for i, most := range []time.Duration{100e6, 200e6, 300e6, 300e6} {
			if waits[i] > most || waits[i] < most/2 {
				t.Errorf("wait %d is %s, want %s to %s", i, waits[i], most/2, most)
			}
			sum += waits[i]
		}
		if took := time.Since(begun); took != sum {
			t.Errorf("it took %s, and the waits come to %s", took, sum)
		}
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	engine := &replies{list: []reply{{status: 429, retryAfter: "17"}, ok}}
	over(t, engine, client.Retry{}, func(t *testing.T, c *client.Client) {
		begun := time.Now()
		if _, err := c.Schema().Get(t.Context()); err != nil || time.Since(begun) != 17*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	for name, last := range map[string]reply{"when its time is up": busy, "when the engine asks for more": {status: 503, retryAfter: "11"}} {
		t.Run(name, func(t *testing.T) {
			over(t, &replies{list: []reply{busy, last}}, client.Retry{Total: 10 * time.Second}, func(t *testing.T, c *client.Client) {
				begun := time.Now()
				_, err := c.Schema().Get(t.Context())
				var refused *api.Error
				if !errors.As(err, &refused) || refused.Status != 503 || !strings.HasPrefix(err.Error(), "gave up after trying again for 10s: ") {
					t.Errorf("error %v", err)
				}
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestRetryEndsWithTheContext(t *testing.T) {
	over(t, &replies{list: []reply{busy}}, client.Retry{First: time.Hour, Total: 100 * time.Hour}, func(t *testing.T, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Schema().Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestWithRetry(t *testing.T) {
	engine := &replies{list: []reply{busy}}
	over(t, engine, client.Retry{}, func(t *testing.T, c *client.Client) {
		if _, err := c.WithRetry(client.NoRetry).Schema().Get(t.Context()); err == nil || engine.n != 1 {
			t.Errorf("%d requests, %v", engine.n, err)
		}
		if _, err := c.Do(t.Context(), http.MethodGet, "/local", nil); err == nil || engine.n != 2 {
			t.Errorf("%d requests, %v", engine.n, err)
		}
		if _, err := c.Schema().Get(t.Context()); err == nil || engine.n < 5 {
			t.Errorf("%d requests, %v", engine.n, fmt.Sprint(err))
		}
	})
}
