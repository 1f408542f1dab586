package upgrade

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

var from = flag.String("from", "", "commit of the earlier engine; empty: skip the test")

const (
	strategyA = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":5},{"eventName":"Bought","eventType":"conversion","score":50}],` +
		`"facetsScoring":[{"facetName":"brand","score":60},{"facetName":"color","score":40}],` +
		`"personalizationImpact":50,"halfLives":[7,30],"aliases":{"color":{"Crimson":"Red"}}}`
	strategyB = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":9},{"eventName":"Bought","eventType":"conversion","score":30}],` +
		`"facetsScoring":[{"facetName":"brand","score":10},{"facetName":"size","score":70}],` +
		`"personalizationImpact":50,"halfLives":[30]}`
	strategyC = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":2},{"eventName":"Bought","eventType":"conversion","score":20}],` +
		`"facetsScoring":[{"facetName":"brand","score":30},{"facetName":"color","score":20},{"facetName":"size","score":10}],` +
		`"personalizationImpact":50}`
)

// TestUpgrade runs the engine of an earlier commit beside the engine of this
// checkout, on each schema of the log.
func TestUpgrade(t *testing.T) {
	if *from == "" {
		t.Skip("no earlier commit is given: scripts/check-upgrade names one, as -from does")
	}
	old, current := buildEarlier(t, *from), build(t, "../..")
	b := startBackends(t)
	t.Setenv("BIGTABLE_EMULATOR_HOST", b.bigtable)
	if !b.shared {
		t.Log("the engines share an in-process Bigtable; with gcloud's emulators they share configuration and messages too")
	}
	for _, schema := range []string{"wide", "narrow"} {
		t.Run(schema, func(t *testing.T) {
			w := newWorld(t, b)
			app := fmt.Sprintf("%s-%d", schema, time.Now().UnixMilli()) // emulators that run already may have older apps
			startNew := func() *engine { return startEngine(t, "new", current, app, schema, b) }
			w.old = startEngine(t, "old", old, app, schema, b)
			if !b.shared {
				w.current = startNew() // at about the same time: see align
			}
			w.rollout(startNew)
		})
	}
}

// longUsers is how many users have so many events that engines pack them.
const longUsers = 6

// rollout is the whole check: the old engine alone, both, the new one alone, and
// the old one again as after a rollback.
func (w *world) rollout(startNew func() *engine) {
	w.oldAlone()
	if w.current == nil {
		w.current = startNew()
	}
	w.must("settings of the new engine", w.settings(w.current))
	w.setStrategy(w.old, strategyA)
	w.firstReads()
	w.rank(strategyA)
	w.interleaved()
	w.histories()
	w.deletions()
	w.lateObjects()
	w.strategies()
	w.audit()
	w.rollback(startNew)
	w.newAlone(startNew)
}

var colors, brands, sizes = []string{"Red", "Crimson", "Blue", "Green"}, []string{"Acme", "Globex", "Initech"}, []string{"S", "M", "L"}

// some returns the i-th of a fixed series of events, at a time of its own: with
// filters, or with objects.
func (w *world) some(i int) happened {
	w.clock += 1000
	h := happened{time: w.clock, typ: "view", name: "Viewed"}
	if i%3 == 0 {
		h.typ, h.name = "conversion", "Bought"
	}
	if i%2 == 0 {
		h.objects = []string{fmt.Sprintf("o%d", i%7), fmt.Sprintf("o%d", (i+1)%7)}
	} else {
		h.filters = []string{"color:" + colors[i%len(colors)], "brand:" + brands[i%len(brands)], "size:" + sizes[i%len(sizes)]}
	}
	return h
}

// past returns n events, one every stride back from now.
func (w *world) past(n int, stride time.Duration) []happened {
	now := time.Now().UnixMilli()
	events := make([]happened, n)
	for i := range events {
		events[i] = w.some(i)
		events[i].time = now - int64(i+1)*stride.Milliseconds()
	}
	return events
}

func (w *world) settings(by *engine) error {
	_, err := by.Catalog().SetSettings(w.t.Context(), index, api.Settings{AttributesForFaceting: []string{"brand", "color", "size"}})
	return err
}

// oldAlone is what the new engine finds: a catalog, live events, histories in
// blocks and stored profiles, all by the old engine.
func (w *world) oldAlone() {
	w.t.Helper()
	ctx := w.t.Context()
	w.must("settings of the old engine", w.settings(w.old))
	w.must("set a strategy", w.old.Strategies().SetJSON(ctx, []byte(strategyA), client.SetOptions{}))
	objects := map[string][]string{}
	for i := range 7 {
		objects[fmt.Sprintf("o%d", i)] = []string{"brand:" + brands[i%3], "color:" + colors[i%4], "size:" + sizes[i%3]}
	}
	w.addObjects(w.old, objects)
	for u := range 8 {
		for i := range 4 {
			w.send(w.old, fmt.Sprintf("live%d", u), w.some(u+i))
		}
	}
	for u := range longUsers {
		w.importHistory(w.old, fmt.Sprintf("long%d", u), w.past(400, 5*time.Hour)...)
	}
}

// firstReads: the new engine reads the old one's rows.
func (w *world) firstReads() {
	w.t.Helper()
	w.agree("rows of the old engine", w.old, w.current)
	w.pack(w.old)
	_, stored := w.agree("blocks and profiles of the old engine", w.old, w.current)
	if stored < len(w.log) {
		w.t.Errorf("the new engine served %d of the old engine's %d stored profiles as they are", stored, len(w.log))
	}
	for u := range 4 {
		w.send(w.current, fmt.Sprintf("new%d", u), w.some(u), w.some(u+1))
		w.send(w.current, fmt.Sprintf("live%d", u), w.some(u+2))
	}
	_, stored = w.agree("rows of the new engine", w.current, w.old)
	if w.shared && stored < len(w.log) {
		w.t.Errorf("the old engine served %d of %d stored profiles as they are", stored, len(w.log))
	}
}

// interleaved: both engines write events of the same users at the same time.
func (w *world) interleaved() {
	w.t.Helper()
	type batch struct {
		by     *engine
		user   string
		events []happened
	}
	var batches []batch
	for i := range 40 {
		by := w.engines()[i%2]
		user := fmt.Sprintf("live%d", i%5)
		batches = append(batches, batch{by, user, []happened{w.some(i), w.some(i + 1)}})
	}
	var sending sync.WaitGroup
	failed := make([]error, len(batches))
	for i, b := range batches {
		sent := []api.Event{b.events[0].event(b.user), b.events[1].event(b.user)}
		sending.Go(func() { failed[i] = b.by.Events().Send(w.t.Context(), sent...) })
		w.log[b.user] = append(w.log[b.user], b.events...)
	}
	sending.Wait()
	w.must("send events to both engines", errors.Join(failed...))
	w.agree("interleaved events", w.current, w.old)
	w.agree("interleaved events, the old engine first", w.old, w.current)
}

// histories: each engine packs late events into blocks, and the other adds late
// events in their range.
func (w *world) histories() {
	w.t.Helper()
	for round, pair := range [][2]*engine{{w.current, w.old}, {w.old, w.current}} {
		packs, adds := pair[0], pair[1]
		w.late(packs, 30+20*round)
		w.pack(packs) // before anybody reads: a read or an event may pack too
		w.agree("blocks of the "+packs.name+" engine", adds, packs)
		w.late(adds, 40+20*round)
		w.agree("late events of the "+adds.name+" engine in blocks of the "+packs.name+" one", adds, packs)
		for u := range longUsers {
			w.send(adds, fmt.Sprintf("long%d", u), w.some(u+1))
		}
		w.agree("events after them", packs, adds)
	}
}

// late imports an event of each long user from some days ago.
func (w *world) late(by *engine, days int) {
	w.t.Helper()
	for u := range longUsers {
		h := w.some(u)
		h.time = time.Now().Add(-time.Duration(days+u) * 24 * time.Hour).UnixMilli()
		w.importHistory(by, fmt.Sprintf("long%d", u), h)
	}
}

// pack recomputes all profiles by one engine, which must pack the histories of the
// long users.
func (w *world) pack(by *engine) {
	w.t.Helper()
	before, packed := w.blocks(), map[string]bool{}
	w.recompute(by)
	for key, value := range w.blocks() {
		if before[key] != value {
			app, rest, _ := strings.Cut(key, ",")
			user, _, _ := strings.Cut(rest, ",")
			packed[app+user] = true
		}
	}
	if len(packed) < longUsers {
		w.t.Fatalf("the %s engine packed the histories of %d users, want %d: the check would prove nothing about blocks", by.name, len(packed), longUsers)
	}
}

// blocks returns the rows of packed histories.
func (w *world) blocks() map[string]string {
	w.t.Helper()
	c, err := bigtable.NewClient(w.t.Context(), stack.Project, stack.Instance)
	w.must("open Bigtable", err)
	defer func() { w.must("close Bigtable", c.Close()) }()
	found := map[string]string{}
	err = c.Open(store.TableHistories).ReadRows(w.t.Context(), bigtable.PrefixRange(w.current.App()+","), func(r bigtable.Row) bool {
		for _, cells := range r {
			found[r.Key()] = string(cells[0].Value)
		}
		return true
	})
	w.must("read blocks", err)
	return found
}

// deletions: a deletion by either engine holds for both.
func (w *world) deletions() {
	w.t.Helper()
	w.deleteUser(w.current, "live0")
	w.deleteUser(w.current, "long0")
	w.agree("deletions by the new engine", w.current, w.old)
	w.deleteUser(w.old, "live1")
	w.deleteUser(w.old, "long1")
	w.agree("deletions by the old engine", w.old, w.current)
	for i, user := range []string{"live0", "live1", "long0", "long1"} {
		w.importHistory(w.engines()[i%2], user, w.past(3, 48*time.Hour)...) // deleted already
		fresh := w.some(i)
		fresh.time = max(time.Now().UnixMilli(), w.deleted[user]+1)
		w.send(w.engines()[(i+1)%2], user, fresh)
	}
	w.agree("events before and after a deletion", w.current, w.old)
	w.recompute(w.current)
	w.agree("a recompute after deletions", w.old, w.current)
}

// lateObjects: either engine gives events of the other the filters of objects that
// came later.
func (w *world) lateObjects() {
	w.t.Helper()
	for i, pair := range [][2]*engine{{w.current, w.old}, {w.old, w.current}} {
		writes, enriches := pair[0], pair[1]
		id := fmt.Sprintf("late%d", i)
		h := w.some(1)
		h.filters, h.objects = nil, []string{id, "o1"}
		w.send(writes, "live3", h)
		past := h
		past.time = time.Now().Add(-40 * 24 * time.Hour).UnixMilli()
		w.importHistory(writes, "long3", past)
		w.agree("events with an unknown object", writes, enriches)
		w.recompute(writes) // packs them
		w.addObjects(enriches, map[string][]string{id: {"brand:Hooli", "color:Blue"}})
		w.reenrich(enriches)
		w.agree("events of the "+writes.name+" engine with objects added by the "+enriches.name+" one", enriches, writes)
	}
}

// strategies: a strategy that either engine sets counts for both.
func (w *world) strategies() {
	w.t.Helper()
	w.setStrategy(w.old, strategyB)
	w.awaitBoth("a strategy by the old engine")
	w.setStrategy(w.current, strategyC)
	w.awaitBoth("a strategy by the new engine")
	w.recompute(w.old)
	w.agree("a recompute by the old engine", w.current, w.old)
	w.rank(strategyC)
	w.send(w.old, "live2", w.some(1))
	w.send(w.current, "live4", w.some(2))
	w.agree("events after a ranking", w.current, w.old)
}

// awaitBoth waits until both engines use the strategy: each may use its cached
// configuration for some seconds.
func (w *world) awaitBoth(step string) {
	w.t.Helper()
	w.agreeEventually(step, w.old)
	w.agreeEventually(step, w.current)
	w.agree(step, w.old, w.current)
}

func (w *world) agreeEventually(step string, e *engine) {
	w.t.Helper()
	var wrong []string
	if !poll(w.t.Context(), settleTimeout, func() bool {
		wrong, _ = w.differences(w.t.Context(), e)
		return len(wrong) == 0
	}) {
		w.t.Fatalf("%s: %s", step, strings.Join(wrong, "\n"))
	}
}

// newAlone: the old engine is gone, and the new one stores small histories in its users'
// rows.
func (w *world) newAlone(startNew func() *engine) {
	w.t.Helper()
	w.old.stop(w.t)
	w.current.stop(w.t)
	w.current = startNew()
	if !w.shared {
		w.must("settings of the new engine", w.settings(w.current))
		w.must("set a strategy", w.current.Strategies().SetJSON(w.t.Context(), []byte(ranked(strategyC)), client.SetOptions{}))
	}
	w.recomputeOf(w.current, api.RecomputeRequest{Fold: true})
	if w.inlineBlocks() == 0 {
		w.t.Error("no row of a user holds a block: the check would prove nothing about them")
	}
	w.agreeEventually("the new engine alone", w.current)
}

// inlineBlocks counts the users whose rows hold a block.
func (w *world) inlineBlocks() int {
	w.t.Helper()
	c, err := bigtable.NewClient(w.t.Context(), stack.Project, stack.Instance)
	w.must("open Bigtable", err)
	defer func() { w.must("close Bigtable", c.Close()) }()
	n := 0
	err = c.Open(store.TableUsers).ReadRows(w.t.Context(), bigtable.PrefixRange(w.current.App()+","), func(bigtable.Row) bool {
		n++
		return true
	}, bigtable.RowFilter(bigtable.FamilyFilter("h")))
	w.must("read rows of users", err)
	return n
}

// rollback: the old engine continues alone on rows of both, and the new one again
// after it.
func (w *world) rollback(startNew func() *engine) {
	w.t.Helper()
	w.current.stop(w.t)
	for u := range 4 {
		w.send(w.old, fmt.Sprintf("new%d", u), w.some(u))
	}
	w.recompute(w.old)
	w.agreeEventually("the old engine alone", w.old)
	w.current = startNew()
	if !w.shared {
		w.must("settings of the new engine", w.settings(w.current))
		w.must("set a strategy", w.current.Strategies().SetJSON(w.t.Context(), []byte(ranked(strategyC)), client.SetOptions{}))
	}
	w.agree("the new engine after a rollback", w.old, w.current)
}
