package profile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
	"github.com/affinityengine/affinity/shared/strategy"
)

// campaign makes the model test longer: go test ./shared/profile -run Model -campaign 5000
var campaign = flag.Int("campaign", 150, "how many random histories TestModel runs")

// verdict is what becomes of a request to Bigtable.
type verdict int

const (
	proceed verdict = iota
	crash           // the process dies before the request is sent
	lose            // the request is carried out, its answer does not arrive
)

// actor is one process at work. It stops before each of its requests until the
// scheduler lets it go on, so that a test decides how processes interleave.
type actor struct {
	name    string
	arrived chan struct{}
	verdict chan verdict
	ended   chan struct{}
	err     error
}

type actorKey struct{}

func (a *actor) wait() verdict {
	a.arrived <- struct{}{}
	return <-a.verdict
}

var errCrash = status.Error(codes.FailedPrecondition, "crashed by the test")

func gateUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	switch a.wait() {
	case crash:
		return errCrash
	case lose:
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		// Row transactions are tried again by the store; anything else ends here,
		// like a process that dies after its request.
		if method == "/google.bigtable.v2.Bigtable/ReadModifyWriteRow" || method == "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
			return status.Error(codes.Unavailable, "answer lost by the test")
		}
		return errCrash
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func gateStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if a, ok := ctx.Value(actorKey{}).(*actor); ok && a.wait() != proceed {
		return nil, errCrash
	}
	return open(ctx, desc, cc, method, opts...)
}

// world is one random history: an app with one user, processes at work on him,
// and what the law says of him.
type world struct {
	t      *rapid.T
	store  *store.Store
	apps   config.Store
	appID  string
	clock  atomic.Int64
	engine *profile.Engine

	working   []*actor
	events    []store.LogEvent // that exist
	pending   [][]int          // messages not acknowledged: indexes of events
	acked     map[int]bool
	deletedBy int64 // the newest deletion that was answered
	maxDelete int64 // the newest deletion that was begun
}

func TestModel(t *testing.T) {
	s := storetest.New(t, grpc.WithChainUnaryInterceptor(gateUnary), grpc.WithChainStreamInterceptor(gateStream))
	var histories atomic.Int64
	if err := flag.Set("rapid.checks", fmt.Sprint(*campaign)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, s, fmt.Sprint("app", histories.Add(1)))
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			w.step()
		}
		w.settle()
	})
}

func newWorld(t *rapid.T, s *store.Store, appID string) *world {
	w := &world{t: t, store: s, apps: config.NewMemory(), appID: appID, acked: map[int]bool{}}
	w.clock.Store(1_700_000_000_000)
	w.engine = w.process()
	retention := rapid.SampledFrom([]int{0, 1, 90}).Draw(t, "retention")
	if err := w.apps.CreateApp(ctx, config.App{ID: appID, RetentionDays: retention}); err != nil {
		t.Fatal(err)
	}
	w.setStrategy()
	for i := range 6 {
		// Equal times, too: two events of a millisecond differ in their id.
		e := logEvent("u", w.clock.Load()-int64(rapid.IntRange(0, 30).Draw(t, "hours ago"))*hour, "Bought", event.Conversion,
			affinity.Count{Facet: "color", Value: fmt.Sprint("c", i%3), N: 1 + i%2})
		e.ID = fmt.Sprintf("id%09d", i)
		w.events = append(w.events, e)
	}
	return w
}

// process is an engine of a process of its own: actors share nothing but the
// store.
func (w *world) process() *profile.Engine {
	return profile.New(w.store, w.apps, func() time.Time { return time.UnixMilli(w.clock.Load()) }, slog.New(slog.DiscardHandler))
}

func (w *world) setStrategy() {
	st := rapid.SampledFrom([]strategy.Strategy{plain, decaying}).Draw(w.t, "strategy")
	if _, _, err := w.apps.SetStrategy(ctx, w.appID, st); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) app() config.App {
	app, err := w.apps.App(ctx, w.appID)
	if err != nil {
		w.t.Fatal(err)
	}
	return app
}

// step lets one thing happen.
func (w *world) step() {
	kind := rapid.SampledFrom([]string{"go on", "go on", "go on", "go on", "message", "redeliver", "import", "read", "delete", "strategy", "time"}).Draw(w.t, "step")
	switch kind {
	case "go on":
		if len(w.working) > 0 {
			i := rapid.IntRange(0, len(w.working)-1).Draw(w.t, "actor")
			w.goOn(i, rapid.SampledFrom([]verdict{proceed, proceed, proceed, proceed, proceed, proceed, crash, lose}).Draw(w.t, "verdict"))
		}
	case "message", "import":
		w.deliver(rapid.SliceOfNDistinct(rapid.IntRange(0, len(w.events)-1), 1, 2, rapid.ID[int]).Draw(w.t, "events"), kind == "import")
	case "redeliver":
		if len(w.pending) > 0 {
			w.deliver(w.pending[rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "message")], false)
		}
	case "read":
		app := w.app()
		w.start("read", func(ctx context.Context) error {
			_, err := w.engine.Read(ctx, app, "u", 0)
			return err
		})
	case "delete":
		w.clock.Add(1)
		w.maxDelete = w.clock.Load()
		w.start("delete", func(ctx context.Context) error {
			until, err := w.engine.Delete(ctx, w.appID, "u")
			if err == nil {
				w.deletedBy = max(w.deletedBy, until.UnixMilli())
			}
			return err
		})
	case "strategy":
		w.setStrategy()
	case "time":
		w.clock.Add(rapid.Int64Range(1, 12*hour).Draw(w.t, "passes"))
	}
}

// deliver starts a process on a message. An event of an earlier time than an
// answered deletion does not exist any more.
func (w *world) deliver(message []int, bulk bool) {
	events := make([]store.LogEvent, len(message))
	for i, n := range message {
		events[i] = w.events[n]
	}
	app := w.app() // which may be out of date when it is used
	do := w.process().Apply
	if bulk {
		do = w.process().Import
	}
	w.pending = append(w.pending, message)
	w.start(fmt.Sprint("message ", message), func(ctx context.Context) error {
		_, err := do(ctx, app, events)
		if err == nil {
			w.ack(message)
		}
		return err
	})
}

func (w *world) ack(message []int) {
	for _, n := range message {
		w.acked[n] = true
	}
	w.pending = slices.DeleteFunc(w.pending, func(p []int) bool { return slices.Equal(p, message) })
}

func (w *world) start(name string, do func(context.Context) error) {
	a := &actor{name: name, arrived: make(chan struct{}), verdict: make(chan verdict), ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		a.err = do(context.WithValue(context.Background(), actorKey{}, a))
	}()
	if w.awaits(a) {
		w.working = append(w.working, a)
	}
}

// awaits tells whether an actor has come to its next request, or has ended.
func (w *world) awaits(a *actor) bool {
	select {
	case <-a.arrived:
		return true
	case <-a.ended:
		// The errors of the test's own doing, even those of answers lost too often.
		if c := grpcCode(a.err); a.err != nil && c != codes.FailedPrecondition && c != codes.Unavailable {
			w.t.Fatalf("%s: %v", a.name, a.err)
		}
		return false
	}
}

func (w *world) goOn(i int, v verdict) {
	a := w.working[i]
	a.verdict <- v
	if !w.awaits(a) {
		w.working = slices.Delete(w.working, i, i+1)
	}
	w.check("after a step")
}

// settle lets everything come to its end and compares with the reference.
func (w *world) settle() {
	for len(w.working) > 0 {
		w.goOn(rapid.IntRange(0, len(w.working)-1).Draw(w.t, "actor"), proceed)
	}
	for len(w.pending) > 0 {
		w.deliver(w.pending[0], false)
		for len(w.working) > 0 {
			w.goOn(0, proceed)
		}
	}
	w.check("settled")
	w.clock.Add(20 * hour)
	w.check("a day later")
}

// check reads the user as a client would, now, while others are at work, and
// holds the answer to the law: every acknowledged event counts, and none that
// was deleted or never sent. The read stores nothing, for it is not one of the
// processes whose interleaving is the test's subject.
func (w *world) check(when string) {
	app := w.app()
	got := w.peek(app)
	known := func(n int) bool { return w.acked[n] && w.events[n].Time > w.maxDelete }
	possible := func(n int) bool {
		return w.events[n].Time > w.deletedBy && (w.acked[n] || w.isPending(n))
	}
	least, most := w.reference(app, got.Anchor, known), w.reference(app, got.Anchor, possible)
	for _, a := range least.Affinities {
		if s := scoreOf(got.Profile, a.Value); s < a.Scores[0]*(1-1e-9) {
			w.t.Fatalf("%s: %s is %v, must be at least %v: an acknowledged event is hidden", when, a.Value, s, a.Scores[0])
		}
	}
	for _, a := range got.Affinities {
		if s := scoreOf(most, a.Value); a.Scores[0] > s*(1+1e-9) {
			w.t.Fatalf("%s: %s is %v, can be at most %v", when, a.Value, a.Scores[0], s)
		}
	}
	if least.Known && !got.Known {
		w.t.Fatalf("%s: the user is unknown, but has an acknowledged event", when)
	}
}

// peek reads without storing: it stops what the engine would write.
func (w *world) peek(app config.App) profile.Result {
	a := &actor{name: "peek", arrived: make(chan struct{}), verdict: make(chan verdict), ended: make(chan struct{})}
	var got profile.Result
	go func() {
		defer close(a.ended)
		got, a.err = w.engine.Read(context.WithValue(context.Background(), actorKey{}, a), app, "u", 0)
	}()
	for requests := 0; w.awaits(a); requests++ {
		if requests < 2 { // the row, the log
			a.verdict <- proceed
		} else {
			a.verdict <- crash
		}
	}
	if a.err != nil {
		w.t.Fatal(a.err)
	}
	return got
}

func (w *world) isPending(n int) bool {
	return slices.ContainsFunc(w.pending, func(p []int) bool { return slices.Contains(p, n) })
}

func (w *world) reference(app config.App, now int64, counts func(int) bool) affinity.Profile {
	var events []affinity.Event
	for n, e := range w.events {
		if counts(n) {
			events = append(events, affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts})
		}
	}
	return affinity.Reference(events, app.Strategy, affinity.Window{Now: now, RetentionDays: app.RetentionDays})
}

func scoreOf(p affinity.Profile, value string) float64 {
	for _, a := range p.Affinities {
		if a.Value == value {
			return a.Scores[0]
		}
	}
	return 0
}

func grpcCode(err error) codes.Code {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}
