package crowdbuild_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	app   = jobtest.App
	shoes = "shoes"
	hats  = "hats, red"
	known = 20 // objects of each
)

// harness has users with events, a catalog, and a store whose requests pass the
// gate of the harness of jobs.
type harness struct {
	*jobtest.Harness
	t      *testing.T
	store  *store.Store
	client *bigtable.Client
	events map[string][]affinity.Event // by user, in order
	runner *crowdbuild.Runner
	group  int // users that a sweep reads at a time, 0 means 1
}

var settings = job.Settings{ShardUsers: 3, Budget: time.Minute, Attempts: 100}

// newHarness returns a harness with users named a, b, c ..., and a catalog with
// some objects of two indexes.
func newHarness(t *testing.T, users int, work crowdbuild.Work) *harness {
	h := &harness{t: t, Harness: jobtest.New(t, crowdbuild.Collection, users, settings), events: map[string][]affinity.Event{}}
	h.store, h.client = storetest.NewWithClient(t, h.Dial()...)
	h.use(work)
	for _, index := range []string{shoes, hats} {
		var objects []store.Object
		for i := range known {
			filters := []event.Filter{{Facet: "index", Value: index}, {Facet: "parity", Value: fmt.Sprint(i % 2)}}
			objects = append(objects, store.Object{ID: objectID(i), Filters: store.ObjectFilters{Filters: filters}})
		}
		must.Succeed(t, h.store.Catalog.PutObjects(t.Context(), app, index, objects))
	}
	return h
}

// use makes the harness run builds with the bounds of work.
func (h *harness) use(work crowdbuild.Work) {
	work.Store, work.Source, work.Settings = h.store, h, h.Config
	work.ShardUsers = settings.ShardUsers
	h.runner = crowdbuild.New(h.Parts(settings), work)
	h.Runner = h.runner.Runner
}

func objectID(i int) string { return fmt.Sprintf("sku,%02d", i) }

// SweepObjects streams the events of the harness. Each user takes a second.
func (h *harness) SweepObjects(_ context.Context, app config.App, users store.Range, o profile.SweepOptions,
	fn func(string, affinity.Event) error, progress func(profile.SweepProgress) error) (p profile.SweepProgress, err error) {
	window := affinity.Window{Now: o.AsOf.UnixMilli(), RetentionDays: app.RetentionDays}
	within := slices.DeleteFunc(h.Within(users.From, users.To), func(user string) bool {
		return app.Residency.On() && h.Users[user].Region != app.Region
	})
	for i, user := range within {
		if begins := i%max(h.group, 1) == 0; begins && i > 0 && !h.Now.Before(o.Until) {
			return p, nil
		}
		h.Now = h.Now.Add(time.Second)
		if o.Only == nil || o.Only(user) {
			p.Users++
			for _, e := range h.events[user] {
				if window.Contains(e.Time) && app.Strategy.EventScore(e.Type, e.Name) > 0 {
					p.Events++
					if err := fn(user, e); err != nil {
						return p, err
					}
				}
			}
		}
		if p.Done = i == len(within)-1; !p.Done {
			p.Next = within[i+1]
		}
		if (i+1)%max(h.group, 1) != 0 && !p.Done {
			continue
		}
		if err := progress(p); err != nil {
			return p, err
		}
	}
	p.Done = true
	return p, nil
}

// fill gives every user random events within an hour before now.
func (h *harness) fill(seed uint64) {
	r := rand.New(rand.NewPCG(seed, seed))
	for name := range h.Users {
		time := h.Now.UnixMilli() - 3_600_000
		for range r.IntN(20) {
			time += int64(r.IntN(300_000))
			e := affinity.Event{Time: min(time, h.Now.UnixMilli()), Type: event.View, Name: "Seen", Index: []string{shoes, hats}[r.IntN(2)]}
			if r.IntN(5) == 0 {
				e.Name = "Ignored" // by the strategy
			}
			for range r.IntN(4) {
				e.ObjectIDs = append(e.ObjectIDs, objectID(r.IntN(known+3))) // some are unknown
			}
			h.events[name] = append(h.events[name], e)
		}
		slices.SortStableFunc(h.events[name], func(a, b affinity.Event) int { return cmp.Compare(a.Time, b.Time) })
	}
}

// build starts a build of all indexes and runs its tasks to the end.
func (h *harness) build() job.Job {
	h.t.Helper()
	j := h.start(h.t.Context())
	h.Drain()
	return h.Find(j.ID)
}

// start starts a build as a client does that retries.
func (h *harness) start(ctx context.Context) job.Job {
	h.t.Helper()
	h.Now = h.Now.Add(time.Minute)
	for {
		j, err := h.runner.StartImport(jobtest.Process(ctx), app, h.Now)
		if err == nil {
			return j
		}
		if h.Gate == nil {
			h.t.Fatal(err)
		}
	}
}

// expected computes the statistics of an index by brute force, of the given
// users, as of the start of a job.
func (h *harness) expected(j job.Job, index string, selected func(user string) bool) (crowd.Index, map[string]crowd.Object) {
	p := job.ParamsOf[crowdbuild.Params](j)
	window := affinity.Window{Now: p.AsOf.UnixMilli(), RetentionDays: p.RetentionDays}
	x := crowd.Index{
		AsOf: window.Now, HalfLife: p.HalfLife, Objects: known, Sampled: p.Sampled(),
		Frequencies: map[event.Filter]int{{Facet: "index", Value: index}: known, {Facet: "parity", Value: "0"}: known / 2, {Facet: "parity", Value: "1"}: known / 2},
	}
	var users [][]crowd.Event
	for name, events := range h.events {
		if selected != nil && !selected(name) {
			continue
		}
		var of []crowd.Event
		for _, e := range events {
			c := crowd.Event{Time: e.Time, Bought: e.Type == event.Conversion}
			for _, id := range e.ObjectIDs {
				if id < objectID(known) {
					c.ObjectIDs = append(c.ObjectIDs, id)
				}
			}
			if e.Index == index && e.Name == "Seen" && len(c.ObjectIDs) > 0 && window.Contains(e.Time) {
				of = append(of, c)
			}
		}
		if len(of) > 0 {
			x.Users++
			x.Events += int64(len(of))
			users = append(users, of)
		}
	}
	counts, objects := crowd.Reference(users, window.Now, p.HalfLife)
	x.Counts = counts
	for _, n := range counts {
		x.Highest = max(x.Highest, n)
	}
	recent, _ := crowd.Reference(users, window.Now, crowd.Recently)
	for id, n := range recent {
		if z := crowd.Trend(counts[id], p.HalfLife, n); z >= 2 {
			x.Risen = append(x.Risen, crowd.Scored{ObjectID: id, Score: z})
		}
	}
	x.Risen = x.Rising()
	for id, o := range objects {
		for kind, links := range o.Links {
			o.Links[kind] = links[:min(len(links), crowd.Best)]
		}
		objects[id] = o
	}
	return x, objects
}

// read reads the current statistics of an index.
func (h *harness) read(index string) (crowd.Manifest, crowd.Index, map[string]crowd.Object) {
	h.t.Helper()
	gate := h.Gate
	h.Gate = nil
	defer func() { h.Gate = gate }()
	m, _, err := crowd.ReadManifest(h.t.Context(), h.store.Crowd, slog.New(slog.DiscardHandler), app, index)
	must.Succeed(h.t, err)
	if m.Current.Name == "" {
		return m, crowd.Index{}, nil
	}
	ref := store.CrowdRef{App: app, Index: index, Generation: m.Current.Name}
	x, err := m.Current.ReadIndex(1<<30, func(counts, frequencies func([]byte) error) error {
		return h.store.Crowd.ReadCrowdIndex(h.t.Context(), ref, counts, frequencies)
	})
	must.Succeed(h.t, err)
	ids := make([]string, 40)
	for i := range ids {
		ids[i] = objectID(i)
	}
	stored, err := h.store.Crowd.ReadCrowdObjects(h.t.Context(), ref, ids)
	must.Succeed(h.t, err)
	objects, err := crowd.ParseObjects(stored)
	must.Succeed(h.t, err)
	return m, x, objects
}

// wantBuilt checks that the statistics of an index are those of a job.
func (h *harness) wantBuilt(j job.Job, index string, selected func(user string) bool) {
	h.t.Helper()
	m, x, objects := h.read(index)
	if m.Current.Job != j.ID {
		h.t.Fatalf("statistics of %s are of %q, want those of %s", index, m.Current.Job, j.ID)
	}
	wantIndex, wantObjects := h.expected(j, index, selected)
	x.Risen = x.Rising()
	if diff := gocmp.Diff(wantIndex, x, cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateEmpty()); diff != "" {
		h.t.Errorf("statistics of %s (-reference +built):\n%s", index, diff)
	}
	h.wantLiked(m, index, x.Counts) // the very counts: those of the reference differ by rounding
	if diff := gocmp.Diff(wantObjects, objects, cmpopts.EquateEmpty()); diff != "" {
		h.t.Errorf("pairs of %s (-reference +built):\n%s", index, diff)
	}
}

// wantLiked checks that each filter lists the objects with the highest of the counts.
func (h *harness) wantLiked(m crowd.Manifest, index string, counts map[string]float64) {
	h.t.Helper()
	want := map[event.Filter][]string{}
	for id := range counts {
		var i int
		_, err := fmt.Sscanf(id, "sku,%d", &i)
		must.Succeed(h.t, err)
		for _, f := range []event.Filter{{Facet: "index", Value: index}, {Facet: "parity", Value: fmt.Sprint(i % 2)}} {
			want[f] = append(want[f], id)
		}
	}
	for f, ids := range want {
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
		})
		want[f] = ids[:min(len(ids), crowd.MaxLiked)]
	}
	filters := []event.Filter{{Facet: "index", Value: index}, {Facet: "parity", Value: "0"}, {Facet: "parity", Value: "1"}, {Facet: "none"}}
	stored, err := h.store.Crowd.ReadCrowdLiked(h.t.Context(), store.CrowdRef{App: app, Index: index, Generation: m.Current.Name}, filters)
	must.Succeed(h.t, err)
	got := map[event.Filter][]string{}
	for f, cell := range stored {
		objects, err := crowd.ParseLiked(cell)
		must.Succeed(h.t, err)
		for _, o := range objects {
			got[f] = append(got[f], o.ObjectID)
			if o.Score != counts[o.ObjectID] {
				h.t.Errorf("%v lists %s with %v, its count is %v", f, o.ObjectID, o.Score, counts[o.ObjectID])
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		h.t.Errorf("objects of filters of %s (-reference +built):\n%s", index, diff)
	}
}

// generations returns the generations of an index that have rows, and whether
// any has rows of runs.
func (h *harness) generations(index string) (names []string, runs bool) {
	h.t.Helper()
	err := h.store.Crowd.DropCrowd(h.t.Context(), app, index, func(name string) bool {
		names = append(names, name)
		headers, err := h.store.Crowd.CrowdRunHeaders(h.t.Context(), store.CrowdRef{App: app, Index: index, Generation: name})
		must.Succeed(h.t, err)
		runs = runs || len(headers) > 0
		return false
	})
	must.Succeed(h.t, err)
	slices.Sort(names)
	return names, runs
}
