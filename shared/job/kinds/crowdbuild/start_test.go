package crowdbuild_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// A build that ends without its swap leaves rows that the next one drops.
func TestUnfinishedBuildIsDropped(t *testing.T) {
	for _, want := range []job.State{job.Superseded, job.Cancelled, job.Failed} {
		t.Run(string(want), func(t *testing.T) {
			h := newHarness(t, 7, crowdbuild.Work{})
			h.fill(6)
			before := h.build()
			lost := h.start(t.Context())
			for n := len(h.Tasks); len(h.Waiting()) > 0 && len(h.Tasks) < n+8; {
				h.DeliverNext(1)
			}
			switch want {
			case job.Superseded:
				h.SetStrategy(2)
			case job.Cancelled:
				if _, err := h.Runner.Cancel(t.Context(), app, lost.ID); err != nil {
					t.Fatal(err)
				}
			case job.Failed:
				h.Gate = func(_ context.Context, what string) jobtest.Fault {
					if strings.HasPrefix(what, "/google.bigtable") {
						return jobtest.FailBefore
					}
					return jobtest.None
				}
			}
			h.Drain()
			h.Gate = nil
			h.WantState(lost.ID, want, "")
			h.wantBuilt(before, shoes, nil)
			if names, _ := h.generations(shoes); len(names) != 2 {
				t.Errorf("generations %q, want one and the rows of the lost build", names)
			}
			after := h.build()
			h.WantState(after.ID, job.Done, "")
			h.wantBuilt(after, shoes, nil)
			if names, runs := h.generations(shoes); len(names) != 2 || runs {
				t.Errorf("generations %q, runs left: %v; want the last two without runs", names, runs)
			}
		})
	}
}

// A newer build supersedes one that builds nothing more, and only such a one.
func TestNewerBuildTakesPlace(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(7)
	start := func(index string) job.Job {
		t.Helper()
		h.Now = h.Now.Add(time.Second)
		j, err := h.runner.StartManual(t.Context(), app, index)
		must.Succeed(t, err)
		return j
	}
	ofShoes, ofHats := start(shoes), start(hats)
	h.WantState(ofShoes.ID, job.Planning, "")
	ofAll := start("")
	h.WantState(ofShoes.ID, job.Superseded, ofAll.ID)
	h.WantState(ofHats.ID, job.Superseded, ofAll.ID)
	again := start(shoes)
	h.WantState(ofAll.ID, job.Planning, "")
	h.Drain()
	h.WantState(ofAll.ID, job.Done, "")
	h.WantState(again.ID, job.Done, "")
	h.wantBuilt(ofAll, hats, nil)
	h.wantBuilt(again, shoes, nil) // although the older build has ended too
}

// No build follows an import if one of all indexes has started since.
func TestBuildSinceTheImportIsEnough(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(13)
	at := h.Now
	h.Now = h.Now.Add(time.Second)
	manual, err := h.runner.StartManual(t.Context(), app, "")
	must.Succeed(t, err)
	for _, state := range []job.State{job.Planning, job.Done} {
		h.WantState(manual.ID, state, "")
		if j, err := h.runner.StartImport(t.Context(), app, at); err != nil || j.ID != manual.ID {
			t.Errorf("while the build is %s, the import starts %s, %v", state, j.ID, err)
		}
		h.Drain()
	}
	h.Now = h.Now.Add(time.Second)
	if _, err := h.runner.StartManual(t.Context(), app, shoes); err != nil { // of one index only
		t.Fatal(err)
	}
	if j, err := h.runner.StartImport(t.Context(), app, h.Now.Add(-time.Millisecond)); err != nil || j.ID == manual.ID {
		t.Errorf("a later import starts %s, %v", j.ID, err)
	}
}

// A build follows a load of objects into an index without statistics at once, and later loads
// only once they have ended, if the index has grown by a tenth.
func TestBuildFollowsALoad(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(13)
	load := func(what string, added int, ended bool, want error) job.Job {
		t.Helper()
		var objects []store.Object
		for range added {
			objects = append(objects, store.Object{ID: fmt.Sprint("new", h.Now.UnixMilli(), len(objects))})
		}
		must.Succeed(t, h.store.Catalog.PutObjects(t.Context(), app, shoes, objects))
		h.Now = h.Now.Add(time.Second)
		j, err := h.runner.StartLoad(t.Context(), app, shoes, h.Now, ended)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		return j
	}
	first := load("no statistics", 0, false, nil)
	again, err := h.runner.StartLoad(t.Context(), app, shoes, h.Now, false)
	if first.ID == "" || err != nil || again.ID != first.ID {
		t.Fatalf("builds %q and %q, %v: want one", first.ID, again.ID, err)
	}
	load("a build is under way", 0, true, crowdbuild.ErrBusy)
	h.Drain()
	h.WantState(first.ID, job.Done, "")
	if j := load("the same objects", 0, true, nil); j.ID != "" {
		t.Errorf("%s follows a load that adds nothing", j.ID)
	}
	if j := load("a tenth more", known/10, true, nil); j.ID != "" {
		t.Errorf("%s follows a load of %d objects to %d", j.ID, known/10, known)
	}
	load("more, and the load goes on", 1, false, crowdbuild.ErrBusy)
	next := load("the load has ended", 0, true, nil)
	h.Drain()
	h.WantState(next.ID, job.Done, "")
	if j, err := h.runner.StartLoad(t.Context(), app, "none", h.Now, true); j.ID != "" || err != nil {
		t.Errorf("a load into an index that is empty again: %q, %v", j.ID, err)
	}
}

func TestAnOlderBuildReplacesNothing(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(8)
	older, err := h.runner.StartManual(t.Context(), app, "")
	must.Succeed(t, err)
	tasks := slices.Clone(h.Tasks)
	h.Now = h.Now.Add(time.Second)
	newer, err := h.runner.StartManual(t.Context(), app, shoes)
	must.Succeed(t, err)
	for len(h.Find(newer.ID).FinishedAt.String()) == 0 || !h.Find(newer.ID).State.Ended() {
		for _, k := range h.Waiting() {
			if !slices.Contains(tasks, k) {
				_, _ = h.Deliver(t.Context(), k)
			}
		}
	}
	h.Drain()
	h.WantState(older.ID, job.Done, "")
	h.wantBuilt(newer, shoes, nil)
	h.wantBuilt(older, hats, nil)
}

func TestNothingToBuild(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	for _, index := range []string{shoes, hats} {
		must.Succeed(t, h.store.Catalog.ClearIndex(t.Context(), app, index))
	}
	for _, index := range []string{"", shoes} {
		if _, err := h.runner.StartManual(t.Context(), app, index); !errors.Is(err, crowdbuild.ErrNoObjects) {
			t.Errorf("a build of %q: %v, want ErrNoObjects", index, err)
		}
	}
	if err := h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}); err != nil || len(h.Tasks) != 0 {
		t.Errorf("the nightly round: %v, %d tasks", err, len(h.Tasks))
	}
}

func TestNightlyBuilds(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(10)
	for range 3 { // the scheduler may call twice
		must.Succeed(t, h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}))
	}
	h.Drain()
	jobs, err := h.Jobs.List(t.Context(), app, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs %+v, %v; want one", jobs, err)
	}
	h.wantBuilt(jobs[0], shoes, nil)
}
