package crowdbuild_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Above the limit a build starts again with a sample of the users, and the next
// one begins with the sample.
func TestManyEventsAreSampled(t *testing.T) {
	const users = 26
	h := newHarness(t, users, crowdbuild.Work{MaxEvents: 100})
	h.fill(11)
	events := int64(0)
	for _, of := range h.events {
		events += int64(len(of))
	}
	j := h.build()
	h.WantState(j.ID, job.Superseded, "reads a sample")
	sampled := h.WantState(j.ID+"-sampled", job.Done, "")
	share := job.ParamsOf[crowdbuild.Params](sampled).Share
	if want := 100 / float64(events); share < want/2 || share > want*2 {
		t.Errorf("share %g, want about %g", share, want)
	}
	selected := func(user string) bool { return crowdbuild.Selects(user, share) }
	h.wantBuilt(sampled, shoes, selected)
	h.wantBuilt(sampled, hats, selected)
	m, x, _ := h.read(shoes)
	if !m.Current.Sampled() || !x.Sampled || sampled.Totals.Counts["events"] >= events {
		t.Errorf("manifest %+v does not say that %d of %d events were read", m.Current, sampled.Totals.Counts["events"], events)
	}
	next := h.build()
	h.WantState(next.ID, job.Done, "")
	p := job.ParamsOf[crowdbuild.Params](next)
	if !p.Sampled() {
		t.Errorf("the next build reads a share of %g", p.Share)
	}
	h.wantBuilt(next, shoes, func(user string) bool { return crowdbuild.Selects(user, p.Share) })

	// An app whose events fit again is read whole.
	h.use(crowdbuild.Work{MaxEvents: 2 * events})
	whole := h.build()
	h.WantState(whole.ID, job.Done, "")
	h.wantBuilt(whole, hats, nil)
}

func TestSamples(t *testing.T) {
	for _, share := range []float64{0, 0.01, 0.3, 0.999, 1} {
		n := 0
		for i := range 10_000 {
			user := fmt.Sprintf("user-%d", i)
			if crowdbuild.Selects(user, share) {
				n++
				if !crowdbuild.Selects(user, min(1, share*1.5)) {
					t.Fatalf("%s is in a sample of %g, but not in a larger one", user, share)
				}
			}
		}
		if want := share * 10_000; float64(n) < want-150 || float64(n) > want+150 {
			t.Errorf("a share of %g contains %d of 10000 users", share, n)
		}
	}
}

// With a cut of five pairs a run, the bounds hold and are stored.
func TestStoredBoundHolds(t *testing.T) {
	h := newHarness(t, 20, crowdbuild.Work{Kept: 5, MaxDifferent: -1})
	h.fill(12)
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	_, _, objects := h.read(shoes)
	_, full := h.expected(j, shoes, nil)
	inexact := 0
	for id, o := range objects {
		if !o.Exact() {
			inexact++
		}
		counts := map[string]int64{}
		for _, p := range o.Links[crowd.Follows] {
			counts[p.ObjectID] = p.Count
		}
		for _, p := range full[id].Links[crowd.Follows] {
			if n := counts[p.ObjectID]; n > p.Count || p.Count > n+o.Bound {
				t.Errorf("pair %s, %s: %d, bound %d; it occurs %d times", id, p.ObjectID, n, o.Bound, p.Count)
			}
		}
		if o.Events != full[id].Events {
			t.Errorf("%s has %d events, want %d", id, o.Events, full[id].Events)
		}
	}
	if inexact == 0 {
		t.Error("a cut of five lost nothing: the test shows nothing")
	}
	if crowd.Kept <= crowd.Best {
		t.Error("a run keeps fewer pairs than statistics list")
	}
}

// A robot that names every object takes no more memory than a run has: its
// further objects do not count, and those of others do.
func TestRobotNamesEverything(t *testing.T) {
	const room = 5
	h := newHarness(t, 3, crowdbuild.Work{MaxNamed: room * (crowdbuild.NamedBytes + len(objectID(0))) / 2})
	users := slices.Sorted(maps.Keys(h.Users))
	see := func(user string, object int) {
		h.events[user] = append(h.events[user], affinity.Event{
			Time: h.Now.UnixMilli() - int64(known-object), Type: event.View, Name: "Seen", Index: shoes, ObjectIDs: []string{objectID(object), "unknown"},
		})
	}
	see(users[0], 0)
	for object := range known {
		see(users[1], object)
	}
	see(users[2], known-1)
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	_, x, _ := h.read(shoes)
	got := map[string]int{}
	for id, n := range x.Counts {
		got[id] = int(math.Round(n))
	}
	want := map[string]int{objectID(0): 2, objectID(known - 1): 1}
	for object := 1; object < room; object++ {
		want[objectID(object)] = 1
	}
	if !maps.Equal(got, want) || x.Events != room+2 {
		t.Errorf("%d events, counts %v; want %d, %v", x.Events, got, room+2, want)
	}
}

// A build of too many objects says so. One of fewer indexes is possible.
func TestTooManyObjects(t *testing.T) {
	h := newHarness(t, 2, crowdbuild.Work{MaxObjects: 2*known - 1})
	h.fill(15)
	h.WantState(h.build().ID, job.Failed, "hold more than 39 objects: build them one at a time")
	j, err := h.runner.StartManual(t.Context(), app, shoes)
	if err != nil {
		t.Fatal(err)
	}
	h.Drain()
	h.WantState(j.ID, job.Done, "")
	h.wantBuilt(j, shoes, nil)
}
