package segmentbuild_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// campaign makes the model test longer: go test ./shared/job/kinds/segmentbuild -run Model
// -campaign 2000
var campaign = flag.Int("campaign", race.Or(15, 5), "how many random histories TestModel runs")

// TestModel checks after each step of random histories that the answers from the parts
// are those of a scan of all profiles. A history has events, late ones too, deletions and
// their purges, opt-outs, write windows, time that passes, new strategies, builds, deltas and
// cleaning, whose processes die, and whose tasks are lost or come twice.
func TestModel(t *testing.T) {
	if err := flag.Set("rapid.checks", fmt.Sprint(*campaign)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		h := newHarness(r, func(dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
			return storetest.NewWithClient(t, dial...)
		}, small)
		h.history(r, nil)
	})
}

// history makes one of random steps, and of further ones.
func (h *harness) history(r *rapid.T, further map[string]func(*rapid.T)) {
	h.fill(rapid.IntRange(1, 40).Draw(r, "users"))
	steps := map[string]func(*rapid.T){
		"events": func(r *rapid.T) {
			for range rapid.IntRange(1, 5).Draw(r, "events") {
				ago := time.Duration(rapid.SampledFrom([]int{0, 1, 30, 89*24 + 23, 120 * 24}).Draw(r, "hours ago")) * time.Hour
				h.apply(h.seen(user.Draw(r, "user"), fmt.Sprint("c", rapid.IntRange(0, 3).Draw(r, "color")), ago))
			}
		},
		"write window": func(r *rapid.T) {
			ms := rapid.SampledFrom([]int{0, 2000}).Draw(r, "window")
			if err := h.Config.SetLimits(r.Context(), app, limit.Numbers{WriteWindowMs: ms}); err != nil {
				r.Fatal(err)
			}
		},
		"end of a window": func(r *rapid.T) {
			if _, err := h.engine.RefreshMarked(r.Context(), h.app(), user.Draw(r, "user")); err != nil {
				r.Fatal(err)
			}
		},
		"delete": func(r *rapid.T) {
			u := user.Draw(r, "user")
			if _, err := h.engine.Delete(r.Context(), app, u); err != nil {
				r.Fatal(err)
			}
			if rapid.Bool().Draw(r, "purged") {
				if _, err := h.store.Segments.BlankSegmentToken(r.Context(), app, u); err != nil {
					r.Fatal(err)
				}
			}
		},
		"opt out": func(r *rapid.T) {
			u, change := user.Draw(r, "user"), h.engine.OptIn
			if rapid.Bool().Draw(r, "out") {
				change = func(ctx context.Context, app, user string) (time.Time, error) {
					return h.engine.OptOut(ctx, app, user, event.View)
				}
			}
			if _, err := change(r.Context(), app, u); err != nil {
				r.Fatal(err)
			}
		},
		"time": func(r *rapid.T) {
			h.Now = h.Now.Add(rapid.SampledFrom([]time.Duration{10 * time.Second, time.Hour, 24 * time.Hour, 20 * 24 * time.Hour}).Draw(r, "passes"))
		},
		"strategy": func(r *rapid.T) {
			if rapid.IntRange(0, 3).Draw(r, "changes") == 0 {
				h.score(rapid.IntRange(1, 30).Draw(r, "points"))
			}
		},
		"build": func(r *rapid.T) {
			h.Now = h.Now.Add(time.Second)
			if _, err := h.runner.StartManual(r.Context(), app); err != nil {
				r.Fatal(err)
			}
			h.work(r)
		},
		"delta": func(r *rapid.T) {
			h.Now = h.Now.Add(time.Minute)
			if _, err := h.runner.Order(r.Context(), app); err != nil {
				r.Fatal(err)
			}
			h.work(r)
		},
		"": func(*rapid.T) {
			if h.served() {
				h.wantExact("step")
			}
		},
	}
	maps.Copy(steps, further)
	r.Repeat(steps)
}

// user is one of those who may have events.
var user = rapid.Custom(func(r *rapid.T) string { return token(rapid.IntRange(0, 45).Draw(r, "user")) })

// work delivers some of the waiting tasks. A process may die, and a task of a delta may be
// lost or come twice.
func (h *harness) work(r *rapid.T) {
	dies := rapid.IntRange(0, 60).Draw(r, "dies at request")
	h.DieAt(dies, rapid.SampledFrom([]jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter}).Draw(r, "fault"))
	defer func() { h.Gate = nil }()
	for range rapid.IntRange(0, 12).Draw(r, "deliveries") {
		if waiting := h.Waiting(); len(waiting) > 0 {
			_, _ = h.Deliver(r.Context(), waiting[0]) // after an error it is delivered again
		}
	}
	for len(h.beside) > 0 {
		task := h.beside[0]
		h.beside = h.beside[1:]
		for range rapid.IntRange(0, 2).Draw(r, "times") {
			_, _ = h.deliver(jobtest.Process(r.Context()), task)
		}
	}
}

// served reports whether queries read the manifest.
func (h *harness) served() bool {
	h.T.Helper()
	a := h.app()
	for _, region := range a.UserRegions() {
		m := h.manifestIn(region)
		if m.Version == 0 || !a.ScoresAs(m.ScoringVersion) || m.Since != a.Segments.Since.UnixMilli() ||
			!store.ChangesReach(cutOf(m), latestCut(m), h.Now) {
			return false
		}
	}
	return true
}

// latestCut returns the latest slot at which a part of a manifest was cut.
func latestCut(m segment.Manifest) store.ChangeSlot {
	latest := int64(0)
	for _, p := range m.Parts {
		latest = max(latest, p.Cut)
	}
	return store.ChangeSlot(latest)
}

// cutOf returns the slot from which parts of a manifest lack changes.
func cutOf(m segment.Manifest) store.ChangeSlot {
	oldest, newest := int64(math.MaxInt64), int64(0)
	for _, p := range m.Parts {
		if p.Delta {
			newest = max(newest, p.Cut)
		} else {
			oldest = min(oldest, p.Cut)
		}
	}
	return store.ChangeSlot(max(oldest, newest))
}
