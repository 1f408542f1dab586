package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command/admin"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/store"
)

// worker runs the tasks of moves that commands create, as the deployed one would. Its clock
// is ahead, so that no phase waits.
type worker struct {
	tasks
	seen  map[string]bool
	moves *move.Runner
}

func (w *worker) Create(ctx context.Context, t queue.Task) error {
	if w.seen[t.Name] {
		return nil
	}
	w.seen[t.Name] = true
	return w.tasks.Create(ctx, t)
}

// dying is a configuration whose process dies before it ends a move.
type dying struct {
	*config.Store
	dead bool
}

var errDied = errors.New("the worker died")

func (d *dying) UpdateMove(ctx context.Context, id string, change func(*config.App) error) (config.App, error) {
	if a, err := d.App(ctx, id); err == nil && d.dead && a.Move.Phase == config.MoveFinishing && a.Move.Job != "" {
		return a, errDied
	}
	return d.Store.UpdateMove(ctx, id, change)
}

func (w *worker) run(t *testing.T) {
	t.Helper()
	for len(w.tasks) > 0 {
		next, err := w.tasks[0], error(nil)
		w.tasks = w.tasks[1:]
		if strings.HasSuffix(next.Path, "/plan") {
			var task job.PlanTask
			if err = json.Unmarshal(next.Body, &task); err == nil {
				_, err = w.moves.Plan(t.Context(), task, 0)
			}
		} else {
			var task job.ShardTask
			if err = json.Unmarshal(next.Body, &task); err == nil {
				_, err = w.moves.Shard(t.Context(), task, 0)
			}
		}
		if errors.Is(err, errDied) {
			return // and the queue loses the task
		}
		must(t, err)
	}
}

// On a deployed engine the commands read Firestore and the Bigtable of each region, and give
// a move to the worker's queue.
func TestAppMoveDeployed(t *testing.T) {
	addr := storetest.Start(t)
	t.Setenv("BIGTABLE_EMULATOR_HOST", addr)
	eu, _ := storetest.OpenInstance(t, addr, "affinity")
	us, _ := storetest.OpenInstance(t, addr, "affinity-us")
	apps, jobs := config.NewMemory(), documents.NewMemory()
	w := &worker{seen: map[string]bool{}}
	var queueOf taskqueue.Config
	app := func(line string) ran {
		t.Helper()
		return affinityWith(t, t.Context(), "", func(tl *program) {
			tl.open = admin.Deployed()
			tl.open.Config = func(context.Context, admin.Databases) (admin.ConfigStore, error) {
				return admin.ConfigStore{Store: apps, Documents: jobs, Close: func() error { return nil }}, nil
			}
			tl.open.Tasks = func(ctx context.Context, c taskqueue.Config) (queue.Queue, func() error, error) {
				if queueOf = c; c.Queue == "" {
					return admin.Deployed().Tasks(ctx, c)
				}
				return w, func() error { return nil }, nil
			}
		}, strings.Fields("app --project test --database affinity --keys-database affinity-keys --instance affinity "+line)...)
	}
	engine := profile.New(eu, apps, config.NewCached(apps, 0), time.Now, slog.New(slog.DiscardHandler))
	var ahead time.Duration
	clock := func() time.Time { ahead += 20 * time.Minute; return time.Now().Add(ahead) }
	// Its phases follow one another at once, so it caches no configuration.
	named := config.Regions{{Name: "eu"}, {Name: "us"}}
	rows, err := store.Regional("eu", "eu", map[string]*store.Store{"eu": eu, "us": us}, func(id string) (store.Place, error) {
		a, err := apps.App(t.Context(), id)
		at := named.Place(a)
		return store.Place{Read: at.Read, Write: at.Write}, err
	})
	must(t, err)
	ends := &dying{Store: apps}
	w.moves = move.New(job.Runner{
		Settings: job.Settings{ShardUsers: 7, Budget: time.Minute, Attempts: 8}, Jobs: job.Detailed(job.In(jobs, move.Collection), rows.Jobs, move.Collection),
		Config: apps, Queue: w, Propagation: 2 * config.TTL, Now: clock, Clock: clock, Log: slog.New(slog.DiscardHandler),
	}, ends, move.Regions{First: "eu", Rows: map[string]*store.Store{"eu": eu, "us": us}}, engine, time.Minute, func(context.Context, config.App) error { return nil })

	const regions = ` --regions [{"name":"eu","instance":"affinity","location":"europe-west1"},{"name":"us","instance":"affinity-us","location":"us-central1"}]`
	draining := strings.Replace(regions, `"us-central1"`, `"us-central1","draining":true`, 1)
	app("create shop --region us").wants(t, cli.ExitUsage, "--region us: give --regions, which `terraform output -raw regions` prints")
	app("create shop --region asia"+regions).wants(t, cli.ExitUsage, `there is no region "asia": the regions are eu, us`)
	app("create shop --region us"+draining).wants(t, cli.ExitUsage, "region us is draining, so no app can be created there or move there")
	app("create shop --region us"+regions).wants(t, cli.ExitOK)
	app("create old").wants(t, cli.ExitOK)
	app("list").wants(t, cli.ExitOK, "  in region us\n")
	app("list --json").wants(t, cli.ExitOK, `"region": "us"`)
	app("retention shop 30").wants(t, cli.ExitUsage, "app shop is in region us: give --regions")
	app("retention shop 30"+regions).wants(t, cli.ExitOK)
	app("retention old 30"+regions).wants(t, cli.ExitOK)
	app("retention old 30").wants(t, cli.ExitOK)
	app("top").wants(t, cli.ExitUsage, "app shop is in region us: give --regions")
	app("top"+regions).wants(t, cli.ExitOK)

	app("region old").wants(t, cli.ExitUsage, "give --regions")
	app("region old --regions [").wants(t, cli.ExitUsage, "want a JSON array of objects with name and instance")
	app("region old"+regions).wants(t, cli.ExitOK, "app old is in region eu\n")
	app("move old --to asia --queue q"+regions).wants(t, cli.ExitFailed, `There is no region "asia"`)
	app("move old --to us --dry-run"+regions).wants(t, cli.ExitOK, "app old can move from eu to us: 0 users, in 1h")
	app("move old --to us"+regions).wants(t, cli.ExitUsage, "--queue is required")
	app("move old --to us --dry-run"+draining).wants(t, cli.ExitFailed, "region us is draining")
	app("move old --to us --queue q"+draining).wants(t, cli.ExitFailed, "region us is draining")
	if a, err := apps.App(t.Context(), "old"); err != nil || a.Moving() {
		t.Fatalf("the app moves without a job: %+v (%v)", a, err)
	}
	app("move old --to us --no-wait --queue q"+regions).wants(t, cli.ExitOK, "app old moves from eu to us")
	app("move old --to us --no-wait --queue q"+draining).wants(t, cli.ExitOK, "app old moves from eu to us") // under way to it
	if region, err := queueOf.Where(t.Context(), "shop"); err != nil || region != "us" || len(queueOf.Regions) != 2 {
		t.Errorf("the task goes to region %q (%v)", region, err)
	}
	app("list").wants(t, cli.ExitOK, "  moves from eu to us\n")
	w.run(t)
	app("move old --back --queue q"+regions).wants(t, cli.ExitFailed, "does not move")
	app("region old"+regions).wants(t, cli.ExitOK, "app old is in region us\n")
	for _, id := range []string{"old", "shop"} {
		names, err := store.TableNames()
		must(t, err)
		for _, table := range names {
			if left, err := eu.Rows.FindRows(t.Context(), store.AppRows{App: id, Table: table}, 1); err != nil || len(left) > 0 {
				t.Errorf("eu has rows of app %s in %s: %q (%v)", id, table, left, err)
			}
		}
	}
	entries, _, err := auditlog.Read(t.Context(), us.AuditLog, "old", auditlog.Query{Limit: 10})
	if err != nil || len(entries) < 4 || entries[1].Action != auditlog.AppMove || entries[1].Detail != "to us" || entries[1].Outcome != auditlog.Done {
		t.Errorf("audit log %+v (%v)", entries, err)
	}

	// The worker dies before it ends a move whose work is done. The command ends it, and begins
	// what the app needs in its region.
	ends.dead = true
	app("move old --to eu --no-wait --queue q"+regions).wants(t, cli.ExitOK, "app old moves from us to eu")
	w.run(t)
	app("region old"+regions).wants(t, cli.ExitOK, "app old moves from us to eu: ending the move")
	app("move old --to eu --queue q"+regions).wants(t, cli.ExitOK, "app old is in region eu, and no other region holds anything of it")
	started, err := job.In(jobs, recompute.Collection).List(t.Context(), "old", 10)
	if err != nil || len(started) != 1 || !job.ParamsOf[recompute.Params](started[0]).Fold || len(w.tasks) != 1 || w.tasks[0].Path != "/recompute/plan" {
		t.Errorf("recomputes %+v (%v), tasks %+v; want one that folds", started, err, w.tasks)
	}
}
