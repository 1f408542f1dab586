package segmentbuild_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const app = jobtest.App

// small are bounds with which few users make many parts, shards and joins.
var small = segmentbuild.Work{ShardUsers: 20, PartUsers: 8, Affinities: 40, DeltaUsers: 2, Joined: 2}

// harness has an engine and a store whose requests pass the gate of the harness of
// jobs, and a runner of builds. Tasks of deltas wait apart from those of jobs.
type harness struct {
	*jobtest.Harness
	store  *store.Store
	engine *profile.Engine
	runner *segmentbuild.Runner
	beside []queue.Task // of deltas and cleaning
	names  map[string]bool
	events int
}

// opener opens a store that the harness may use.
type opener func(dial ...grpc.DialOption) (*store.Store, *bigtable.Client)

func newHarness(t jobtest.T, open opener, work segmentbuild.Work) *harness {
	settings := job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 100}
	h := &harness{Harness: jobtest.New(t, segmentbuild.Collection, 0, settings), names: map[string]bool{}}
	h.store, _ = open(h.Dial()...)
	h.score(20)
	must.Succeed(t, h.Config.SetSegments(t.Context(), app, true))
	h.engine = profile.New(h.store, h.Config, config.NewCached(h.Config, 0), func() time.Time { return h.Now }, slog.New(slog.DiscardHandler))
	work.Store, work.Profiles = h.store, h.engine
	h.engine.SetLater(func(context.Context, config.App, []string) {}) // who wants its task runs it
	parts := h.Parts(settings)
	parts.Users, parts.Queue = h.store.Users, besideQueue{h, parts.Queue}
	parts.UsersIn = func(region string) job.Users { return h.store.In(region).Users }
	h.runner = segmentbuild.New(parts, work)
	h.Runner = h.runner.Runner
	return h
}

// besideQueue keeps the tasks of deltas and cleaning apart.
type besideQueue struct {
	h    *harness
	jobs queue.Queue
}

func (q besideQueue) Create(ctx context.Context, task queue.Task) error {
	if task.Path != segmentbuild.Deltas.Path && task.Path != segmentbuild.Cleaning.Path {
		return q.jobs.Create(ctx, task)
	}
	return q.h.Call(ctx, "queue", func() error {
		if !q.h.names[task.Name] {
			q.h.names[task.Name] = true
			q.h.beside = append(q.h.beside, task)
		}
		return nil
	})
}

// score sets a strategy, a different one for each score of a color.
func (h *harness) score(points int) {
	h.T.Helper()
	month, _ := strategy.ParseHalfLife("30d")
	week, _ := strategy.ParseHalfLife("7d")
	_, _, err := h.Config.SetStrategy(h.T.Context(), app, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: points}},
		HalfLives:     []strategy.HalfLife{month, week},
	})
	must.Succeed(h.T, err)
}

func (h *harness) app() config.App {
	h.T.Helper()
	a, err := h.Config.App(h.T.Context(), app)
	must.Succeed(h.T, err)
	return a
}

// seen is an event of a user some time ago.
func (h *harness) seen(user, color string, ago time.Duration) store.LogEvent {
	h.events++
	return store.LogEvent{User: user, ID: fmt.Sprintf("%011d", h.events), Time: h.Now.Add(-ago).UnixMilli(), Type: event.View, Name: "Seen",
		Counts: []affinity.Count{{Facet: "color", Value: color, N: 1}}, Original: []byte("{}")}
}

// apply applies events as the processor of messages does.
func (h *harness) apply(events ...store.LogEvent) {
	h.T.Helper()
	if _, err := h.engine.Apply(h.T.Context(), h.app(), events); err != nil {
		h.T.Fatal(err)
	}
}

// token is the user with a number. Every second one comes before the one whose token is
// the beginning of theirs.
func token(n int) string { return fmt.Sprintf("u%03d", n/2) + []string{"+", ""}[n%2] }

// fill gives some users events of several ages and colors.
func (h *harness) fill(users int) {
	h.T.Helper()
	var events []store.LogEvent
	for i := range users {
		for j := range 1 + i%3 {
			events = append(events, h.seen(token(i), fmt.Sprint("c", (i+j)%4), time.Duration(1+i%80)*24*time.Hour))
		}
	}
	h.apply(events...)
	h.Now = h.Now.Add(time.Minute)
}

// build starts a build and runs its tasks to the end.
func (h *harness) build() job.Job {
	h.T.Helper()
	h.Now = h.Now.Add(time.Second)
	j, err := h.runner.StartManual(h.T.Context(), app)
	must.Succeed(h.T, err)
	h.Drain()
	return h.Find(j.ID)
}

// run delivers the tasks of deltas and cleaning that wait, and tasks of jobs that they
// start.
func (h *harness) run() (all []segmentbuild.Outcome) {
	h.T.Helper()
	for len(h.beside) > 0 {
		task := h.beside[0]
		h.beside = h.beside[1:]
		for {
			o, err := h.deliver(jobtest.Process(h.T.Context()), task)
			if err == nil {
				all = append(all, o)
				break
			}
			if h.Gate == nil {
				h.T.Fatal(err)
			}
		}
		h.Drain()
	}
	return all
}

// deliver runs a task of a delta or of cleaning.
func (h *harness) deliver(ctx context.Context, task queue.Task) (segmentbuild.Outcome, error) {
	request, err := segmentbuild.Deltas.Decode(task.Body)
	must.Succeed(h.T, err)
	if task.Path == segmentbuild.Cleaning.Path {
		return segmentbuild.Outcome{}, h.runner.Clean(ctx, request)
	}
	return h.runner.Delta(ctx, request)
}

// order orders a delta as a query does, and runs it.
func (h *harness) order() []segmentbuild.Outcome {
	h.T.Helper()
	h.Now = h.Now.Add(time.Minute) // each minute has an order
	if _, err := h.runner.Order(h.T.Context(), app); err != nil {
		h.T.Fatal(err)
	}
	return h.run()
}

func (h *harness) manifest() segment.Manifest { return h.manifestIn("") }

// manifestIn returns the manifest of a region of an app whose users have regions of their own.
func (h *harness) manifestIn(region string) segment.Manifest {
	h.T.Helper()
	m, err := h.store.In(region).Segments.ReadSegmentManifest(h.T.Context(), app)
	must.Succeed(h.T, err)
	return m
}
