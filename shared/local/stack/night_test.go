package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
)

// dyingQueue ends the process of a round once it has created a number of tasks.
type dyingQueue struct {
	queue.Queue
	left    *atomic.Int64
	created *sync.WaitGroup
	die     context.CancelFunc
}

func newDyingQueue(q queue.Queue, after int, die context.CancelFunc) dyingQueue {
	dying := dyingQueue{q, new(atomic.Int64), new(sync.WaitGroup), die}
	dying.left.Store(int64(after))
	dying.created.Add(after)
	return dying
}

func (q dyingQueue) Create(ctx context.Context, t queue.Task) error {
	if q.left.Add(-1) < 0 {
		q.created.Wait()
		q.die()
		return errors.New("the process has ended")
	}
	defer q.created.Done()
	return q.Queue.Create(ctx, t)
}

// nightApps are the apps of a stack, in the order of a round.
func nightApps(n int) (apps []stack.App) {
	for i := range n {
		apps = append(apps, stack.App{ID: fmt.Sprintf("app-%02d", i), Key: "k"})
	}
	return apps
}

// doneTonight waits until the only recompute of each app, the nightly one, is done.
func doneTonight(t *testing.T, s *stack.Stack, apps []stack.App) {
	t.Helper()
	poll(t, time.Minute, func() (string, bool) {
		for _, app := range apps {
			all, err := s.Backends.Recompute.List(t.Context(), app.ID, 10)
			must.Succeed(t, err)
			if len(all) > 1 || len(all) == 1 && job.ParamsOf[recompute.Params](all[0]).Trigger != recompute.Nightly {
				t.Fatalf("recomputes of %s: %+v, want one of the night", app.ID, all)
			}
			if len(all) == 0 || all[0].State != job.Done {
				return fmt.Sprintf("%s has %+v", app.ID, all), false
			}
		}
		return "", true
	})
}

// The process of a round dies when a few apps have their task. The next attempt gives the
// others theirs. Every job of the night is done, once, and so is one that was lost before.
func TestNightKilledMidway(t *testing.T) {
	apps := nightApps(12)
	s := start(t, stack.Options{Apps: apps, ConfigTTL: time.Millisecond})
	b, ctx := s.Backends, t.Context()
	lost, err := b.Exports.Create(ctx, job.Job{
		App: apps[11].ID, ID: job.NewID("export", b.Now()), Concurrency: 1,
		Params: segmentexport.Params{Segment: "reds", Where: `{"filter":"color:Red","above":0}`},
	}, 0)
	must.Succeed(t, err)

	killed, die := context.WithCancel(ctx)
	dying := b.ForWorker()
	dying.Queue = newDyingQueue(dying.Queue, 5, die)
	w := httptest.NewRecorder()
	worker.New(dying).ServeHTTP(w, httptest.NewRequest("POST", "/nightly", strings.NewReader(`{"spread":"0s"}`)).WithContext(killed))
	if w.Code < 500 {
		t.Errorf("the killed round answers %d %s", w.Code, w.Body)
	}
	idle(t, s)
	begun := 0
	for _, app := range apps {
		all, err := b.Recompute.List(ctx, app.ID, 10)
		must.Succeed(t, err)
		begun += len(all)
	}
	if begun != 5 {
		t.Errorf("%d apps have a job after the killed round, want 5", begun)
	}

	if answer := work(t, s, "/nightly", `{"spread":"0s"}`); answer != `{"apps":12}` {
		t.Error(answer)
	}
	doneTonight(t, s, apps)
	poll(t, time.Minute, func() (string, bool) {
		j, err := b.Exports.Find(ctx, apps[11].ID, lost.ID)
		must.Succeed(t, err)
		return fmt.Sprintf("the lost job is %s", j.State), j.State.Ended()
	})
}

// held makes requests about an app to all tables but those of users and jobs wait until it is
// released. So its jobs can be planned, and no shard ends.
type held struct {
	app      string
	waiting  *atomic.Int64
	released chan struct{}
}

func (h held) wait(ctx context.Context, request any) {
	r, ok := request.(interface{ GetTableName() string })
	if !ok || strings.HasSuffix(r.GetTableName(), "/users") || strings.HasSuffix(r.GetTableName(), "/jobs") ||
		!strings.Contains(fmt.Sprint(request), h.app+",") {
		return
	}
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	select {
	case <-h.released:
	case <-ctx.Done():
	}
}

type heldStream struct {
	grpc.ServerStream
	held
}

func (s heldStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.wait(s.Context(), m)
	}
	return err
}

func (h held) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
			h.wait(ctx, r)
			return do(ctx, r)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, do grpc.StreamHandler) error {
			return do(srv, heldStream{s, h})
		}),
	}
}

// The first app of the round is so large that nothing of it ends: neither the shards of its
// recompute, of which as many run as a job may have at once, nor the task that starts its night.
// The night of all others begins and ends.
func TestLargeAppHoldsUpNoOthers(t *testing.T) {
	const inFlight = 3 // of the four tasks that the stack runs at once
	apps, h := nightApps(10), held{"app-00", new(atomic.Int64), make(chan struct{})}
	s := start(t, stack.Options{Apps: apps, ConfigTTL: time.Millisecond, Bigtable: h.options(),
		Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3, Concurrency: inFlight}})
	release := sync.OnceFunc(func() { close(h.released) })
	t.Cleanup(release)
	large := apps[0].ID
	for user := range 20 {
		if _, err := s.Backends.Store.Users.TakeTicket(t.Context(), large, fmt.Sprint("user-", user)); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(n int64) {
		t.Helper()
		poll(t, time.Minute, func() (string, bool) {
			waiting := h.waiting.Load()
			return fmt.Sprintf("%d requests wait, want %d", waiting, n), waiting >= n
		})
	}
	if _, err := s.Backends.Recompute.StartManual(t.Context(), large, recompute.Options{}); err != nil {
		t.Fatal(err)
	}
	waits(inFlight)
	if answer := work(t, s, "/nightly", `{"spread":"0s"}`); answer != `{"apps":10}` {
		t.Error(answer)
	}
	waits(inFlight + 1)
	doneTonight(t, s, apps[1:])
	if all, err := s.Backends.Recompute.List(t.Context(), large, 10); err != nil || len(all) != 1 || all[0].State.Ended() {
		t.Errorf("the large app has %+v, %v; want a job under way", all, err)
	}
	if n := h.waiting.Load(); n < inFlight+1 {
		t.Errorf("only %d requests of the large app wait", n)
	}
	release()
	idle(t, s)
}
