package move_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const app = "shop"

var ctx = context.Background()

// world is a deployment of two regions with an app in one of them.
type world struct {
	t      *testing.T
	stores map[string]*store.Store
	rows   *store.Store // over both
	apps   *config.Store
	engine *profile.Engine
	moves  *move.Runner

	mu      sync.Mutex
	tasks   []queue.Task // in the queue, in order
	names   map[string]bool
	ahead   clockAhead // of the engine's clock and the jobs'
	slow    bool       // each look at the clock takes two minutes
	arrived int
}

// allowance is how many requests to Bigtable a task may make before it dies; the context of
// a task holds one.
type (
	allowance    struct{ left atomic.Int64 }
	allowanceKey struct{}
)

// clockAhead is a duration that several goroutines read and change.
type clockAhead struct{ ns atomic.Int64 }

func (c *clockAhead) get() time.Duration  { return time.Duration(c.ns.Load()) }
func (c *clockAhead) add(d time.Duration) { c.ns.Add(int64(d)) }

var errDied = status.Error(codes.FailedPrecondition, "the task died")

func dies(ctx context.Context) bool {
	a, ok := ctx.Value(allowanceKey{}).(*allowance)
	return ok && a.left.Add(-1) < 0
}

// mortalConfig and mortalJobs let a task die before or behind a request to Firestore, too.
type (
	mortalConfig struct{ move.Config }
	mortalJobs   struct{ job.Jobs }
)

// mortal makes a request, unless the task dies before. If it dies behind it, the answer is
// lost.
func mortal[T any](ctx context.Context, do func() (T, error)) (answer T, err error) {
	if dies(ctx) {
		return answer, errDied
	}
	if answer, err = do(); err == nil && dies(ctx) {
		err = errDied
	}
	return answer, err
}

func (m mortalConfig) UpdateMove(ctx context.Context, id string, change func(*config.App) error) (config.App, error) {
	return mortal(ctx, func() (config.App, error) { return m.Config.UpdateMove(ctx, id, change) })
}

func (m mortalJobs) Create(ctx context.Context, j job.Job) error {
	_, err := mortal(ctx, func() (any, error) { return nil, m.Jobs.Create(ctx, j) })
	return err
}

func (m mortalJobs) Update(ctx context.Context, app, id string, change func(*job.Job) error) (job.Job, error) {
	return mortal(ctx, func() (job.Job, error) { return m.Jobs.Update(ctx, app, id, change) })
}

func (m mortalJobs) CreateShard(ctx context.Context, app, id string, s job.Shard) error {
	_, err := mortal(ctx, func() (any, error) { return nil, m.Jobs.CreateShard(ctx, app, id, s) })
	return err
}

func (m mortalJobs) UpdateShard(ctx context.Context, app, id string, n int, change func(*job.Shard) error) (job.Shard, error) {
	return mortal(ctx, func() (job.Shard, error) { return m.Jobs.UpdateShard(ctx, app, id, n, change) })
}

func newWorld(t *testing.T, longest time.Duration) *world {
	t.Helper()
	s := config.NewMemory()
	return newWorldOn(t, longest, s, s)
}

// newWorldOn returns a world whose processes see the stored configuration through apps.
func newWorldOn(t *testing.T, longest time.Duration, stored *config.Store, apps move.Config) *world {
	t.Helper()
	w := &world{t: t, apps: stored, names: map[string]bool{}, stores: map[string]*store.Store{}}
	gate := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if dies(ctx) {
				return errDied
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if dies(ctx) {
				return nil, errDied
			}
			return open(ctx, desc, cc, method, opts...)
		}),
	}
	engines := map[string]*profile.Engine{}
	cached := config.NewCached(apps, 0)
	for _, region := range []string{"eu", "us"} {
		s := storetest.New(t, gate...)
		w.stores[region] = s
		engines[region] = profile.New(s, apps, cached, func() time.Time { return time.Now().Add(w.ahead.get()) }, slog.New(slog.DiscardHandler))
	}
	w.must(profile.Join("eu", engines))
	rows, err := store.Regional("eu", "eu", w.stores, func(id string) (store.Place, error) {
		a, err := w.apps.App(ctx, id)
		at := a.Place()
		if a.Region == "" {
			at = config.Place{Read: "eu", Write: []string{"eu"}}
		}
		return store.Place{Read: at.Read, Write: at.Write}, err
	})
	w.must(err)
	w.rows = rows
	w.engine = engines["eu"]
	w.must(w.apps.CreateApp(ctx, config.App{ID: app, RetentionDays: 90}))
	_, _, err = w.apps.SetStrategy(ctx, app, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}},
	})
	w.must(err)
	clock := func() time.Time {
		if w.slow {
			w.ahead.add(2 * time.Minute)
		}
		return time.Now().Add(w.ahead.get())
	}
	w.moves = move.New(job.Runner{
		Settings: job.Settings{ShardUsers: 7, Budget: time.Minute, Attempts: 1 << 30}, Jobs: mortalJobs{job.Detailed(job.In(documents.NewMemory(), move.Collection), rows.Jobs, move.Collection)}, Config: apps, Queue: w,
		CheckpointEvery: -1, Now: clock, Clock: clock, Log: slog.New(slog.DiscardHandler),
	}, mortalConfig{apps}, move.Regions{First: "eu", Rows: w.stores}, w.engine, longest, func(context.Context, config.App) error {
		w.arrived++
		return nil
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Create adds a task to the queue.
func (w *world) Create(_ context.Context, t queue.Task) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.names[t.Name] {
		w.names[t.Name] = true
		w.tasks = append(w.tasks, t)
	}
	return nil
}

// run delivers a task.
func (w *world) run(ctx context.Context, t queue.Task) error {
	if strings.HasSuffix(t.Path, "/plan") {
		var task job.PlanTask
		if err := json.Unmarshal(t.Body, &task); err != nil {
			return err
		}
		_, err := w.moves.Plan(ctx, task, 0)
		return err
	}
	var task job.ShardTask
	if err := json.Unmarshal(t.Body, &task); err != nil {
		return err
	}
	_, err := w.moves.Shard(ctx, task, 0)
	return err
}

// step runs the first task of the queue. It reports whether there was one.
func (w *world) step() bool {
	w.t.Helper()
	if len(w.tasks) == 0 {
		return false
	}
	t := w.tasks[0]
	w.must(w.run(ctx, t))
	w.tasks = w.tasks[1:]
	return true
}

func (w *world) start(to string) {
	w.t.Helper()
	_, err := w.moves.Start(ctx, app, to)
	w.must(err)
}

func (w *world) app() config.App {
	w.t.Helper()
	a, err := w.apps.App(ctx, app)
	w.must(err)
	return a
}

func seen(user string, n int, color string) store.LogEvent {
	at := time.Now().Add(-time.Duration(n+1) * time.Minute).UnixMilli()
	return store.LogEvent{User: user, Time: at, ID: fmt.Sprintf("id%09d", n), Type: event.View, Name: "Viewed", Original: []byte("{}"),
		Counts: []affinity.Count{{Facet: "color", Value: color, N: 1}}, Receipt: at}
}

// importMany gives a user so many events, each at a time of its own.
func (w *world) importMany(user string, n int) {
	w.t.Helper()
	events := make([]store.LogEvent, n)
	for i := range events {
		events[i] = seen(user, 0, "red")
		events[i].Time, events[i].ID = events[i].Time-int64(i), fmt.Sprintf("many%07d", i)
	}
	for some := range slices.Chunk(events, 5000) {
		_, err := w.engine.Import(ctx, w.app(), some)
		w.must(err)
	}
}

// populate gives users of all kinds some events. It returns how many each has.
func (w *world) populate(users int) map[string]int {
	w.t.Helper()
	counts := map[string]int{}
	for i := range users {
		user := fmt.Sprintf("user%02d", i)
		for n := range 1 + i%3 {
			_, err := w.engine.Apply(ctx, w.app(), []store.LogEvent{seen(user, n, "red")})
			w.must(err)
			counts[user]++
		}
		switch i % 5 {
		case 1: // a block
			_, err := w.engine.Fold(ctx, w.app(), user)
			w.must(err)
		case 2:
			_, err := w.engine.Delete(ctx, app, user)
			w.must(err)
			counts[user] = 0
		case 3: // a marker, and an event that no profile counts
			_, err := w.engine.Import(ctx, w.app(), []store.LogEvent{seen(user, 9, "red")})
			w.must(err)
			counts[user]++
		case 4:
			_, err := w.engine.OptOut(ctx, app, user, event.Click)
			w.must(err)
			counts[user] = 0
		}
	}
	return counts
}

// exact checks the profile of each user.
func (w *world) exact(when string, counts map[string]int) {
	w.t.Helper()
	for user, n := range counts {
		got, err := w.engine.Read(ctx, w.app(), user, 0)
		w.must(err)
		score := 0.0
		if len(got.Affinities) > 0 {
			score = got.Affinities[0].Scores[0]
		}
		if score != float64(n) || got.Known != (n > 0) {
			w.t.Fatalf("%s: %s has a score of %v (known: %v), want %d", when, user, score, got.Known, n)
		}
	}
}

// empty checks that a region holds nothing of the app.
func (w *world) empty(region string) {
	w.t.Helper()
	all, err := store.Tables()
	w.must(err)
	for _, table := range all {
		keys, err := w.stores[region].Rows.FindRows(ctx, store.AppRows{App: app, Table: table.Name}, 5)
		w.must(err)
		if len(keys) > 0 {
			w.t.Errorf("%s still holds %q in %s", region, keys, table.Name)
		}
	}
}
