package profile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// A purge takes the user's token out of segments: no row holds it, in its key or a cell.
func TestPurgeBlanksSegments(t *testing.T) {
	b := newFixture(t, 90, plain)
	must.Succeed(t, b.apps.SetSegments(ctx, appID, true))
	const gone = "ned-in-the-middle"
	users := []string{"anna", gone, "zoe"}
	for _, user := range users {
		b.apply(bought(user, b.clock))
	}
	app := b.app()
	for id, delta := range []bool{false, true} {
		p := segment.NewPacker(segment.Scoring{Version: app.ScoringVersion, RetentionDays: app.RetentionDays}, 0)
		p.Begin(segment.PartID(id+1), delta, b.clock)
		for _, user := range users {
			must.Succeed(t, p.Add(user, b.read(user).Profile.AppendBinary(nil)))
		}
		w := b.store.Segments.NewSegmentWriter(ctx, appID, segment.PartID(id+1))
		part, err := p.Finish(b.clock, w.Write)
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		m, err := b.store.Segments.ReadSegmentManifest(ctx, appID)
		must.Succeed(t, err)
		version := m.Version
		m.Parts = append(m.Parts, part)
		if ok, err := b.store.Segments.SwapSegmentManifest(ctx, appID, version, m); !ok || err != nil {
			t.Fatalf("swap: %v, %v", ok, err)
		}
	}
	holding := func() (rows []string) {
		err := b.client.Open(store.TableSegments).ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			found := strings.Contains(r.Key(), gone)
			for _, items := range r {
				for _, item := range items {
					found = found || strings.Contains(string(item.Value), gone)
				}
			}
			if found {
				rows = append(rows, r.Key())
			}
			return true
		})
		must.Succeed(t, err)
		return rows
	}
	if rows := holding(); len(rows) < 2 {
		t.Fatalf("before the deletion, rows %q hold the token, want one of each part", rows)
	}
	until := b.delete(gone)
	if _, err := b.eng.Purge(ctx, appID, gone, time.UnixMilli(until)); err != nil {
		t.Fatal(err)
	}
	if rows := holding(); len(rows) > 0 {
		t.Errorf("rows %q hold the token of a deleted user", rows)
	}
}
