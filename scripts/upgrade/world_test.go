package upgrade

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	index         = "products"
	retentionDays = 90
	// settleTimeout bounds the wait for events that were accepted. Pub/Sub
	// delivers a message of a stopped engine again after its lease.
	settleTimeout = 90 * time.Second
	jobTimeout    = 2 * time.Minute
)

// world is both engines, and what both must answer: every event that either has
// accepted, and the deletions.
type world struct {
	t            *testing.T
	old, current *engine
	shared       bool // both have one configuration
	ranks        bool // the strategy has a ranking, by which the new engine orders objects
	strategy     strategy.Strategy
	log          map[string][]happened
	deleted      map[string]int64    // ms, by user
	catalog      map[string][]string // filters by objectID
	clock        int64               // ms: the time of the last event that some returned
}

// happened is an event as it was sent. Its filters are those of objects if it
// names some.
type happened struct {
	time             int64
	typ, name        string
	objects, filters []string
}

func newWorld(t *testing.T, b backends) *world {
	return &world{
		t: t, shared: b.shared, log: map[string][]happened{}, deleted: map[string]int64{}, catalog: map[string][]string{},
		clock: time.Now().Add(-24 * time.Hour).UnixMilli(),
	}
}

func (w *world) engines() []*engine { return []*engine{w.old, w.current} }

// must fails the test on an error.
func (w *world) must(what string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// setStrategy sets a strategy by one engine, and by the other too if each has a
// configuration of its own.
func (w *world) setStrategy(by *engine, text string) {
	w.t.Helper()
	decoded, err := strategy.Decode([]byte(text))
	w.must("decode strategy", err)
	w.strategy, w.ranks = decoded, false
	if w.shared {
		w.must("set the strategy by the "+by.name+" engine", by.Strategies().SetJSON(w.t.Context(), json.RawMessage(text), client.SetOptions{}))
		return
	}
	w.align(text)
}

// align sets a strategy by both engines under one version. A configuration in
// memory counts versions from the start of its process on, so the engine that is
// behind is given other strategies first.
func (w *world) align(text string) {
	w.t.Helper()
	for _, e := range w.engines() {
		w.must("set the strategy by the "+e.name+" engine", e.Strategies().SetJSON(w.t.Context(), json.RawMessage(text), client.SetOptions{}))
	}
	behind, ahead := w.old, w.current
	gap := w.version(ahead) - w.version(behind)
	if gap < 0 {
		behind, gap = ahead, -gap
	}
	if gap == 1 { // one change cannot end where it began
		w.advance(ahead, text, 2)
		gap += 2
	}
	w.advance(behind, text, gap)
	if old, current := w.version(w.old), w.version(w.current); old != current {
		w.t.Fatalf("strategy versions = %d and %d, want the same", old, current)
	}
}

// advance raises the version of an engine's strategy by n, 0 or more than 1, and
// leaves the strategy as it is.
func (w *world) advance(e *engine, text string, n int64) {
	w.t.Helper()
	other := strings.Replace(text, `"personalizationImpact":50`, `"personalizationImpact":%d`, 1)
	for i := range n {
		step := fmt.Sprintf(other, i%50)
		if i == n-1 {
			step = text
		}
		w.must("set a strategy", e.Strategies().SetJSON(w.t.Context(), json.RawMessage(step), client.SetOptions{}))
	}
}

// version returns the strategy version of an engine: that of any profile.
func (w *world) version(e *engine) int64 {
	w.t.Helper()
	jobs, err := e.Jobs().StartRecompute(w.t.Context(), api.RecomputeRequest{OnlyStale: true})
	w.must("read the version of the strategy", err)
	return jobs.StrategyVersion
}

// addObjects adds objects by one engine. Catalogs are in Bigtable.
func (w *world) addObjects(by *engine, objects map[string][]string) {
	w.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(objects)) {
		record := map[string]any{"objectID": id}
		for _, filter := range objects[id] {
			facet, value, _ := strings.Cut(filter, ":")
			record[facet] = value
		}
		body, err := json.Marshal(record)
		w.must("encode an object", err)
		_, err = by.Catalog().Batch(w.t.Context(), index, api.BatchAction{Action: api.ActionUpdateObject, Body: body})
		w.must("add object "+id+" by the "+by.name+" engine", err)
		w.catalog[id] = objects[id]
	}
}

// send sends live events of a user to one engine.
func (w *world) send(by *engine, user string, events ...happened) {
	w.t.Helper()
	sent := make([]api.Event, len(events))
	for i, h := range events {
		sent[i] = h.event(user)
	}
	w.must("send events to the "+by.name+" engine", by.Events().Send(w.t.Context(), sent...))
	w.log[user] = append(w.log[user], events...)
}

// importHistory imports events of a user by one engine.
func (w *world) importHistory(by *engine, user string, events ...happened) {
	w.t.Helper()
	var lines strings.Builder
	for _, h := range events {
		line, err := json.Marshal(h.event(user))
		w.must("encode an event", err)
		lines.Write(append(line, '\n'))
	}
	_, err := by.Events().Import(w.t.Context(), index, []byte(lines.String()))
	w.must("import by the "+by.name+" engine", err)
	w.log[user] = append(w.log[user], events...)
}

func (h happened) event(user string) api.Event {
	return api.Event{EventType: h.typ, EventName: h.name, Index: index, UserToken: user, Timestamp: h.time,
		ObjectIDs: h.objects, Filters: h.filters}
}

// deleteUser deletes a user by one engine.
func (w *world) deleteUser(by *engine, user string) {
	w.t.Helper()
	answer, err := by.Profiles().Delete(w.t.Context(), user)
	w.must("delete a user by the "+by.name+" engine", err)
	w.deleted[user] = answer.DeletedUntil.UnixMilli()
}

// reference computes the formula over what was sent.
func (w *world) reference(user string, at int64) affinity.Profile {
	return affinity.Reference(w.events(user), w.strategy, affinity.Window{Now: at, RetentionDays: retentionDays, DeletedUntil: w.deleted[user]})
}

// events returns what was sent of a user, as scoring takes it, by time.
func (w *world) events(user string) (events []affinity.Event) {
	for _, h := range w.log[user] {
		counts := map[string]int{}
		for _, filter := range h.filters {
			counts[filter]++
		}
		for _, id := range h.objects {
			for _, filter := range w.catalog[id] {
				counts[filter]++
			}
		}
		e := affinity.Event{Time: h.time, Type: event.Type(h.typ), Name: h.name}
		for filter, n := range counts {
			facet, value, _ := strings.Cut(filter, ":")
			e.Counts = append(e.Counts, affinity.Count{Facet: facet, Value: value, N: n})
		}
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b affinity.Event) int { return cmp.Compare(a.Time, b.Time) })
	return events
}

// differences returns what an engine answers wrongly about users, and how many
// answers were stored profiles.
func (w *world) differences(ctx context.Context, e *engine) (wrong []string, stored int) {
	users := slices.Sorted(maps.Keys(w.log))
	limit := 10_000
	answer, err := e.Profiles().List(ctx, api.ProfilesRequest{UserTokens: users, Limit: &limit})
	if err != nil {
		return []string{fmt.Sprintf("the %s engine does not answer: %v", e.name, err)}, 0
	}
	found := map[string]api.Profile{}
	for _, p := range answer.Profiles {
		found[p.UserToken] = p
		if p.Source == api.SourceStored {
			stored++
		}
	}
	now := time.Now().UnixMilli()
	for _, user := range users {
		p, ok := found[user]
		at := now
		if ok {
			at = p.AsOf.UnixMilli()
		}
		want := w.reference(user, at)
		if difference := compare(p, ok, want); difference != "" {
			wrong = append(wrong, fmt.Sprintf("the %s engine: profile of %s (%s, strategy %d): %s", e.name, user, p.Source, p.StrategyVersion, difference))
		}
	}
	return wrong, stored
}

// compare returns the first difference between an answer and the formula, or "".
func compare(got api.Profile, found bool, want affinity.Profile) string {
	if found != want.Known {
		return fmt.Sprintf("found = %t, want %t", found, want.Known)
	}
	if !found {
		return ""
	}
	if at := got.LastEventAt.UnixMilli(); at != want.LastEventAt {
		return fmt.Sprintf("lastEventAt = %d, want %d", at, want.LastEventAt)
	}
	if got.Total != want.Total || len(got.Affinities) != want.Total {
		return fmt.Sprintf("%d affinities, %d listed, want %d", got.Total, len(got.Affinities), want.Total)
	}
	name := func(facet, value string) string { return facet + ":" + value }
	scores := map[string]float64{}
	for _, a := range want.Affinities {
		scores[name(a.Facet, a.Value)] = a.Scores[0]
	}
	for _, a := range got.Affinities {
		score := scores[name(a.Facet, a.Value)]
		if math.Abs(a.Score-score) > 1e-9*cmp.Or(score, 1) {
			return fmt.Sprintf("%s = %v, want %v", name(a.Facet, a.Value), a.Score, score)
		}
	}
	return ""
}

// agree waits until one engine answers as the formula says, and requires the same
// of the other at once: the engines share the store, so nothing is left to wait
// for. It returns how many profiles each served as they are stored.
func (w *world) agree(step string, first, second *engine) (storedFirst, storedSecond int) {
	w.t.Helper()
	var wrong []string
	if !poll(w.t.Context(), settleTimeout, func() bool {
		wrong, _ = w.differences(w.t.Context(), first)
		return len(wrong) == 0
	}) {
		w.t.Fatalf("%s: %s", step, strings.Join(wrong, "\n"))
	}
	if wrong, storedSecond = w.differences(w.t.Context(), second); len(wrong) > 0 {
		w.t.Fatalf("%s: %s", step, strings.Join(wrong, "\n"))
	}
	if wrong, storedFirst = w.differences(w.t.Context(), first); len(wrong) > 0 {
		w.t.Fatalf("%s: %s", step, strings.Join(wrong, "\n"))
	}
	if w.ranks {
		w.checkRanks(step)
	}
	w.t.Logf("%s: %d profiles of both engines equal the formula (served as stored: %s %d, %s %d)", step, len(w.log),
		first.name, storedFirst, second.name, storedSecond)
	return storedFirst, storedSecond
}

// recompute recomputes all profiles by one engine.
func (w *world) recompute(by *engine) { w.t.Helper(); w.recomputeOf(by, api.RecomputeRequest{}) }

func (w *world) recomputeOf(by *engine, request api.RecomputeRequest) {
	w.t.Helper()
	job, err := by.Jobs().StartRecompute(w.t.Context(), request)
	w.must("start a recompute by the "+by.name+" engine", err)
	if !poll(w.t.Context(), jobTimeout, func() bool {
		job, err = by.Jobs().Recompute(w.t.Context(), job.ID)
		return err != nil || job.State.Ended()
	}) || err != nil || job.State != api.JobDone {
		w.t.Fatalf("recompute by the %s engine: %+v, %v", by.name, job, err)
	}
}

// reenrich gives events the filters of objects that came later, by one engine.
func (w *world) reenrich(by *engine) {
	w.t.Helper()
	job, err := by.Jobs().StartReenrichment(w.t.Context(), api.ReenrichRequest{})
	w.must("start a re-enrichment by the "+by.name+" engine", err)
	if !poll(w.t.Context(), jobTimeout, func() bool {
		job, err = by.Jobs().Reenrichment(w.t.Context(), job.ID)
		return err != nil || job.State.Ended()
	}) || err != nil || job.State != api.JobDone || job.StillUnknown > 0 || job.Faulty > 0 {
		w.t.Fatalf("re-enrichment by the %s engine: %+v, %v", by.name, job, err)
	}
}

// audit compares stored and computed profiles with the log, by both engines.
func (w *world) audit() {
	w.t.Helper()
	for _, e := range w.engines() {
		sample := api.MaxAuditSample
		a, err := e.Jobs().Audit(w.t.Context(), api.AuditRequest{Sample: &sample})
		w.must("audit by the "+e.name+" engine", err)
		if e.name == "old" {
			// It knows no format of the new engine, which stores one for deleted users. It
			// computes such profiles for its readers, and its audit calls them damaged.
			a.Differences = slices.DeleteFunc(a.Differences, func(d api.AuditDifference) bool {
				return strings.Contains(string(d.Got), "is not known, want")
			})
			a.Differing = len(a.Differences) + a.Omitted
		}
		if a.Differing > 0 {
			w.t.Errorf("audit by the %s engine: %d profiles differ: %+v", e.name, a.Differing, a)
		}
	}
}
