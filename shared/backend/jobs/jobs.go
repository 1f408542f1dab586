// Package jobs makes all kinds of jobs from a function's backends, for the
// functions that serve all of them.
package jobs

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/jobrunner"
	"github.com/affinityengine/affinity/shared/backend/segmentjobs"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/daterows"
	"github.com/affinityengine/affinity/shared/job/kinds/linkpreview"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/job/kinds/residents"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
)

// Jobs are the runners of all kinds of jobs.
type Jobs struct {
	Recompute    *recompute.Runner
	Migrations   *migration.Migrator
	Reenrich     *reenrich.Runner
	Crowd        *crowdbuild.Runner
	Backtests    *backtests.Runner
	DateRows     *daterows.Runner
	LinkPreviews *linkpreview.Runner
	Reports      *reports.Runner
	segmentjobs.Segmenting
	// Moves moves apps between regions, and Residents users; both are nil in a deployment without regions.
	Moves     *move.Runner
	Residents *residents.Runner
	// More are kinds that a program adds to those above.
	More []job.Kind
}

// Kinds returns the runners, of all kinds that this deployment has.
func (all Jobs) Kinds() []job.Kind {
	kinds := []job.Kind{
		all.Recompute, all.Migrations, all.Reenrich, all.Crowd, all.Backtests, all.DateRows, all.LinkPreviews, all.Segments,
		all.Exports, all.Reports,
	}
	if all.Moves != nil {
		kinds = append(kinds, all.Moves, all.Residents)
	}
	return append(kinds, all.More...)
}

// Before returns how many unfinished jobs of all apps are before a job in its queue:
// those of every kind whose first task was due earlier.
func (all Jobs) Before(ctx context.Context, j job.Job) (int, error) {
	kinds := all.Kinds()
	stores := make([]job.Jobs, len(kinds))
	for i, k := range kinds {
		stores[i] = k.Core().Jobs
	}
	return job.Before(ctx, j, stores...)
}

// Open returns the runners of jobs whose tasks go to q. publish may be nil in a function that
// starts jobs and does not run them.
func Open(b backend.Base, q queue.Queue, settings job.Settings, profiles *profile.Engine,
	publish reenrich.Publisher) Jobs {
	runner := func(collection job.Collection) job.Runner { return jobrunner.Open(b, q, settings, collection) }
	segments := segmentjobs.New(b, runner, profiles)
	reenrichments := runner(reenrich.Collection)
	all := Jobs{
		Segmenting: segments,
		Recompute:  recompute.New(runner(recompute.Collection), profiles, segments.Segments.StartAfter),
		Migrations: migration.New(runner(migration.Collection), b.Config, b.Store),
		Backtests: backtests.New(runner(backtests.Collection),
			backtests.Work{Store: b.Store, Source: profiles, Config: b.Config, Now: b.Now}),
		Reenrich: reenrich.New(reenrichments, reenrich.Work{
			Store: b.Store, Catalog: enrich.NewFresh(b.Store.Catalog, b.Config), Bus: publish, Config: b.Config,
			Bands: b.Config, Queue: reenrichments.Queue, Now: b.Now, Log: b.Log,
		}),
		LinkPreviews: linkpreview.New(runner(linkpreview.Collection),
			linkpreview.Work{Store: b.Store, Config: b.Config, Now: b.Now}),
		Reports: reports.New(runner(reports.Collection),
			reports.Work{Profiles: profiles, Reports: config.ReportsOf(b.Config)}),
		DateRows: daterows.New(runner(daterows.Collection), b.Store, b.Config),
		Crowd: crowdbuild.New(runner(crowdbuild.Collection),
			crowdbuild.Work{Store: b.Store, Source: profiles, Settings: b.Config}),
	}
	if stores, first := b.Store.Regions(); stores != nil {
		all.Moves = move.New(runner(move.Collection), b.Config, move.Regions{First: first, Rows: stores}, profiles,
			b.Longest(), all.arrived)
		all.Residents = residents.New(runner(residents.Collection),
			residents.Work{Store: b.Store, Profiles: profiles, Config: b.Config, Now: b.Now, Settle: b.Settle()})
	}
	return all
}

// arrived begins what an app in another region needs: blocks of histories do not travel.
func (all Jobs) arrived(ctx context.Context, app config.App) error {
	_, err := all.Recompute.StartManual(ctx, app.ID, recompute.Options{Fold: true})
	return err
}
