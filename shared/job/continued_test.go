package job_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/race"
)

// inPhases is work over users that three merges follow, and then a commit.
type inPhases struct {
	job.Work
	w *jobtest.Harness
	// merged and committed say when each shard of a phase was processed.
	merged    map[string]int
	committed int
	calls     int
	broken    string // the merge that fails
}

const merges = 3

func (p *inPhases) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	from := 0
	switch last.Part {
	case "commit":
		return nil, nil
	case "merge":
		if _, err := fmt.Sscan(last.From, &from); err != nil {
			return nil, err
		}
		from++
	}
	var following []job.Shard
	for i := from; i < merges; i++ {
		following = append(following, job.Shard{Part: "merge", From: fmt.Sprint(i), To: fmt.Sprint(i + 1)})
	}
	if len(following) == 0 {
		following = []job.Shard{{Part: "commit"}}
	}
	return following, nil
}

func (p *inPhases) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p.calls++
	switch {
	case shard.Part == "merge" && shard.From == p.broken:
		return job.Progress{}, fmt.Errorf("a run is missing: %w", job.ErrFailed)
	case shard.Part == "commit":
		if len(p.merged) != merges {
			p.w.T.Errorf("the job commits after %d of %d merges", len(p.merged), merges)
		}
		p.committed = p.calls
	case shard.Part == "merge":
		for name, u := range p.w.Users {
			if u.Version != p.w.Version(j) {
				p.w.T.Errorf("merge %s begins before the work on %s", shard.From, name)
			}
		}
		p.merged[shard.From] = p.calls
	default:
		return p.Work.Process(ctx, j, app, shard, until, progress)
	}
	return job.Progress{Next: shard.To, Done: true}, nil
}

func (p *inPhases) Verify(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time) (job.Verified, error) {
	if shard.Part != "" {
		return job.Verified{}, nil
	}
	return p.Work.Verify(ctx, j, app, shard, until)
}

func withPhases(t *testing.T, users int) (*jobtest.Harness, *inPhases) {
	w := jobtest.New(t, jobtest.Collection, users, tight)
	work := &inPhases{Work: w.Runner.Work, w: w, merged: map[string]int{}}
	w.Runner.Work = work
	return w, work
}

// A job continues with the shards that follow, whatever call fails: each phase
// begins after the one before it, and the job is done after the last one.
func TestPhasesFollowAtEveryFault(t *testing.T) {
	for name, cause := range map[string]func(context.Context) jobtest.Fault{
		"fails":            func(context.Context) jobtest.Fault { return jobtest.FailBefore },
		"the process ends": jobtest.Dies,
	} {
		for inFlight := range 3 {
			t.Run(fmt.Sprintf("%s, %d in flight", name, inFlight), func(t *testing.T) {
				calls := 1
				for at := 0; at < calls && !t.Failed(); at += race.Or(1, 7) {
					w, work := withPhases(t, 4)
					w.FaultAt(at, &calls, cause)
					untilStarted(t, w, inFlight)
					w.Drain()
					w.Gate = nil
					j := w.WantState("strategy-1", job.Done, "")
					if work.committed == 0 || len(work.merged) != merges || j.Totals.Done != j.Totals.Shards || j.Totals.PlannedUsers != 4 {
						t.Errorf("call %d: merged %v, committed %d, %+v", at, work.merged, work.committed, j.Totals)
					}
				}
				if calls < 60 {
					t.Errorf("only %d calls were tried", calls)
				}
			})
		}
	}
}

// No phase follows one that has failed.
func TestFailedPhaseEndsTheJob(t *testing.T) {
	w, work := withPhases(t, 4)
	work.broken = "1"
	untilStarted(t, w, 2)
	w.Drain()
	w.WantState("strategy-1", job.Failed, "a run is missing")
	if work.committed != 0 {
		t.Error("the job commits")
	}
}

// A job without users goes through its phases too.
func TestPhasesOfNoUsers(t *testing.T) {
	w, work := withPhases(t, 0)
	untilStarted(t, w, 1)
	w.Drain()
	w.WantState("strategy-1", job.Done, "")
	if work.committed == 0 {
		t.Error("the job does not commit")
	}
}
