package backtests_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// tuning is a job that searches over the events of source.
var tuning = backtests.Params{
	Index: "shoes", Names: []string{"given"}, Strategies: []string{viewed}, MaxEvents: users * each, Trials: 12,
}

// search runs a job that searches. The task has the time from now on; now is
// called before each decision to continue.
func search(t *testing.T, shard job.Shard, now func() time.Time, until time.Time, progress func(job.Progress) error) (job.Progress, error) {
	t.Helper()
	w := backtests.Work{Store: storetest.New(t), Source: &source{}, Config: configured{}, Now: now}
	putObjects(t, w.Store)
	return w.Process(t.Context(), job.Job{Params: tuning}, config.App{ID: "demo"}, shard, until, progress)
}

// The trials are counted while the task works, and from the beginning in each
// attempt.
func TestSearchProgress(t *testing.T) {
	earlier := job.Count(backtests.Counts{Users: 3, Events: 30, Trials: 5})
	var places []string
	end, err := search(t, job.Shard{PlannedUsers: users, Counts: earlier}, time.Now, time.Now().Add(time.Hour), func(p job.Progress) error {
		if place, isTrial := strings.CutPrefix(p.Next, "trial "); isTrial {
			places = append(places, place)
		}
		return nil
	})
	must.Succeed(t, err)
	if got := strings.Join(places, " "); got != "0 1 2 3 4 5 6 7 8 9 10 11 12" {
		t.Errorf("progress after trials %s", got)
	}
	got, want := job.CountsOf[backtests.Counts](earlier.Plus(end.Counts)), backtests.Counts{Users: users, Events: users * each, Trials: 12}
	if got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	var result backtests.Result
	must.Succeed(t, json.Unmarshal([]byte(end.Result), &result))
	if result.Share != 1 || result.Tune == nil || result.Search == nil || result.Search.Trials != 12 ||
		result.Search.Cases+result.Report.Cases != users || result.Search.Gain == nil {
		t.Errorf("result %s", end.Result)
	}
}

// A search that takes longer than its task fails at once, with words on what to do.
func TestSearchBeyondTheTask(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := begin
	_, err := search(t, job.Shard{}, func() time.Time { now = now.Add(time.Minute); return now }, begin.Add(4*time.Minute), func(job.Progress) error { return nil })
	if !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), "ended after 3 of 12 trials on 200 cases: use a smaller sample or fewer trials") {
		t.Errorf("a search beyond the time of its task: %v", err)
	}
}

// A search stops once its job has ended, and the error is that of the job.
func TestSearchStopsWithItsJob(t *testing.T) {
	last := ""
	_, err := search(t, job.Shard{}, time.Now, time.Now().Add(time.Hour), func(p job.Progress) error {
		if last = p.Next; last == "trial 2" {
			return job.ErrEnded
		}
		return nil
	})
	if !errors.Is(err, job.ErrEnded) || errors.Is(err, job.ErrFailed) || last != "trial 2" {
		t.Errorf("a search whose job has ended: %v, last progress %q", err, last)
	}
}
