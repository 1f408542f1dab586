// Package jobs makes all kinds of jobs from a function's backends, for the
// functions that serve all of them.
package jobs

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/daterows"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/kinds/relocation"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/serve/query"
)

// Jobs are the runners of all kinds of jobs.
type Jobs struct {
	Recompute  *recompute.Runner
	Migrations *migration.Migrator
	Reenrich   *reenrich.Runner
	Crowd      *crowdbuild.Runner
	Backtests  *backtests.Runner
	DateRows   *daterows.Runner
	Segments   *segmentbuild.Runner
	// Exports write the users of segments to files, and Query answers questions about
	// segments.
	Exports *segmentexport.Runner
	Query   *query.Reader
	// Relocation moves apps between regions; it is nil in a deployment without regions.
	Relocation *relocation.Runner
}

// Before returns how many unfinished jobs of all apps are before a job in its queue:
// those of every kind whose first task was due earlier.
func (all Jobs) Before(ctx context.Context, j job.Job) (int, error) {
	runners := []*job.Runner{all.Recompute.Runner, all.Migrations.Runner, all.Reenrich.Runner, all.Crowd.Runner, all.Backtests.Runner, all.DateRows.Runner,
		all.Segments.Runner, all.Exports.Runner}
	if all.Relocation != nil {
		runners = append(runners, all.Relocation.Runner)
	}
	counts := make([]int, len(runners))
	g, ctx := errgroup.WithContext(ctx)
	for i, r := range runners {
		g.Go(func() (err error) {
			counts[i], err = r.Jobs.Before(ctx, j.Queue, j.QueuedAt)
			return err
		})
	}
	err := g.Wait()
	before := 0
	for _, n := range counts {
		before += n
	}
	return before, err
}

// New returns the runners. runner returns the runner of the jobs in a collection.
// publish may be nil in a function that starts jobs and does not run them.
func New(b backend.Base, runner func(collection job.Collection) job.Runner, profiles *profile.Engine, publish reenrich.Publisher) (Jobs, error) {
	catalog, err := enrich.NewFresh(b.Store, b.Config)
	if err != nil {
		return Jobs{}, err
	}
	var reader *query.Reader
	segments := segmentbuild.New(runner(segmentbuild.Collection), segmentbuild.Work{
		Store: b.Store, Profiles: profiles, Sizes: func(ctx context.Context, app config.App) error {
			saved, err := b.Config.SavedSegments(ctx, app.ID)
			if err != nil {
				return err
			}
			return reader.StoreSizes(ctx, app, saved)
		},
	})
	reader = query.New(b.Store, profiles, segments, b.Now, b.Log)
	reenrichments := runner(reenrich.Collection)
	all := Jobs{
		Segments:   segments,
		Query:      reader,
		Exports:    segmentexport.New(runner(segmentexport.Collection), reader, b.Store),
		Recompute:  recompute.New(runner(recompute.Collection), profiles, segments.StartAfter),
		Migrations: migration.New(runner(migration.Collection), b.Config, b.Store),
		Backtests:  backtests.New(runner(backtests.Collection), backtests.Work{Store: b.Store, Source: profiles, Config: b.Config, Now: b.Now}),
		Reenrich: reenrich.New(reenrichments, reenrich.Work{
			Store: b.Store, Catalog: catalog, Bus: publish, Config: b.Config, Bands: b.Config, Queue: reenrichments.Queue, Now: b.Now, Log: b.Log,
		}),
		DateRows: daterows.New(runner(daterows.Collection), b.Store, b.Config),
		Crowd:    crowdbuild.New(runner(crowdbuild.Collection), crowdbuild.Work{Store: b.Store, Source: profiles, Settings: b.Config}),
	}
	if stores, first := b.Store.Regions(); stores != nil {
		all.Relocation = relocation.New(runner(relocation.Collection), b.Config, relocation.Regions{First: first, Rows: stores}, profiles, b.Longest(), all.arrived)
	}
	return all, nil
}

// arrived begins what an app in another region needs: blocks of histories do not travel.
func (all Jobs) arrived(ctx context.Context, app config.App) error {
	_, err := all.Recompute.StartManual(ctx, app.ID, recompute.Options{Fold: true})
	return err
}
