package segmentbuild_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// in opens a store of a test.
func in(t *testing.T) opener {
	return func(dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
		return storetest.NewWithClient(t, dial...)
	}
}

// A build puts all users into parts that cover all tokens; a change afterwards shows at
// once.
func TestBuild(t *testing.T) {
	h := newHarness(t, in(t), small)
	h.fill(90)
	h.apply(h.seen(token(4), "c0", 85*24*time.Hour))
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	m := h.manifest()
	if m.Version != 1 || m.Job != j.ID || len(m.Parts) < 90/8 || m.Since != h.app().Segments.Since.UnixMilli() {
		t.Errorf("manifest %+v, want one of many parts", m)
	}
	if c := job.CountsOf[segmentbuild.Counts](j.Totals.Counts); c.Users != 90 || c.Packed != 90 || c.Parts != int64(len(m.Parts)) || c.Faulty != 0 {
		t.Errorf("counts %+v of %d parts", c, len(m.Parts))
	}
	h.wantExact("built")
	h.apply(h.seen("u0005", "c0", time.Hour), h.seen(token(7), "c1", time.Hour), h.seen("a", "c2", 0))
	h.wantExact("changed")
	h.Now = h.Now.Add(7 * 24 * time.Hour)
	h.wantExact("expired")
}

// A part ends between two groups of a recompute before it is full, so that none is left
// with the rest of a group.
func TestPartsEndBetweenGroups(t *testing.T) {
	h := newHarness(t, in(t), segmentbuild.Work{ShardUsers: 5_000, Affinities: 1_500})
	var events []store.LogEvent
	for i := range 2_000 {
		events = append(events, h.seen(fmt.Sprintf("u%04d", i), "c1", time.Hour))
	}
	h.apply(events...)
	h.build()
	for _, p := range h.manifest().Parts {
		if p.Users != 1_024 && p.Users != 2_000-1_024 {
			t.Errorf("a part has %d users, want 4 groups of 256 users, or the others", p.Users)
		}
	}
}

// Changes are listed for nine days. A delta of an older manifest would miss some, so it
// orders a build.
func TestDeltaOfOldPartsOrdersABuild(t *testing.T) {
	h := newHarness(t, in(t), small)
	h.fill(30)
	h.build()
	h.run()
	h.apply(h.seen(token(3), "c1", time.Hour), h.seen(token(5), "c1", time.Hour))
	before := h.manifest()
	h.Now = h.Now.Add(store.ChangeDays * 24 * time.Hour)
	if outcomes := h.order(); len(outcomes) == 0 || outcomes[0] != (segmentbuild.Outcome{Build: true}) {
		t.Fatalf("outcomes %+v, want only a build", outcomes)
	}
	if m := h.manifest(); m.Generation == before.Generation {
		t.Fatalf("manifest %+v is still of the old build", m)
	}
	h.wantExact("built")
}

// Deltas pack those who have changed, and are joined when they are many.
func TestDeltas(t *testing.T) {
	h := newHarness(t, in(t), segmentbuild.Work{ShardUsers: 20, PartUsers: 8, Affinities: 40, DeltaUsers: 2, Joined: 3})
	h.fill(60)
	h.build()
	h.run()
	joined := 0
	for i := range 12 {
		h.apply(h.seen(token(i*3), "c1", time.Hour), h.seen(token(i*5), "c2", time.Hour), h.seen(token(60+i), "c0", time.Hour))
		h.wantExact("changed")
		for _, o := range h.order() {
			joined += o.Joined
		}
		h.wantExact("delta")
	}
	if joined == 0 {
		t.Error("no deltas were joined")
	}
}
