// Package recompute stores the profiles of all users of an app under the active
// strategy. It starts recomputes, decides which of several continues, and
// defines their work. Package job runs their tasks; package profile computes
// the profiles.
//
// It is separate from both because it is the policy. A new strategy, an
// operator, the nightly schedule and the end of an import start jobs. An app has
// one unfinished job at a time. A job for a newer strategy supersedes jobs for
// older ones. A job that takes the place of one that folds histories folds them
// too. The jobs lie in a collection of this package:
//
//	apps/{app}/recomputes/{id}
package recompute

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("recomputes")

// Trigger is what started a job.
type Trigger string

// A new strategy, an operator, the nightly schedule and the end of an import start
// jobs.
const (
	byStrategy Trigger = "strategy"
	Manual     Trigger = "manual"
	Nightly    Trigger = "nightly"
	Import     Trigger = "import"
)

// Params are the parameters of a recompute.
type Params struct {
	Trigger Trigger `firestore:"trigger"`
	// StrategyVersion is the version of the strategy at the start of the job.
	StrategyVersion int64 `firestore:"strategyVersion"`
	// ScoringVersion is the version that the profiles get. A newer one supersedes
	// the job. It is 0 in a job that started before the first strategy.
	ScoringVersion int64 `firestore:"scoringVersion,omitempty"`
	// RetentionDays is the retention at the start of the job.
	RetentionDays int `firestore:"retentionDays"`
	// OnlyStale skips users whose stored profile can still be served.
	OnlyStale bool `firestore:"onlyStale"`
	// Maintain folds and trims the users' histories as well.
	Maintain bool `firestore:"maintain"`
	// Fold folds the history of every user.
	Fold bool `firestore:"fold,omitempty"`
}

var _ job.Params = Params{}

// Scoring returns the version that the profiles get.
func (p Params) Scoring() int64 { return cmp.Or(p.ScoringVersion, p.StrategyVersion) }

// LogAttrs returns the strategy version, if the app has a strategy.
func (p Params) LogAttrs() []slog.Attr {
	if p.StrategyVersion == 0 {
		return nil
	}
	return []slog.Attr{slog.Int64("strategyVersion", p.StrategyVersion)}
}

// Counts counts the work of a recompute. A user is known if they have an event
// in the window that is not deleted.
type Counts struct {
	Users   int64 // processed
	Known   int64 // processed users who are known, computed or skipped
	Events  int64 // read
	Written int64 // profiles
	Folded  int64 // histories
	Faulty  int64 // users whose profiles could not be computed or stored
}

// Engine computes and verifies the profiles of a range of users, and makes dictionaries
// of what users share.
type Engine interface {
	Recompute(ctx context.Context, app config.App, users store.Range, o profile.RecomputeOptions,
		progress func(profile.Progress) error) (profile.Progress, error)
	Verify(ctx context.Context, app config.App, users store.Range, until time.Time) (stale int64, next string, err error)
	RenewDictionary(ctx context.Context, app config.App, starts []string)
}

var _ Engine = (*profile.Engine)(nil)

// Runner starts recomputes and runs their tasks. It is safe for concurrent use.
type Runner struct{ *job.Runner }

// New returns the runner of recomputes. It sets the name and the work of r. after is
// called with each job that is done, other than nightly ones; it may be called again.
func New(r job.Runner, engine Engine, after ...func(context.Context, job.Job) error) *Runner {
	r.Name, r.Work = "recompute", Work{engine, after}
	r.StaleText = "users still carry another strategy version or retention"
	return &Runner{job.New(r)}
}

// Work recomputes the profiles of users.
type Work struct {
	Engine Engine
	after  []func(context.Context, job.Job) error
}

var (
	_ job.Preparing = Work{}
	_ job.Closing   = Work{}
)

// Close calls what follows a job.
func (w Work) Close(ctx context.Context, j job.Job) error {
	if j.State != job.Done || job.ParamsOf[Params](j).Trigger == Nightly {
		return nil
	}
	for _, after := range w.after {
		if err := after(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// Prepare makes a dictionary, if it is time for one, of a sample of the users. A job
// that folds most of the app's users comes first, so that their blocks use it.
func (w Work) Prepare(ctx context.Context, j job.Job, app config.App,
	starts func(context.Context) ([]string, error)) error {
	if p := job.ParamsOf[Params](j); !p.Maintain && !p.Fold {
		return nil
	}
	from, err := starts(ctx)
	if err != nil {
		return err
	}
	w.Engine.RenewDictionary(ctx, app, from)
	return nil
}

// Obsolete ends a job whose profiles would not have the active scoring.
func (Work) Obsolete(j job.Job, app config.App) string {
	version := job.ParamsOf[Params](j).Scoring()
	if app.ScoresAs(version) {
		return ""
	}
	return fmt.Sprintf("strategy version %d has replaced %d", app.ScoringVersion, version)
}

// Process computes the users that the pass has not reached. After the first
// pass it computes only stale users.
func (w Work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.ParamsOf[Params](j)
	o := profile.RecomputeOptions{
		OnlyStale: p.OnlyStale || shard.Pass > 0, Until: until,
		Maintain: p.Maintain && shard.Pass == 0, Fold: p.Fold && shard.Pass == 0,
	}
	users := store.Range{From: shard.Next, To: shard.To}
	done, err := w.Engine.Recompute(ctx, app, users, o, func(p profile.Progress) error {
		return progress(progressOf(p))
	})
	return progressOf(done), err
}

func progressOf(p profile.Progress) job.Progress {
	counts := Counts{Users: p.Users, Known: p.Known, Events: p.Events, Written: p.Written, Folded: p.Folded,
		Faulty: p.Faulty}
	return job.Progress{Next: p.Next, Done: p.Done, Counts: job.Count(counts), Faults: p.Faults}
}

// Verify counts the users who carry another scoring version or retention.
func (w Work) Verify(ctx context.Context, _ job.Job, app config.App, shard job.Shard,
	until time.Time) (job.Verified, error) {
	stale, next, err := w.Engine.Verify(ctx, app, store.Range{From: shard.Next, To: shard.To}, until)
	return job.Verified{Next: next, Stale: stale}, err
}
