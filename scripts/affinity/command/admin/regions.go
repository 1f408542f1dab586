package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/store"
)

// theOnly stands for the region of a deployment that has no others.
const theOnly = "the-only"

// needRegions is what an operator must give who names an app in a region.
const needRegions = "give --regions, which `terraform output -raw regions` prints, or add the context again " +
	"with --from-terraform"

// Bigtables is the Bigtable of a deployed engine: the instance of --instance or, with
// --regions, those of all regions.
type Bigtables struct {
	store.Config
	regions config.Regions
	apps    *config.Store // says where apps live
}

// open connects with the operator's Google credentials, or to the emulator that
// BIGTABLE_EMULATOR_HOST names. An app is found in its region.
func (b Bigtables) open(ctx context.Context) (*store.Store, error) {
	base, err := b.base(ctx)
	return base.Store, err
}

func (b Bigtables) base(ctx context.Context) (backend.Base, error) {
	regions := b.regions
	if len(regions) == 0 {
		regions = config.Regions{{Name: theOnly, Instance: b.Instance}}
	}
	base, err := backend.OpenRegional(ctx, slog.New(slog.DiscardHandler), b.Config,
		backend.RegionSettings{All: regions}, b.apps)
	if err != nil {
		return base, fmt.Errorf("%w (--instance or --regions, and --app-profile, name it)", err)
	}
	return base, nil
}

// checkRegion refuses a command on an app that lives in a region if the regions are not given:
// what it writes of the app would be lost in another one.
func (a *appTool) checkRegion(cmd *cobra.Command, apps *config.Store) error {
	if !strings.Contains(cmd.Use, " ID") {
		return nil
	}
	return a.checkRegions(cmd.Context(), apps, cmd.Flags().Arg(0))
}

// checkRegions is checkRegion of a command on several apps.
func (a *appTool) checkRegions(ctx context.Context, apps *config.Store, ids ...string) error {
	if len(a.regions) > 0 {
		return nil
	}
	for _, id := range ids {
		region, err := backend.BirthsOf(ctx, apps, id)
		if err != nil {
			return err
		}
		if region != "" {
			return cli.Usagef("app %s is in region %s: %s", id, region, needRegions)
		}
	}
	return nil
}

// bigtables are those of the apps in a configuration.
func (a *appTool) bigtables(apps *config.Store) Bigtables {
	return Bigtables{a.bigtable, a.regions, apps}
}

// taskConfig is the configuration of the worker's queues in all regions.
func (a *appTool) taskConfig(apps *config.Store) taskqueue.Config {
	return taskqueue.Config{Queue: a.queue, WorkerURL: workerURL, Regions: a.regions,
		Where: func(ctx context.Context, appID string) (string, error) {
			return backend.BirthsOf(ctx, apps, appID)
		}}
}

// recomputeConcurrency is how many shards of the recompute of an app that has arrived have tasks at a
// time, as the worker has it.
const recomputeConcurrency = 8

// deployedMoves calls do with what moves the apps of a deployed engine. begin says whether do
// begins anything.
func (a *appTool) deployedMoves(ctx context.Context, s *deployedStore, begin bool,
	do func(command.Mover) error) (err error) {
	if len(a.regions) == 0 {
		return cli.Usagef("%s", needRegions)
	}
	base, err := a.bigtables(s.Store).base(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Store.Close()) }()
	var tasks queue.Queue
	if begin {
		opened, closeTasks, err := s.queue(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeTasks()) }()
		tasks = opened
	}
	runner := func(c job.Collection) job.Runner {
		return job.Runner{
			Jobs: job.Detailed(job.In(s.documents, c), base.Store.Jobs, c), Config: s.Store, Queue: tasks,
			Propagation: 2 * config.TTL, Now: time.Now, Log: base.Log,
		}
	}
	// A command ends a move whose worker died before it could.
	arrived := func(ctx context.Context, app config.App) error {
		r := runner(recompute.Collection)
		r.Concurrency = recomputeConcurrency
		_, err := recompute.New(r, nil).StartManual(ctx, app.ID, recompute.Options{Fold: true})
		return err
	}
	stores, first := base.Store.Regions()
	moves := move.New(runner(move.Collection), s.Store, move.Regions{First: first, Rows: stores}, nil,
		deadline.Longest, arrived)
	return do(operator.Moves{Runner: moves, Recorder: a.recorder(base.Store.AuditLog), Regions: a.regions, Apps: s.Store})
}
