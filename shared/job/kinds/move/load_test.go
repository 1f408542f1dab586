package move_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/store"
)

var moves = flag.Int("moves", 1, "how often TestMoveUnderLoad moves its app")

// client sends events of one user and reads the profile after each.
type client struct {
	sent  atomic.Int64
	mu    sync.Mutex
	reads []time.Duration
}

// perSecond is how many events each client sends in a second, and how often it reads.
const perSecond = 25

func (c *client) work(w *world, user string, stop <-chan struct{}) error {
	turns := time.NewTicker(time.Second / perSecond)
	defer turns.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		case <-turns.C:
		}
		a, err := w.apps.App(ctx, app)
		if err == nil {
			_, err = w.engine.Apply(ctx, a, []store.LogEvent{seen(user, n, "red")})
		}
		if err != nil {
			return err
		}
		least, begun := c.sent.Add(1), time.Now()
		got, err := w.engine.Read(ctx, a, user, 0)
		if err == nil && (len(got.Affinities) == 0 || got.Affinities[0].Scores[0] != float64(least)) {
			err = fmt.Errorf("%s: %+v after %d events", user, got.Affinities, least)
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.reads = append(c.reads, time.Since(begun))
		c.mu.Unlock()
	}
}

// taken returns the 99th percentile of the reads since the last call, and their number.
func taken(clients []client) (time.Duration, int) {
	var all []time.Duration
	for i := range clients {
		c := &clients[i]
		c.mu.Lock()
		all, c.reads = append(all, c.reads...), nil
		c.mu.Unlock()
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)*99/100], len(all)
}

// While an app moves, there and back, and its tasks die at any request, no request fails,
// and every event counts once. go test -run Load -moves 20 -v also says how long reads take.
func TestMoveUnderLoad(t *testing.T) {
	w := newWorld(t, 0)
	counts, clients := w.populate(12), make([]client, 4)
	stop := make(chan struct{})
	var g errgroup.Group
	for i := range clients {
		g.Go(func() error { return clients[i].work(w, fmt.Sprintf("load%02d", i), stop) })
	}
	for clients[0].sent.Load() < 20 {
		runtime.Gosched()
	}
	atRest, n := taken(clients)
	t.Logf("at rest: p99 of %d reads %v", n, atRest)
	died := 0
	for n := range *moves {
		w.start([]string{"us", "eu"}[n%2])
		for deaths := 0; len(w.tasks) > 0; {
			a := &allowance{}
			a.left.Store(int64(3 + n%5 + 13*deaths))
			if err := w.run(context.WithValue(ctx, allowanceKey{}, a), w.tasks[0]); err != nil {
				deaths, died = deaths+1, died+1
				continue
			}
			deaths, w.tasks = 0, w.tasks[1:]
		}
	}
	moving, n := taken(clients)
	close(stop)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d moves, %d deaths of tasks: p99 of %d reads %v", *moves, died, n, moving)
	for i := range clients {
		counts[fmt.Sprintf("load%02d", i)] = int(clients[i].sent.Load())
	}
	w.exact("after the moves", counts)
	w.empty([]string{"us", "eu"}[*moves%2])
}
