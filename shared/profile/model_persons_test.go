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

	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// persons is how many random histories of linked tokens TestModelOfPersons runs. 300 take 84 s of a core.
// go test ./shared/profile -run TestModelOfPersons -timeout 24h -persons 100000
var persons = flag.Int("persons", race.Or(30, 10), "how many random histories of linked tokens TestModelOfPersons runs")

// maxRequests bounds the requests of a history: processes that set each other back for ever make more.
const maxRequests = 3_000

// tokens are those of the histories. The first two are anonymous, as long as no event names them as known.
var tokens = []string{"a", "b", "k", "l"}

// people is one random history of tokens that are linked, deleted and unlinked while processes work
// on them and die. Each event has a value of its own, so a profile shows which events it counts.
type people struct {
	travel
	t       *rapid.T
	store   *store.Store
	apps    *config.Store
	appID   string
	clock   atomic.Int64
	engine  *profile.Engine
	small   [4]int
	adds    int
	events  []store.LogEvent
	ops     []*operation // begun and not answered; a process that died left some
	working []*actor
	steps   int // requests that the processes have made
	// settled says of each event, by token, whether it counts; absent while an operation may change it.
	settled map[counting]bool
	undone  map[[2]string]int64 // unlinks that were answered: receipts up to which evidence links no more
}

type counting struct {
	event int
	token string
}

// operation is a message, an unlink, a link or a deletion.
type operation struct {
	name    string
	do      func(context.Context, config.App, *profile.Engine) error
	affects func(event int, token string) bool
	then    func() // after the answer
	running bool
}

func TestModelOfPersons(t *testing.T) {
	stores := []*store.Store{}
	for _, open := range []opener{storetest.NewWithClient, storetest.NewDeployed} {
		s, _ := open(t, gates()...)
		stores = append(stores, s)
	}
	var histories atomic.Int64
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint(*persons)))
	rapid.Check(t, func(t *rapid.T) {
		p := newPeople(t, rapid.SampledFrom(stores).Draw(t, "store"), fmt.Sprint("app", histories.Add(1)), nil)
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			p.step()
		}
		p.finish()
	})
}

func newPeople(t *rapid.T, s *store.Store, appID string, us *store.Store) *people {
	p := &people{t: t, store: s, apps: config.NewMemory(), appID: appID, settled: map[counting]bool{}, undone: map[[2]string]int64{}}
	p.us = us
	p.clock.Store(1_700_000_000_000)
	for i, most := range []int{4, 4, 3, 6} {
		p.small[i] = rapid.IntRange(1, most).Draw(t, "limit")
	}
	p.adds = rapid.SampledFrom([]int{0, 2, 1000}).Draw(t, "additions")
	must.Succeed(t, p.apps.CreateApp(ctx, config.App{ID: appID}))
	_, _, err := p.apps.SetStrategy(ctx, appID, plain)
	must.Succeed(t, err)
	lookback := rapid.SampledFrom([]time.Duration{0, 3 * time.Hour, 30 * 24 * time.Hour}).Draw(t, "lookback")
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := p.apps.SetIdentity(ctx, appID, config.Identity{Mode: mode, Lookback: lookback}, 0)
		must.Succeed(t, err)
	}
	p.begun()
	for n := range 10 {
		e := bought(rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "k", "l"}).Draw(t, "token"),
			p.clock.Load()-rapid.Int64Range(0, 20).Draw(t, "hours ago")*hour)
		e.ID = fmt.Sprintf("id%09d", n)
		e.Counts = []affinity.Count{{Facet: "color", Value: fmt.Sprint("e", n), N: 1}}
		e.Known = rapid.SampledFrom([]string{"", "", "k", "k", "l", "a"}).Draw(t, "known")
		e.Strong = true
		p.events = append(p.events, e)
	}
	p.settle()
	return p
}

func (p *people) now() time.Time { return time.UnixMilli(p.clock.Load()) }

func (p *people) process() *profile.Engine {
	if p.us != nil {
		return p.joined()
	}
	return p.open(p.store, config.NewCached(p.apps, 0))
}

func (p *people) open(s *store.Store, cached *config.Cached) *profile.Engine {
	e := profile.New(s, p.apps, cached, p.now, slog.New(slog.DiscardHandler))
	e.SetLimits(p.small[0], p.small[1], p.small[2], p.small[3], 0)
	e.SetMaxAdditions(p.adds)
	e.SetLater(func(context.Context, config.App, []string) {}) // the task runs at any time, or never
	return e
}

func (p *people) app() config.App {
	app, err := p.apps.App(ctx, p.appID)
	must.Succeed(p.t, err)
	return app
}

func (p *people) anonymous() string { return rapid.SampledFrom(tokens[:2]).Draw(p.t, "anonymous") }
func (p *people) signedIn() string  { return rapid.SampledFrom(tokens[2:]).Draw(p.t, "known") }

func (p *people) step() {
	app, e := p.known(), p.process()
	token := rapid.SampledFrom(tokens).Draw(p.t, "of")
	plain := func(name string, do func(context.Context) error) { p.run(name, do, nil) }
	if p.us != nil && rapid.IntRange(0, 5).Draw(p.t, "move") == 0 {
		p.move()
		return
	}
	switch rapid.SampledFrom([]string{"advance", "advance", "advance", "advance", "advance", "advance", "advance", "advance", "message", "message",
		"message", "retry", "import", "read", "fold", "round", "recompute", "unlink", "link", "sign in", "abandon", "delete", "opt out", "opt in", "window", "marked", "time"}).Draw(p.t, "step") {
	case "advance":
		if len(p.working) > 0 {
			p.advance(rapid.IntRange(0, len(p.working)-1).Draw(p.t, "actor"),
				rapid.SampledFrom([]verdict{proceed, proceed, proceed, proceed, proceed, proceed, proceed, proceed, crash, lose}).Draw(p.t, "verdict"))
		}
	case "message":
		p.deliver((*profile.Engine).Apply)
	case "import":
		p.deliver((*profile.Engine).Import)
	case "retry":
		if idle := p.idle(); len(idle) > 0 {
			p.try(rapid.SampledFrom(idle).Draw(p.t, "operation"))
		}
	case "read":
		plain("read", func(ctx context.Context) error { _, err := e.ReadRanking(ctx, app, token); return err })
	case "fold":
		plain("fold", func(ctx context.Context) error { _, err := e.Fold(ctx, app, token); return err })
	case "round":
		plain("round", func(ctx context.Context) error {
			_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
			return err
		})
	case "recompute":
		fold := rapid.Bool().Draw(p.t, "fold")
		plain("recompute", func(ctx context.Context) error {
			_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{Fold: fold}, func(profile.Progress) error { return nil })
			return err
		})
	case "unlink":
		p.unlink(p.anonymous(), p.signedIn())
	case "link":
		a, k := p.anonymous(), p.signedIn()
		p.begin(&operation{name: "link " + a + " to " + k, do: func(ctx context.Context, app config.App, e *profile.Engine) error {
			err := profile.IdentitiesOf(e).Link(ctx, app, a, k, "asked")
			if _, refused := errors.AsType[profile.LinkRefused](err); refused {
				return nil
			}
			return err
		}, affects: func(n int, _ string) bool { return p.events[n].User == a }})
	case "sign in":
		p.signIn(p.anonymous(), p.signedIn())
	case "abandon":
		if given := slices.DeleteFunc(slices.Clone(p.events), func(e store.LogEvent) bool { return e.Known != "" }); len(given) > 0 {
			given = []store.LogEvent{rapid.SampledFrom(given).Draw(p.t, "given up")}
			plain("abandon", func(ctx context.Context) error { return e.Abandon(ctx, app, given) })
		}
	case "delete":
		p.exclude("delete "+token, token, (*profile.Engine).Delete)
	case "opt out":
		p.exclude("opt out "+token, token, func(e *profile.Engine, ctx context.Context, app, token string) (time.Time, error) {
			return e.OptOut(ctx, app, token)
		})
	case "opt in":
		p.exclude("opt in "+token, token, (*profile.Engine).OptIn)
	case "window":
		ms := rapid.SampledFrom([]int{0, 2000}).Draw(p.t, "window")
		must.Succeed(p.t, p.apps.SetLimits(ctx, p.appID, limit.Numbers{WriteWindowMs: ms}))
		p.changed()
	case "marked":
		plain("end of a window", func(ctx context.Context) error { _, err := e.RefreshMarked(ctx, app, token); return err })
	case "time":
		p.clock.Add(rapid.Int64Range(1, hour).Draw(p.t, "passes"))
	}
}

func (p *people) deliver(apply func(*profile.Engine, context.Context, config.App, []store.LogEvent) (profile.Outcome, error)) {
	received := p.clock.Add(2)
	ids := rapid.SliceOfNDistinct(rapid.IntRange(0, len(p.events)-1), 1, 3, rapid.ID[int]).Draw(p.t, "events")
	events := make([]store.LogEvent, len(ids))
	for i, n := range ids {
		events[i] = p.events[n]
		events[i].Receipt = received
	}
	first := apply
	p.begin(&operation{name: fmt.Sprint("message ", ids), do: func(ctx context.Context, app config.App, e *profile.Engine) error {
		apply := first
		if first = nil; apply == nil { // another delivery meets another process
			apply = (*profile.Engine).Apply
		}
		_, err := apply(e, ctx, app, events)
		return err
	}, affects: func(n int, token string) bool {
		return slices.ContainsFunc(ids, func(m int) bool {
			return m == n || p.events[m].Known != "" && p.events[m].User == p.events[n].User
		})
	}})
}

// signIn delivers the call of an SDK that says who has signed in under a token.
func (p *people) signIn(a, k string) {
	s := profile.SignIn{User: a, Known: k, Time: p.clock.Add(2), MessageID: "call", Strong: true}
	s.Receipt = s.Time
	p.begin(&operation{name: "sign in " + a + " as " + k, do: func(ctx context.Context, app config.App, e *profile.Engine) error {
		return profile.IdentitiesOf(e).SignedIn(ctx, app, []profile.SignIn{s})
	}, affects: func(n int, _ string) bool { return p.events[n].User == a }})
}

func (p *people) unlink(a, k string) {
	var until time.Time
	p.begin(&operation{name: "unlink " + a + " from " + k, do: func(ctx context.Context, app config.App, e *profile.Engine) error {
		at, err := profile.IdentitiesOf(e).Unlink(ctx, app, a, k)
		if errors.Is(err, profile.ErrNotLinked) {
			return nil
		}
		until = at
		return err
	}, affects: func(n int, _ string) bool { return p.events[n].User == a }, then: func() {
		if !until.IsZero() {
			p.undone[[2]string{a, k}] = max(p.undone[[2]string{a, k}], until.UnixMilli())
		}
	}})
}

// exclude begins a deletion, or a change of an opt-out.
func (p *people) exclude(name, token string,
	do func(e *profile.Engine, ctx context.Context, app, token string) (time.Time, error)) {
	p.clock.Add(2)
	p.begin(&operation{name: name, do: func(ctx context.Context, _ config.App, e *profile.Engine) error {
		_, err := do(e, ctx, p.appID, token)
		return err
	}, affects: func(int, string) bool { return true }, then: func() {
		if rapid.Bool().Draw(p.t, "purge") {
			until, e := p.now(), p.process()
			p.run("purge "+token, func(ctx context.Context) error {
				_, err := e.Purge(ctx, p.appID, token, until)
				return err
			}, nil)
		}
	}})
}

// idle returns the operations that no process works on.
func (p *people) idle() []*operation {
	return slices.DeleteFunc(slices.Clone(p.ops), func(o *operation) bool { return o.running })
}

// begin begins an operation: what it may change is open until it is answered.
func (p *people) begin(o *operation) {
	p.ops = append(p.ops, o)
	for c := range p.settled {
		if o.affects(c.event, c.token) {
			delete(p.settled, c)
		}
	}
	p.try(o)
}

// try lets a process try an operation.
func (p *people) try(o *operation) {
	o.running = true
	app, e := p.known(), p.process()
	var err error
	p.run(o.name, func(ctx context.Context) error { err = o.do(ctx, app, e); return err }, func() {
		if o.running = false; err != nil {
			return
		}
		p.ops = slices.DeleteFunc(p.ops, func(other *operation) bool { return other == o })
		if o.then != nil {
			o.then()
		}
		p.settle()
	})
}

func (p *people) run(name string, do func(context.Context) error, after func()) {
	a := newActor(name)
	a.after = after
	a.run(do)
	if p.arrived(a) {
		p.working = append(p.working, a)
	}
}

func (p *people) arrived(a *actor) bool {
	select {
	case <-a.arrived:
		return true
	case <-a.ended:
		if a.after != nil {
			a.after()
		}
		t, ok := errors.AsType[interface {
			error
			Transient() bool
		}](a.err)
		if c := grpcCode(a.err); a.err != nil && c != codes.FailedPrecondition && c != codes.Unavailable && !(ok && t.Transient()) {
			p.t.Fatalf("%s: %v", a.name, a.err)
		}
		return false
	}
}

func (p *people) advance(i int, v verdict) {
	a := p.working[i]
	if p.steps++; p.steps > maxRequests {
		p.t.Fatalf("%d requests, and %s goes on; %d operations are not answered, the first is %s", p.steps, a.name, len(p.ops), p.ops[0].name)
	}
	a.verdict <- v
	if !p.arrived(a) {
		p.working = slices.DeleteFunc(p.working, func(b *actor) bool { return a == b })
	}
	p.check("after a step of " + a.name)
}

// finish lets all processes end, repeats what was not answered, and compares each profile with the log.
func (p *people) finish() {
	for len(p.working) > 0 {
		p.advance(rapid.IntRange(0, len(p.working)-1).Draw(p.t, "actor"), proceed)
	}
	for len(p.ops) > 0 {
		p.try(p.ops[0])
		for len(p.working) > 0 {
			p.advance(0, proceed)
		}
		if p.app().Moving() {
			p.move() // a message may have to wait for it
		}
	}
	p.check("at the end")
	p.endMove()
	for range 2 {
		_, err := p.process().Recompute(ctx, p.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
		must.Succeed(p.t, err)
		p.check("after a nightly round")
	}
	_, err := p.process().Recompute(ctx, p.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
	must.Succeed(p.t, err)
	p.settle()
	p.check("after a recompute")
	if len(p.settled) != len(p.events)*len(tokens) {
		p.t.Fatalf("%d counts are settled at the end, want %d", len(p.settled), len(p.events)*len(tokens))
	}
}
