package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// visits are events of a few users, each of its own time, so that every engine takes one for the same event. They go to
// the first engine, and then to both.
type visits struct {
	engines []*client.Client
	begun   time.Time

	mu   sync.Mutex
	sent int
	both bool
}

const visitors = 5

var colors = []string{"red", "blue", "green"}

func (v *visits) send(t *testing.T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := api.Event{EventType: "view", EventName: "Seen", Index: "shoes", UserToken: fmt.Sprint("u", v.sent%visitors),
		ObjectIDs: []string{colors[v.sent%len(colors)]}, Timestamp: v.begun.UnixMilli() - int64(v.sent)}
	for i, c := range v.engines {
		if i > 0 && !v.both {
			break
		}
		for range 1 + v.sent%2 { // every second one is sent again, as after a lost answer
			if err := c.Events().Send(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
	}
	v.sent++
}

// toBoth sends what follows to both engines.
func (v *visits) toBoth() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.both = true
}

// An app moves to another engine while its events go on: first a dump, so that the other engine knows the objects, then
// the events to both, then another dump. No event is lost, and none counts twice.
func TestGrow(t *testing.T) {
	t.Parallel()
	stacks := []*stack.Stack{startEngine(t, stack.Options{RetentionDays: 90}), startEngine(t, stack.Options{RetentionDays: 90})}
	v := &visits{engines: []*client.Client{clientOf(t, stacks[0].URL), clientOf(t, stacks[1].URL)}, begun: time.Now()}
	must(t, v.engines[0].Strategies().SetJSON(t.Context(), []byte(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":100}],"personalizationImpact":50}`), client.SetOptions{}))
	var objects []api.BatchAction
	for _, color := range colors {
		objects = append(objects, api.BatchAction{Action: api.ActionAddObject,
			Body: fmt.Appendf(nil, `{"objectID":%q,"color":%[1]q}`, color)})
	}
	_, err := v.engines[0].Catalog().Batch(t.Context(), "shoes", objects...)
	must(t, err)
	for range 100 {
		v.send(t)
	}
	stop := make(chan bool)
	var load sync.WaitGroup
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				v.send(t)
			}
		}
	})
	move := func(name string) {
		t.Helper()
		dump := filepath.Join(t.TempDir(), name)
		affinity(t, "", "dump", "--url", stacks[0].URL, "--out", dump).wants(t, cli.ExitOK)
		affinity(t, "", "restore", "--no-wait", "--url", stacks[1].URL, dump).wants(t, cli.ExitOK)
	}
	move("first.ndjson")
	v.toBoth()
	must(t, stacks[0].Idle(t.Context())) // a dump lacks what is still on its way
	move("second.ndjson")
	close(stop)
	load.Wait()

	profiles := func(i int) (all []string, counted int) {
		must(t, stacks[i].Idle(t.Context()))
		for u := range visitors {
			p, err := v.engines[i].Profiles().Get(t.Context(), fmt.Sprint("u", u), api.ProfileQuery{})
			must(t, err)
			x, err := v.engines[i].Profiles().Explain(t.Context(), fmt.Sprint("u", u), api.ExplainQuery{})
			must(t, err)
			text, err := json.Marshal([]any{p.Affinities, x.Events})
			must(t, err)
			all, counted = append(all, string(text)), counted+x.Events.Counted
		}
		return all, counted
	}
	want, counted := profiles(0)
	got, _ := profiles(1)
	if diff := cmp.Diff(want, got); diff != "" || counted != v.sent {
		t.Errorf("of %d events %d count: %s", v.sent, counted, diff)
	}
}
