package stack

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/backup"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/rows"
)

// backups runs a schedule of six hours for a while, whose clock is ahead by offset, and returns the times of its
// calls since the start. last is the newest backup at the start.
func backups(t *testing.T, last time.Time, life time.Duration, fails func(call int) bool) (calls []time.Duration, age float64) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := &backupSchedule{every: 6 * time.Hour, now: time.Now, log: slog.New(slog.DiscardHandler)}
		b.last = func() (time.Time, error) { return last, nil }
		b.call = func(context.Context) (done backup.Written, err error) {
			calls = append(calls, time.Since(start))
			if fails(len(calls)) {
				return done, errors.New("failed")
			}
			last = time.Now()
			time.Sleep(time.Minute)
			return done, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), life)
		defer cancel()
		b.run(ctx)
		age = b.age()
	})
	return calls, age
}

func TestBackupsGoBySchedule(t *testing.T) {
	never := func(int) bool { return false }
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of the test's clock
	h := time.Hour
	for name, c := range map[string]struct {
		last  time.Time
		fails func(int) bool
		want  []time.Duration
		age   float64
	}{
		"first":       {time.Time{}, never, []time.Duration{0, 6 * h, 12 * h}, 3600},
		"goes on":     {start.Add(-4 * h), never, []time.Duration{2 * h, 8 * h}, 5 * 3600},
		"overdue":     {start.Add(-40 * h), never, []time.Duration{0, 6 * h, 12 * h}, 3600},
		"clock ahead": {start.Add(400 * h), never, []time.Duration{6 * h, 12 * h}, 3600},
		"one fails": {time.Time{}, func(call int) bool { return call == 2 },
			[]time.Duration{0, 6 * h, 6*h + 10*time.Minute, 12*h + 10*time.Minute}, 3000},
	} {
		calls, age := backups(t, c.last, 13*h, c.fails)
		if diff := cmp.Diff(c.want, calls); diff != "" || age != c.age {
			t.Errorf("%s: age %v, want %v; calls (-want +got):\n%s", name, age, c.age, diff)
		}
	}
	calls, age := backups(t, time.Time{}, 55*time.Minute, func(int) bool { return true })
	if len(calls) != 6 || !math.IsInf(age, 1) {
		t.Errorf("%d failures in an hour, and the age is %v", len(calls), age)
	}
}

// A copy begins when the imports in progress have ended, and new ones wait for it. One that takes long is not
// waited for, and other functions never wait.
func TestCopyWaitsForImports(t *testing.T) {
	d, err := disk.InMemory(rows.Join, slog.New(slog.DiscardHandler)) // it refuses a copy at once
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	synctest.Test(t, func(t *testing.T) {
		s := newSaver(d, "", time.Now)
		var entered, copied atomic.Int64
		end := make(chan bool)
		w := s.watch(Watch{})
		request := func(function string) {
			w.Function(function, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				entered.Add(1)
				<-end
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", nil))
		}
		checkpoint := func() {
			if _, err := s.checkpoint(t.Context(), nil); !errors.Is(err, disk.ErrInMemory) {
				t.Error(err)
			}
			copied.Add(1)
		}
		wants := func(when string, imports, copies int64) {
			t.Helper()
			if synctest.Wait(); entered.Load() != imports || copied.Load() != copies {
				t.Errorf("%s: %d requests have begun and %d copies ended, want %d and %d", when, entered.Load(),
					copied.Load(), imports, copies)
			}
		}
		go request("imports")
		wants("an import", 1, 0)
		go checkpoint()
		wants("a copy beside it", 1, 0)
		go request("imports")
		go request("ingest")
		wants("another import, and events", 2, 0)
		end <- true
		end <- true
		wants("both have ended", 3, 1)
		go checkpoint()
		wants("another copy", 3, 1)
		time.Sleep(importsTime)
		wants("an import that takes long", 3, 2)
		end <- true
	})
}
