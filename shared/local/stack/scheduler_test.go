package stack

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The engine's clock is not the machine's. In these tests both run by themselves.
func nights(t *testing.T, offset time.Duration, days int, fails func(call int) bool) []time.Time {
	var calls []time.Time
	synctest.Test(t, func(t *testing.T) {
		now := func() time.Time { return time.Now().Add(offset).UTC() }
		s := scheduler{now: now, log: slog.New(slog.DiscardHandler), call: func(context.Context) error {
			calls = append(calls, now())
			if fails(len(calls)) {
				return errors.New("failed")
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(days)*24*time.Hour)
		defer cancel()
		s.run(ctx)
	})
	return calls
}

func TestSchedulerCallsEveryNight(t *testing.T) {
	never := func(int) bool { return false }
	// The test's clock begins at midnight of 1 January 2000.
	for offset, first := range map[time.Duration]time.Time{
		0:                             time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC),
		3*time.Hour - 1:               time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC),
		3 * time.Hour:                 time.Date(2000, 1, 2, 3, 0, 0, 0, time.UTC),
		-1:                            time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC),
		10*24*time.Hour + 5*time.Hour: time.Date(2000, 1, 12, 3, 0, 0, 0, time.UTC),
	} {
		want := []time.Time{first, first.AddDate(0, 0, 1), first.AddDate(0, 0, 2)}
		if diff := cmp.Diff(want, nights(t, offset, 3, never)); diff != "" {
			t.Errorf("with the clock %v ahead (-want +got):\n%s", offset, diff)
		}
	}
}

func TestSchedulerRetries(t *testing.T) {
	first := time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC)
	got := nights(t, 0, 1, func(call int) bool { return call < 3 })
	want := []time.Time{first, first.Add(time.Minute), first.Add(2 * time.Minute)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := nights(t, 0, 2, func(int) bool { return true }); len(got) != 2*schedulerTries {
		t.Errorf("%d calls in two nights, want %d in each", len(got), schedulerTries)
	}
}
