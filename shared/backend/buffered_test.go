package backend_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// What a process writes behind its requests is not written for an app that has been
// deleted since.
func TestBufferedWritesOfADeletedApp(t *testing.T) {
	s, apps, ctx := storetest.New(t), config.NewMemory(), t.Context()
	b := backend.New(slog.New(slog.DiscardHandler), time.Now, s, apps, 0).Buffered()
	for _, app := range []string{"shop", "gone"} {
		if err := apps.CreateApp(ctx, config.App{ID: app}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := apps.DeleteApp(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	for app, want := range map[string]int{"shop": 1, "gone": 0} {
		today := usage.DayOf(time.Now())
		_, ratesErr := b.ExchangeRates(ctx, app, "p", []byte("{}"))
		for what, err := range map[string]error{
			"usage":     b.AddUsage(ctx, usage.Batch{App: app, Day: today, Process: "p", Number: 1, Counts: usage.Counts{Events: 1}}),
			"hot users": b.PutHotUsers(ctx, app, today, 0, "p", []usage.User{{Token: "ann", Events: 1}}),
			"keys":      b.PutKeyDays(ctx, app, map[string]usage.Day{"k": today}),
			"refusals":  b.RecordRefused(ctx, app, time.Now(), store.Refusals{Counts: map[string]int64{"r": 1}}),
			"recent":    b.AddRecent(ctx, app, []store.RecentEvent{{User: "ann", Receipt: time.Now().UnixMilli()}}),
			"rates":     ratesErr,
		} {
			if err != nil {
				t.Errorf("%s of %s: %v", what, app, err)
			}
		}
		for _, table := range []string{store.TableUsage, store.TableRefused, store.TableRates, store.TableRecent} {
			rows, err := s.Rows.FindRows(ctx, store.AppRows{App: app, Table: table}, 1)
			if err != nil || len(rows) != want {
				t.Errorf("%s has %q of %s (%v), want %d", table, rows, app, err, want)
			}
		}
	}
}
