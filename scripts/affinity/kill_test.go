package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// killsVariable is how often TestKilledWithData kills the engine. Default: 4.
const killsVariable = "AFFINITY_KILLS"

// TestKilledWithData kills an engine with a data folder at random moments, under load, and
// starts it again. Whatever was acknowledged is there, and each event counts once.
func TestKilledWithData(t *testing.T) {
	if testing.Short() {
		t.Skip("-short kills no process")
	}
	t.Parallel()
	kills := 4
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	environment := append(os.Environ(), asTool+"=1", "BIGTABLE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=", "FIRESTORE_EMULATOR_HOST=")
	data := filepath.Join(t.TempDir(), "data")
	start := func() (*process, *client.Client) {
		began := time.Now()
		p := startProcess(t, environment, "--data", data, fmt.Sprintf("--sync=%v", random.IntN(2) == 1))
		t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
		c, err := client.New(client.Config{URL: p.url, App: "demo", Key: stack.DemoKey, Retry: client.NoRetry})
		must(t, err)
		return p, c
	}
	engine, c := start()
	acked := newAcknowledged(0)
	must(t, c.Strategies().SetJSON(t.Context(), acked.strategy(1), client.SetOptions{}))
	for range kills {
		moment := time.Duration(20+random.IntN(1200)) * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for w := range killWorkers {
			load.Go(func() { acked.load(ctx, c, w) })
		}
		<-time.After(moment)
		engine.kill(t)
		stop()
		load.Wait()
		engine, c = start()
		if err := acked.check(t, c); err != nil {
			t.Fatalf("killed %v after the load began: %v", moment, err)
		}
	}
	t.Logf("%d kills, %d events, %d objects and %d strategies were acknowledged", kills, acked.events, len(acked.objects), acked.score)
	if acked.events == 0 || len(acked.objects) == 0 || acked.score < 2 {
		t.Error("the test has not acknowledged anything of each kind")
	}
	if err := engine.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := engine.cmd.Wait(); err != nil {
		t.Errorf("the engine does not end cleanly after all: %v", err)
	}
}

// killWorkers is how many clients send at a time: the first changes strategies and
// objects, the second imports, the others send events.
const killWorkers = 8

// forgetter is a worker who deletes users, in tests that want one.
const forgetter = killWorkers

// acknowledged is what the engine has answered with success.
type acknowledged struct {
	now int64
	// pause is how long a client waits between two requests.
	pause time.Duration

	mu      sync.Mutex
	events  int
	sent    map[string]int             // number of the last event of a user, acknowledged or not
	in      map[string]map[string]bool // by user: values of the facet n
	objects map[string]bool
	score   int      // of the strategy: the last that was set
	gone    []string // users who were deleted after their last event, and opted out
	cut     bool     // the power has failed: what is acknowledged now is no promise
}

func newAcknowledged(pause time.Duration) *acknowledged {
	return &acknowledged{now: time.Now().UnixMilli(), pause: pause, sent: map[string]int{},
		in: map[string]map[string]bool{}, objects: map[string]bool{}}
}

// promised notes with f what was acknowledged.
func (a *acknowledged) promised(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.cut {
		f()
	}
}

func (a *acknowledged) strategy(score int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"n","score":100}],"personalizationImpact":%d}`, score%100))
}

// next makes an event that is unlike any other: it has a value of its own.
func (a *acknowledged) next(user string) (e api.Event, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[user]++
	value = fmt.Sprint(a.sent[user])
	return api.Event{EventType: "view", EventName: "Seen", Index: "products", UserToken: user,
		Timestamp: a.now - int64(a.sent[user]), Filters: []string{"n:" + value}}, value
}

func (a *acknowledged) add(user, value string) {
	a.promised(func() {
		if a.in[user] == nil {
			a.in[user] = map[string]bool{}
		}
		a.in[user][value] = true
		a.events++
	})
}

// load sends requests until one fails.
func (a *acknowledged) load(ctx context.Context, c *client.Client, worker int) {
	for i := 0; ctx.Err() == nil; i++ {
		var err error
		switch worker {
		case 0:
			err = a.configure(ctx, c, i)
		case 1:
			err = a.importSome(ctx, c, i)
		case forgetter:
			err = a.forget(ctx, c, i)
		default:
			user := fmt.Sprintf("user-%d-%d", worker, i%40)
			e, value := a.next(user)
			if err = c.Events().Send(ctx, e); err == nil {
				a.add(user, value)
			}
		}
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(a.pause):
		}
	}
}

// configure sets a strategy and an object.
func (a *acknowledged) configure(ctx context.Context, c *client.Client, i int) error {
	id := fmt.Sprintf("object-%d-%d", len(a.objects), i)
	_, err := c.Catalog().Batch(ctx, "products", api.BatchAction{Action: "addObject", Body: json.RawMessage(fmt.Sprintf(`{"objectID":%q,"color":"red"}`, id))})
	if err != nil {
		return err
	}
	a.promised(func() { a.objects[id] = true }) // no other worker looks at objects
	if i%20 != 0 {                              // strategies are limited
		return nil
	}
	if err := c.Strategies().SetJSON(ctx, a.strategy(a.score+1), client.SetOptions{}); err != nil {
		return err
	}
	a.promised(func() { a.score++ })
	return nil
}

// forget sends an event of a new user, opts them out, and deletes them.
func (a *acknowledged) forget(ctx context.Context, c *client.Client, i int) error {
	user := fmt.Sprintf("gone-%d-%d", len(a.gone), i)
	e, _ := a.next(user)
	if err := c.Events().Send(ctx, e); err != nil {
		return err
	}
	if _, err := c.Profiles().OptOut(ctx, user, api.OptOutRequest{}); err != nil {
		return err
	}
	if _, err := c.Profiles().Delete(ctx, user); err != nil {
		return err
	}
	a.promised(func() { a.gone = append(a.gone, user) })
	return nil
}

func (a *acknowledged) importSome(ctx context.Context, c *client.Client, i int) error {
	var lines bytes.Buffer
	var users, values []string
	for n := range 20 {
		user := fmt.Sprintf("imported-%d", (i*20+n)%200)
		e, value := a.next(user)
		line, err := json.Marshal(e)
		if err != nil {
			log.Panic(err)
		}
		users, values = append(users, user), append(values, value)
		lines.Write(append(line, '\n'))
	}
	if _, err := c.Events().Import(ctx, "products", lines.Bytes()); err != nil {
		return err
	}
	for n := range users {
		a.add(users[n], values[n])
	}
	return nil
}

// check waits until all that was acknowledged is there, and fails if an event counts
// more than once.
func (a *acknowledged) check(t *testing.T, c *client.Client) error {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := a.complete(t, c)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(100 * time.Millisecond)
	}
}

func (a *acknowledged) complete(t *testing.T, c *client.Client) error {
	t.Helper()
	s, err := c.Strategies().Get(t.Context())
	if err != nil {
		return err
	}
	if s.PersonalizationImpact != a.score%100 && s.PersonalizationImpact != (a.score+1)%100 && a.score > 0 {
		return fmt.Errorf("the strategy is number %d, %d was acknowledged", s.PersonalizationImpact, a.score)
	}
	for id := range a.objects {
		if _, err := c.Catalog().Get(t.Context(), "products", id); err != nil {
			return fmt.Errorf("object %s: %w", id, err)
		}
	}
	for _, user := range a.gone {
		out, err := c.Profiles().OptedOut(t.Context(), user)
		if err != nil || !out.OptedOut {
			return fmt.Errorf("user %s has opted out, and the engine says %v (%w)", user, out, err)
		}
		p, err := c.Profiles().Get(t.Context(), user, api.ProfileQuery{})
		if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
			continue
		}
		if err != nil || len(p.Affinities) > 0 {
			return fmt.Errorf("user %s was deleted, and has %v (%w)", user, p.Affinities, err)
		}
	}
	for user, values := range a.in {
		p, err := c.Profiles().Get(t.Context(), user, api.ProfileQuery{Limit: 1000})
		if err != nil {
			return fmt.Errorf("user %s: %w", user, err)
		}
		counted := map[string]float64{}
		for _, affinity := range p.Affinities {
			counted[affinity.Value] = affinity.Score
		}
		for value := range values {
			if counted[value] == 0 {
				return fmt.Errorf("user %s lacks event %s of %d", user, value, len(values))
			}
		}
		for value, score := range counted {
			if score != 100 {
				t.Fatalf("user %s: event %s counts %v, want once 100", user, value, score)
			}
		}
	}
	return nil
}
