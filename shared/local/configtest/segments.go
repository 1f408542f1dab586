package configtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// A saved segment keeps the instant at which its condition was set, and is created only
// once.
func testSegments(t *testing.T, s store) {
	ctx, now := t.Context(), time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	create(t, s, "shop")
	create(t, s, "other")
	saved, err := s.SavedSegments(ctx, "shop")
	read(t, "no segments", saved, err, nil)
	_, err = s.SavedSegment(ctx, "shop", "vip")
	wantError(t, "a segment that does not exist yet", err, config.ErrNotFound)
	wantError(t, "delete it", s.DeleteSegment(ctx, "shop", "vip"), config.ErrNotFound)

	save := func(name, where string, create bool, hours, since int, changed bool) {
		t.Helper()
		at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
		want := config.SavedSegment{Name: name, Where: where, SetAt: at(since)}
		got, did, err := s.SaveSegment(ctx, "shop",
			config.SavedSegment{Name: name, Where: where, SetAt: at(hours).In(time.FixedZone("", 3600))}, create)
		read(t, "save segment", got, err, want)
		if did != changed {
			t.Errorf("segment %s: changed %v, want %v", name, did, changed)
		}
		got, err = s.SavedSegment(ctx, "shop", name)
		read(t, "segment", got, err, want)
	}
	save("vip", `{"a":1}`, true, 1, 1, true)
	save("vip", `{"a":1}`, false, 2, 1, false)
	save("vip", `{"a":2}`, false, 3, 3, true)
	save("new", `{"a":2}`, false, 4, 4, true)
	_, _, err = s.SaveSegment(ctx, "shop", config.SavedSegment{Name: "vip", Where: `{"a":2}`, SetAt: now}, true)
	wantError(t, "create a segment again", err, config.ErrExists)

	want := []config.SavedSegment{
		{Name: "new", Where: `{"a":2}`, SetAt: now.Add(4 * time.Hour)},
		{Name: "vip", Where: `{"a":2}`, SetAt: now.Add(3 * time.Hour)},
	}
	saved, err = s.SavedSegments(ctx, "shop")
	read(t, "segments", saved, err, want)
	saved, err = s.SavedSegments(ctx, "other")
	read(t, "segments of another app", saved, err, nil)
	if err := s.DeleteSegment(ctx, "shop", "new"); err != nil {
		t.Fatal(err)
	}
	saved, err = s.SavedSegments(ctx, "shop")
	read(t, "segments after a deletion", saved, err, want[1:])
	save("new", `{"a":2}`, true, 5, 5, true)
}

// Of several callers that create one segment at once, one does.
func testSegmentsAtOnce(t *testing.T, s store) {
	ctx := t.Context()
	create(t, s, "shop")
	const n = 4
	var created [n]bool
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			_, created[i], _ = s.SaveSegment(ctx, "shop", config.SavedSegment{Name: "vip", Where: fmt.Sprint(i)}, true)
		})
	}
	group.Wait()
	got, err := s.SavedSegment(ctx, "shop", "vip")
	if err != nil {
		t.Fatal(err)
	}
	for i, did := range created {
		if did != (got.Where == fmt.Sprint(i)) {
			t.Errorf("created %v, but the condition is of caller %s", created, got.Where)
		}
	}
}
