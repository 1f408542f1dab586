package migration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// TestWindow migrates the events within the retention. Older events stay behind
// and are not differences.
func TestWindow(t *testing.T) {
	t.Parallel()
	for _, lies := range schema.Names {
		for _, days := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d days from %s", days, lies), func(t *testing.T) {
				w := newHarness(t, lies, usual)
				if err := w.Config.SetRetention(t.Context(), jobtest.App, days); err != nil {
					t.Fatal(err)
				}
				since := int64(0)
				edge := jobtest.Noon.AddDate(0, 0, -1).UnixMilli()
				if days > 0 {
					since = edge + 1 // an event as old as the retention is outside
				}
				var events []store.LogEvent
				for _, user := range users[:4] {
					for _, ms := range []int64{edge + 1, edge, edge - 1, edge - 40*24*time.Hour.Milliseconds()} {
						e := plain(t, user, 1, "red")
						e.Time = ms
						events = append(events, e)
					}
				}
				w.apply(events...)
				st := w.does(lies.Other(), "start", "backfill")
				w.wantDone(st)
				w.wantRows(lies.Other(), since)
				if want := int64(len(events)); days > 0 && st.Job.Totals.Counts["changed"] != want/4 || days == 0 && st.Job.Totals.Counts["changed"] != want {
					t.Errorf("the backfill counts %+v", st.Job.Totals)
				}
				st = w.does(lies.Other(), "verify")
				w.wantDone(st)
				if want := int64(len(events)); days > 0 && st.Job.Totals.Counts["rows"] != want/4 || days == 0 && st.Job.Totals.Counts["rows"] != want {
					t.Errorf("the verification counts %+v", st.Job.Totals)
				}
				w.wantDone(w.does(lies.Other(), "cutover", "drop"))
				w.wantEmpty(lies)
				w.wantRows(lies.Other(), since)
			})
		}
	}
}

// After the retention is raised during a migration, more events count than the
// backfill copied. They need another backfill before the cutover or the drop.
func TestRetentionRaised(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, usual)
	retain := func(days int) {
		if err := w.Config.SetRetention(t.Context(), jobtest.App, days); err != nil {
			t.Fatal(err)
		}
	}
	for i, user := range users[:4] {
		w.apply(plain(t, user, 1+20*i, "red"))
	}
	retain(1)
	w.does(schema.Wide, steps[:3]...)
	for _, days := range []int{2, 0} {
		retain(days)
		w.refuses(t, "cutover", schema.Wide)
		if next := w.status().Next; slices.Contains(next, "cutover") || !slices.Contains(next, "backfill") {
			t.Errorf("next are %q", next)
		}
	}
	retain(2)
	w.wantDone(w.does(schema.Wide, "backfill", "verify"))
	retain(1)
	w.wantDone(w.does(schema.Wide, "cutover"))

	retain(0)
	w.refuses(t, "drop", schema.Wide)
	if next := w.status().Next; !slices.Equal(next, []string{"rollback"}) {
		t.Errorf("next are %q", next)
	}
	if s := w.does(schema.Wide, "rollback"); s.Migration.Phase != config.Backfilling {
		t.Fatalf("the cutover is not undone: %+v", s.Migration)
	}
	w.wantDone(w.does(schema.Wide, "backfill", "verify", "cutover", "drop"))
	w.wantRows(schema.Wide, 0)
	w.wantExact(t, "raised retention")
}
