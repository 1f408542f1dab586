package attack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// target is the engine under attack, as its clients see it.
type target struct {
	url, host  string
	http       *http.Client
	good, evil *client.Client
}

func newTarget(base string) *target {
	t := &target{url: base, http: &http.Client{Timeout: 2 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	if u, err := url.Parse(base); err == nil {
		t.host = u.Host
	}
	// Both names are right, so New does not fail. The probes have connections of their
	// own, and repeat nothing by themselves.
	t.good, _ = client.New(client.Config{URL: base, App: goodApp, Key: goodKey})
	t.good = t.good.WithRetry(client.NoRetry)
	t.evil, _ = client.New(client.Config{URL: base, App: evilApp, Key: evilKey})
	return t
}

func (t *target) close() { t.http.CloseIdleConnections() }

// strategyOf scores the facets of the attacks and of the probes.
func strategyOf(score int) string {
	return fmt.Sprintf(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":%d}],`+
		`"facetsScoring":[{"facetName":"color","score":10},{"facetName":"tags","score":1}],"personalizationImpact":50}`, score)
}

// prepare sets both apps' strategies.
func (t *target) prepare(ctx context.Context) error {
	for _, c := range []*client.Client{t.good, t.evil} {
		if _, err := c.Do(ctx, http.MethodPost, "/1/strategies/personalization", []byte(strategyOf(10))); err != nil {
			return fmt.Errorf("set the strategy of %s: %w", c.App(), err)
		}
	}
	return pause(ctx, 6*time.Second) // every function has read it
}

// pack compresses a body.
func pack(body string) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(body)) // a Buffer returns no errors
	_ = w.Close()
	return packed.Bytes()
}

// ask sends a request with the keys of the evil app and returns the status, 0 without
// an answer.
func (t *target) ask(ctx context.Context, method, path string, packed []byte) int {
	r, err := http.NewRequestWithContext(ctx, method, t.url+path, bytes.NewReader(packed))
	if err != nil {
		return 0
	}
	r.Header.Set("X-Algolia-Application-Id", evilApp)
	r.Header.Set("X-Algolia-API-Key", evilKey)
	if len(packed) > 0 {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := t.http.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func (t *target) post(ctx context.Context, path string, packed []byte) int {
	return t.ask(ctx, http.MethodPost, path, packed)
}

// answers counts answers by status.
type answers map[int]int

func (a answers) String() string { return fmt.Sprint(map[int]int(a))[len("map"):] }

// postAll sends the same request n times at once, and adds the answers.
func (t *target) postAll(ctx context.Context, n int, path string, packed []byte, to answers) {
	to.all(n, func() int { return t.post(ctx, path, packed) })
}

// persist sends a request until it is not refused with 429.
func (t *target) persist(ctx context.Context, path string, packed []byte, to answers) {
	for ctx.Err() == nil {
		status := t.post(ctx, path, packed)
		if to[status]++; status != http.StatusTooManyRequests {
			return
		}
		_ = pause(ctx, time.Second) // the loop ends with the context
	}
}

func (t *target) getAll(ctx context.Context, n int, path string, to answers) {
	to.all(n, func() int { return t.ask(ctx, http.MethodGet, path, nil) })
}

func (a answers) all(n int, ask func() int) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	for range n {
		asked.Go(func() {
			status := ask()
			mu.Lock()
			defer mu.Unlock()
			a[status]++
		})
	}
	asked.Wait()
}

// awaits limits how long an attack waits for the engine to do what it accepted.
const awaits = 2 * time.Minute

func await(ctx context.Context, what string, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, awaits)
	defer cancel()
	for !done(ctx) {
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
	return nil
}

// awaitEvent waits until some event of a user of the evil app counts.
func (t *target) awaitEvent(ctx context.Context, user string) error {
	return t.awaitTotal(ctx, user, 1)
}

func (t *target) awaitTotal(ctx context.Context, user string, values int) error {
	return await(ctx, fmt.Sprintf("%d values of %s", values, user), func(ctx context.Context) bool {
		p, err := t.evil.Profiles().Get(ctx, user, api.ProfileQuery{Limit: 1})
		return err == nil && p.Total >= values
	})
}

func (t *target) awaitRecompute(ctx context.Context) error {
	return await(ctx, "the recompute", func(ctx context.Context) bool {
		list, err := t.evil.Jobs().Recomputes(ctx)
		if err != nil || len(list.Recomputes) < 2 { // of both strategies
			return false
		}
		for _, r := range list.Recomputes {
			if r.State == api.JobRunning || r.State == api.JobPlanning {
				return false
			}
		}
		return true
	})
}

func readLine(c net.Conn) (string, error) { return bufio.NewReader(c).ReadString('\n') }
