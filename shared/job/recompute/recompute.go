// Package recompute makes the stored profiles of all users of an app current: what
// starts such jobs, which of two stays, and what they do to users. The jobs and
// their tasks are those of package job, and computing itself is the engine's.
//
// It is separate from both because it is the policy: a new strategy, somebody by
// hand and the night each start jobs, an app has one under way at a time, and a
// newer strategy ends those of the older. Jobs lie in Firestore, in a collection of
// this package:
//
//	apps/{app}/recomputes/{id}
package recompute

import (
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection is where the jobs lie under an app.
const Collection = "recomputes"

// What starts jobs: a new strategy, somebody by hand, and the night.
const (
	ByStrategy job.Trigger = "strategy"
	ByHand     job.Trigger = "manual"
	ByNight    job.Trigger = "nightly"
)

// Engine computes and verifies the profiles of a range of users.
type Engine interface {
	Recompute(ctx context.Context, app config.App, part store.Range, o profile.RecomputeOptions,
		progress func(profile.Progress) error) (profile.Progress, error)
	Verify(ctx context.Context, app config.App, part store.Range) (stale int64, err error)
}

var _ Engine = (*profile.Engine)(nil)

// Runner starts recomputes and carries out their tasks. Safe for concurrent use.
type Runner struct{ *job.Runner }

// New completes a runner of recomputes by an engine: name and work are set here.
func New(r job.Runner, engine Engine) *Runner {
	r.Name, r.Work = "recompute", Work{engine}
	r.Stale = "users still carry another strategy version or retention"
	return &Runner{job.New(r)}
}

// Work is what a recompute does to users.
type Work struct{ Engine Engine }

var _ job.Work = Work{}

// Obsolete ends jobs of another strategy than the active one.
func (Work) Obsolete(j job.Job, app config.App) string {
	if app.StrategyVersion == j.StrategyVersion {
		return ""
	}
	return fmt.Sprintf("strategy version %d has taken the place of %d", app.StrategyVersion, j.StrategyVersion)
}

// Sweep computes the users that the pass has not come to. After the first pass
// only those who are stale are left to be computed.
func (w Work) Sweep(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	o := profile.RecomputeOptions{
		OnlyStale: j.OnlyStale || shard.Pass > 0, Maintain: j.Maintain && shard.Pass == 0, Until: until,
	}
	p, err := w.Engine.Recompute(ctx, app, store.Range{From: shard.Next, To: shard.To}, o, func(p profile.Progress) error {
		return progress(done(p))
	})
	return done(p), err
}

func done(p profile.Progress) job.Progress {
	return job.Progress{Next: p.Next, Done: p.Done, Visited: p.Users, Users: p.Known, Events: p.Events, Changed: p.Written}
}

// Verify counts the users who carry another strategy version or retention.
func (w Work) Verify(ctx context.Context, _ job.Job, app config.App, shard job.Shard) (int64, error) {
	return w.Engine.Verify(ctx, app, store.Range{From: shard.From, To: shard.To})
}
