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

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// campaign makes the model test longer: go test ./shared/profile -run Model
// -campaign 5000
var campaign = flag.Int("campaign", race.Or(150, 8),
	"how many random histories TestModel runs; half as many that move, and half as many of residents")

// simulation is one random history: an app with one user, processes that work
// on that user, and the events that a profile must and may count.
type simulation struct {
	t      *rapid.T
	store  *store.Store
	apps   *config.Store
	appID  string
	clock  atomic.Int64
	engine *profile.Engine
	hot    [2]hotProcess

	client  *bigtable.Client
	settle  time.Duration // of folds
	small   [4]int        // the other limits of folds
	session int           // events of a session
	bounds  affinity.Bounds
	held    int // values that a computation holds at a time
	// additions is after how many additions a refresh computes; 0: it always does.
	additions int
	// calm histories are mostly messages, so that most events are added to a base.
	calm   bool
	inline int  // events of a block in the user's row
	spoilt bool // an inline block was damaged
	// windows means that the app has a write window now and then.
	windows bool

	generation int64 // of the newest dictionary; 0: there is none yet
	terms      bool  // there are dictionaries

	migrations
	working   []*actor
	events    []store.LogEvent // that exist
	pending   []message        // not acknowledged
	acked     map[int]bool
	resolved  map[int]map[string]bool // by event, the values it may have been logged with
	slack     time.Duration
	deletedBy affinity.Tombstone // of the deletions that were answered
	maxDelete affinity.Tombstone // of the deletions that were begun
	receipts  map[int][]receipt  // by event
	packed    *packedProfile     // nil: nobody has packed the user
	// experiments is how many there were.
	experiments int
	optOuts
	consenting
	regional
}

func TestModel(t *testing.T) {
	type opened struct {
		store  *store.Store
		client *bigtable.Client
	}
	var stores []opened
	for _, open := range []opener{storetest.NewWithClient, storetest.NewDeployed} {
		s, client := open(t, gates()...)
		stores = append(stores, opened{s, client})
	}
	var histories atomic.Int64
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint(*campaign)))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(stores).Draw(t, "store")
		w := newSimulation(t, s.store, s.client, fmt.Sprint("app", histories.Add(1)))
		w.ahead()
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			w.step()
		}
		w.finish()
	})
}

const minute = 60 * second

// skew is how far the clock of a machine is off.
func (w *simulation) skew() int64 {
	most := min(w.slack.Milliseconds()/2, 30*second)
	return rapid.Int64Range(-most, most).Draw(w.t, "skew")
}

// process returns the engine of a new process. Processes share only the store: the
// clock of each is its own.
func (w *simulation) process() *profile.Engine {
	e := w.processAt(w.skew())
	if n := len(w.rememberers); n > 0 && rapid.Bool().Draw(w.t, "remembers") {
		e.RememberAs(w.rememberers[rapid.IntRange(0, n-1).Draw(w.t, "process")])
	} else if w.resident {
		w.rememberers = append(w.rememberers, e)
	}
	return e
}

func (w *simulation) processAt(skew int64) *profile.Engine {
	clock := func() time.Time { return time.UnixMilli(w.clock.Load() + skew) }
	open := func(s *store.Store, cached *config.Cached) *profile.Engine { return w.openEngine(s, cached, clock) }
	if w.us != nil {
		return w.joined(open)
	}
	return open(w.store, config.NewCached(w.cache(), 0))
}

func (w *simulation) openEngine(s *store.Store, cached *config.Cached, clock func() time.Time) *profile.Engine {
	e := profile.New(s, w.apps, cached, clock, slog.New(slog.DiscardHandler))
	e.SetSlack(w.slack)
	e.SetLimits(w.small[0], w.small[1], w.small[2], w.small[3], w.settle)
	e.SetSessionEvents(w.session)
	e.SetBounds(w.bounds)
	e.SetMemory(w.held)
	e.SetMaxAdditions(w.additions)
	w.setInline(e)
	if w.windows {
		e.SetLater(func(context.Context, config.App, []string) {}) // the task runs at any time, or never
	}
	return e
}

func (w *simulation) setStrategy() {
	ignoring, allowing := plain, decaying
	ignoring.IgnoredValues = []string{"C0.0"}
	allowing.AllowedValues = map[string]strategy.ValueSet{"color": strategy.SetOf("c0.0", "c1.1", "c2.0")}
	st := rapid.SampledFrom([]strategy.Strategy{plain, decaying, ignoring, allowing}).Draw(w.t, "strategy")
	st.PersonalizationImpact = rapid.IntRange(0, 2).Draw(w.t, "impact")
	before := w.app()
	_, _, err := w.apps.SetStrategy(ctx, w.appID, st)
	w.refusedIf(before.Experiment.On() && before.Experiment.StoppedAt.IsZero() && !st.SameScoring(before.Strategy), err)
	w.changed()
}

func (w *simulation) app() config.App {
	app, err := w.apps.App(ctx, w.appID)
	must.Succeed(w.t, err)
	return app
}

// step takes one random step.
func (w *simulation) step() {
	kinds := []string{"advance", "advance", "advance", "advance", "advance", "advance", "message", "message", "redeliver", "import",
		"read", "rank", "fold", "round", "pack", "pack", "delete", "opt out", "opt in", "opt in", "restore", "purge",
		"consent", "consent", "purge of consents", "strategy", "experiment", "experiment", "time", "minutes", "damage", "dictionary", "migration", "migration", "task", "task", "task", "window", "marked", "marked"}
	if w.calm {
		kinds = []string{"advance", "advance", "advance", "advance", "advance", "advance", "message", "message", "message", "message", "redeliver", "redeliver",
			"read", "rank", "fold", "pack", "delete", "time", "minutes", "window", "marked", "consent"}
	}
	w.stepOf(rapid.SampledFrom(kinds).Draw(w.t, "step"), w.app())
}

// stepOf takes a step of a kind. app may be out of date when it is used.
func (w *simulation) stepOf(kind string, app config.App) {
	switch kind {
	case "advance":
		if len(w.working) > 0 {
			i := rapid.IntRange(0, len(w.working)-1).Draw(w.t, "actor")
			w.advance(i, rapid.SampledFrom([]verdict{proceed, proceed, proceed, proceed, proceed, proceed, crash, lose}).Draw(w.t, "verdict"))
		}
	case "message", "import":
		w.deliver(message{
			events:   rapid.SliceOfNDistinct(rapid.IntRange(0, len(w.events)-1), 1, 3, rapid.ID[int]).Draw(w.t, "events"),
			catalog:  rapid.IntRange(0, 1).Draw(w.t, "catalog"),
			received: w.clock.Load() + w.skew(),
		}, kind == "import")
	case "redeliver":
		if len(w.pending) > 0 {
			w.deliver(w.pending[rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "message")], false)
		}
	case "read":
		e := w.process()
		w.start("read", func(ctx context.Context) error {
			_, err := e.Read(ctx, app, "u", 0)
			return err
		})
	case "rank":
		e := w.process()
		w.start("rank", func(ctx context.Context) error {
			_, err := e.ReadRanking(ctx, app, "u")
			return err
		})
	case "fold":
		e := w.process()
		w.start("fold", func(ctx context.Context) error {
			_, err := e.Fold(ctx, app, "u")
			return err
		})
	case "pack":
		w.pack()
	case "round":
		o := profile.RecomputeOptions{OnlyStale: rapid.Bool().Draw(w.t, "only stale"), Maintain: rapid.Bool().Draw(w.t, "maintain"), Fold: rapid.Bool().Draw(w.t, "fold")}
		w.start("round", func(ctx context.Context) error { return w.round(ctx, app, o) })
	case "delete":
		w.clock.Add(1)
		skew := w.skew()
		now := w.clock.Load() + skew // the process reads it before its first request
		begun := affinity.Tombstone{DeletedUntil: now, ReceivedUntil: now + w.slack.Milliseconds()}
		w.maxDelete = raised(w.maxDelete, begun)
		for n := range w.receipts {
			w.checkCovered(begun, n)
		}
		e := w.processAt(skew)
		w.start("delete", func(ctx context.Context) error {
			_, err := e.Delete(ctx, w.appID, "u")
			if err == nil {
				w.deletedBy = raised(w.deletedBy, begun)
			}
			return err
		})
	case "opt out", "opt in":
		w.changeOptOut(kind == "opt in")
	case "restore":
		w.restoreDeletion()
	case "purge":
		e := w.process()
		w.start("purge", func(ctx context.Context) error {
			_, err := e.Purge(ctx, w.appID, "u", time.UnixMilli(w.deletedBy.ReceivedUntil))
			return err
		})
	case "consent":
		w.changeConsent()
	case "purge of consents":
		w.purgeConsents()
	case "window":
		w.setWindow()
	case "marked":
		e := w.process()
		w.start("end of a window", func(ctx context.Context) error {
			_, err := e.RefreshMarked(ctx, app, "u")
			return err
		})
	case "strategy":
		w.setStrategy()
	case "experiment":
		w.changeExperiment()
	case "time":
		w.clock.Add(rapid.Int64Range(1, 12*hour).Draw(w.t, "passes"))
	case "minutes":
		w.clock.Add(rapid.Int64Range(1, 3*minute).Draw(w.t, "passes"))
	case "damage":
		w.damage()
		w.damageInline()
	case "dictionary":
		w.changeDictionaries()
	case "migration":
		w.migrate(rapid.IntRange(0, 5).Draw(w.t, "give up") == 0)
	case "task":
		if len(w.tasks) > 0 {
			w.task(rapid.IntRange(0, len(w.tasks)-1).Draw(w.t, "task"))
		}
	}
}

// settleHistories runs nightly rounds until two in turn fold nothing: the first may trim,
// and the second deletes the blocks that were replaced. One round does not always fold
// all. A fold that commits by its ticket takes an inline block that it does not merge out
// of the manifest, and the next round folds these events again.
func (w *simulation) settleHistories() {
	const most = 8
	e := w.process() // of one format: after a round of format 1, one of format 2 folds again
	for rounds, idle := 0, 0; idle < 2; rounds++ {
		if rounds == most {
			w.t.Fatalf("histories change in %d nightly rounds", most)
		}
		p, err := e.Recompute(ctx, w.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true},
			func(profile.Progress) error { return nil })
		must.Succeed(w.t, err)
		w.exact("after a nightly round")
		if idle++; p.Folded > 0 {
			idle = 0
		}
	}
}

func (w *simulation) round(ctx context.Context, app config.App, o profile.RecomputeOptions) error {
	_, err := w.process().Recompute(ctx, app, store.Range{}, o, func(profile.Progress) error { return nil })
	return err
}

// damage corrupts or deletes a block.
func (w *simulation) damage() {
	blocks := w.blocks()
	if len(blocks) == 0 {
		return
	}
	id := rapid.SampledFrom(blocks).Draw(w.t, "block")
	m := bigtable.NewMutation()
	if rapid.Bool().Draw(w.t, "lost") {
		m.DeleteRow()
	} else {
		m.Set("b", "b", bigtable.Timestamp(w.clock.Load()*1000), []byte("no block"))
	}
	must.Succeed(w.t, w.client.Open(store.TableHistories).Apply(ctx, fmt.Sprintf("%s,u,%016x,%04x", w.appID, id.Ticket, id.N), m))
}

func (w *simulation) blocks() []history.BlockID {
	ids, err := w.store.Histories.ListBlocks(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	return ids
}

func (w *simulation) start(name string, do func(context.Context) error) {
	w.startThen(name, do, nil)
}

// startThen is start of an actor with what to call after its end.
func (w *simulation) startThen(name string, do func(context.Context) error, after func()) {
	a := newActor(name)
	a.after = after
	a.run(do)
	if w.arrived(a) {
		w.working = append(w.working, a)
	}
}

// arrived waits until an actor stands before its next request, and returns
// false if it has ended.
func (w *simulation) arrived(a *actor) bool {
	select {
	case <-a.arrived:
		return true
	case <-a.ended:
		if a.after != nil {
			a.after()
		}
		// Errors that the test causes are expected.
		if c := grpcCode(a.err); a.err != nil && !errors.Is(a.err, profile.ErrSchemaChanged) && !errors.Is(a.err, profile.ErrPhaseOver) && c != codes.FailedPrecondition && c != codes.Unavailable {
			w.t.Fatalf("%s: %v", a.name, a.err)
		}
		return false
	}
}

func (w *simulation) advance(i int, v verdict) {
	a := w.working[i]
	a.verdict <- v
	if !w.arrived(a) {
		w.working = slices.Delete(w.working, i, i+1)
	}
	w.check("after a step")
}

// drain runs all processes to their end, one after the other.
func (w *simulation) drain() {
	for len(w.working) > 0 {
		w.advance(0, proceed)
	}
}

// settleMessages runs all processes to their end, delivers each message until it is acknowledged,
// and compares profiles with the log.
func (w *simulation) settleMessages() {
	for len(w.working) > 0 {
		w.advance(rapid.IntRange(0, len(w.working)-1).Draw(w.t, "actor"), proceed)
	}
	for len(w.pending) > 0 {
		w.deliver(w.pending[0], false)
		w.drain()
	}
	w.check("settled")
	w.exact("settled")
}

// finish runs all processes and jobs to their end, and compares profiles with the log after each.
func (w *simulation) finish() {
	w.settleMessages()
	w.finishMove()
	w.check("migrated")
	w.exact("migrated")
	w.clock.Add(20*hour + minute) // no event leaves the window between two processes
	w.check("a day later")
	w.exact("a day later")
	w.settleHistories()
	if stale, _, err := w.engine.Verify(ctx, w.app(), store.Range{}, time.Time{}); stale > 0 || err != nil {
		w.t.Fatalf("%d profiles are stale after the nightly rounds, %v", stale, err)
	}
	w.checkNoOrphans()
	w.checkInline()
	must.Succeed(w.t, w.round(ctx, w.app(), profile.RecomputeOptions{}))
	w.exact("after a recompute")
	w.checkNothingKept()
	w.checkNothingWithheld()
}
