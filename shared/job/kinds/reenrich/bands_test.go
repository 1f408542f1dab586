package reenrich_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
	"github.com/affinityengine/affinity/shared/local/must"
)

// band sets the numeric bands of an index, of which the catalog knows at once, and
// returns their version.
func (w *harness) band(index string, limits ...float64) int64 {
	w.t.Helper()
	set, err := w.apps.SetIndexSettings(w.t.Context(), app, index, catalog.Change{
		AttributesForFaceting: []string{"price"}, NumericBands: catalog.Bands{"price": limits},
	})
	must.Succeed(w.t, err)
	w.bands = bus.Bands{index: set.BandsVersion}
	return set.BandsVersion
}

// unapplied are the versions of bands that logged events may not have.
func (w *harness) unapplied() map[string]int64 {
	w.t.Helper()
	a, err := w.apps.App(w.t.Context(), app)
	must.Succeed(w.t, err)
	return a.NumericBands.Unapplied()
}

// later moves the real clock, by which configurations propagate.
func (w *harness) later(d time.Duration) {
	w.runner.Clock = func() time.Time { return time.Now().Add(d) }
}

// drainJobs runs the tasks of jobs. It returns how many tasks are to start a last job.
func (w *harness) drainJobs() (last int) {
	w.t.Helper()
	for len(w.tasks) > 0 {
		k := w.tasks[0]
		w.tasks = w.tasks[1:]
		if k.Path != bands.Kind.Path {
			w.run(k)
			continue
		}
		last++
		if got, err := bands.Kind.Decode(k.Body); err != nil || got.App != app || k.Delay < 9*time.Minute {
			w.t.Errorf("the task of the last job is %+v, %v; want it after the longest delivery", k, err)
		}
	}
	return last
}

// users counts the published events by user.
func (w *harness) users() map[string]int {
	all := map[string]int{}
	for id, n := range w.sent {
		all[strings.Fields(id)[0]] += n
	}
	return all
}

// Two jobs give events new bands: all of the index, and then those that a message of
// earlier bands has written in between.
func TestNewBandsReachLoggedEvents(t *testing.T) {
	w := newHarness(t)
	w.know(3)
	w.log("a", 3, 3)
	w.log("b", 5, 3) // two of its objects are unknown
	if _, err := w.runner.StartBands(t.Context(), app, true); !errors.Is(err, reenrich.ErrNoBands) {
		t.Fatalf("before the first bands: %v, want ErrNoBands", err)
	}
	version := w.band("i", 0, 50)
	first, err := w.runner.StartBands(t.Context(), app, false)
	if err != nil || first.Kind != reenrich.Banding {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := w.runner.StartBands(t.Context(), app, false); err != nil || again.ID != first.ID {
		t.Errorf("a second start: %+v, %v; want the first job", again, err)
	}
	if other, err := w.runner.StartOne(t.Context(), app, false); err != nil || other.ID != first.ID {
		t.Errorf("a start of another kind: %+v, %v; want the job of bands", other, err)
	}
	if follow := w.drainJobs(); follow != 1 || len(w.sent) != 8 {
		t.Errorf("%d tasks follow, and %d events were published; want 1, and 8", follow, len(w.sent))
	}
	if diff := cmp.Diff(map[string]int64{"i": version}, w.unapplied()); diff != "" {
		t.Errorf("after the first job (-want +got):\n%s", diff)
	}
	// Process writes what was published, and then a message without bands.
	w.log("a", 3, 3)
	w.log("b", 5, 3)
	w.bands = nil
	w.log("c", 1, 3)
	w.bands, w.sent = bus.Bands{"i": version}, map[string]int{}
	w.later(time.Hour)
	last, err := w.runner.StartBands(t.Context(), app, false)
	if err != nil || last.ID == first.ID {
		t.Fatalf("%+v, %v; want another job", last, err)
	}
	if follow := w.drainJobs(); follow != 0 {
		t.Errorf("%d tasks follow the last job", follow)
	}
	if diff := cmp.Diff(map[string]int{"c": 1}, w.users()); diff != "" {
		t.Errorf("the last job published (-want +got):\n%s", diff)
	}
	if left := w.unapplied(); len(left) != 0 {
		t.Errorf("after the last job %v are not applied", left)
	}
	if _, err := w.runner.StartBands(t.Context(), app, false); !errors.Is(err, reenrich.ErrNoBands) {
		t.Errorf("once all is applied: %v, want ErrNoBands", err)
	}
}

// Bands that change again supersede the job of earlier ones, which applies nothing.
func TestBandsChangeDuringTheirJob(t *testing.T) {
	w := newHarness(t)
	w.know(1)
	w.log("a", 1, 3)
	w.band("i", 1)
	w.later(time.Hour)
	first, err := w.runner.StartBands(t.Context(), app, false)
	must.Succeed(t, err)
	version := w.band("i", 2)
	w.later(2 * time.Hour)
	second, err := w.runner.StartBands(t.Context(), app, false)
	if err != nil || second.ID == first.ID {
		t.Fatalf("%+v, %v; want another job", second, err)
	}
	if j, err := w.runner.Find(t.Context(), app, first.ID); err != nil || j.State != job.Superseded {
		t.Errorf("the first job is %+v, %v; want it superseded", j, err)
	}
	must.Succeed(t, w.work.Close(t.Context(), first))
	if diff := cmp.Diff(map[string]int64{"i": version}, w.unapplied()); diff != "" {
		t.Errorf("while the second job runs (-want +got):\n%s", diff)
	}
	w.drainJobs()
	if left := w.unapplied(); len(left) != 0 {
		t.Errorf("after the second job %v are not applied", left)
	}
}

// An event that would lose an object keeps its row.
func TestBandsOfObjectsThatAreGone(t *testing.T) {
	w := newHarness(t)
	w.know(2)
	w.log("a", 2, 3)
	delete(w.known["i"], "1")
	w.band("i", 1)
	j, err := w.runner.StartBands(t.Context(), app, false)
	must.Succeed(t, err)
	w.drainJobs()
	if j, err = w.runner.Find(t.Context(), app, j.ID); err != nil || j.Totals.Counts["resolved"] != 1 || j.Totals.Counts["stillUnknown"] != 1 || len(w.sent) != 1 {
		t.Errorf("%+v, %v, published %v; want one of two events published", j, err, w.sent)
	}
}

// The night starts what a lost task has left.
func TestNightlyBands(t *testing.T) {
	w := newHarness(t)
	if err := w.runner.Nightly(t.Context(), app, job.Night{Date: "2026-11-29"}); err != nil || len(w.tasks) != 0 {
		t.Fatalf("without bands: %d tasks, %v", len(w.tasks), err)
	}
	w.band("i", 1)
	w.later(time.Hour)
	must.Succeed(t, w.runner.Nightly(t.Context(), app, job.Night{Date: "2026-11-29"}))
	w.drainJobs()
	if left := w.unapplied(); len(left) != 0 {
		t.Errorf("after the night %v are not applied", left)
	}
}
