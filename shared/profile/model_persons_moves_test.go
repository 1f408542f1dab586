package profile_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// travel is what people have besides whose app moves between two regions: eu, with their store, and us.
type travel struct {
	us      *store.Store // nil: there are no regions
	mu      sync.Mutex   // of configs and floor
	configs []config.App // that processes may know; from floor on, once those from before have expired
	floor   int
	moves   int
	waited  bool // nobody acts on a configuration before the newest
	worked  bool // the work of the phase is done
	moving  bool // a process works on it
}

// TestModelOfPersonsOnTheMove is TestModelOfPersons with an app that moves between two regions, and back, while
// processes are at work that know an older configuration: each token moves for itself, and any of them may die. A
// history takes as long as five of the other test, so there are a quarter as many.
func TestModelOfPersonsOnTheMove(t *testing.T) {
	eu, _ := storetest.NewWithClient(t, gates()...)
	us, _ := storetest.NewDeployed(t, gates()...)
	var histories atomic.Int64
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint((*persons+3)/4)))
	rapid.Check(t, func(t *rapid.T) {
		p := newPeople(t, eu, fmt.Sprint("moved", histories.Add(1)), us)
		p.ahead()
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			p.step()
		}
		p.finish()
	})
}

// ahead lets some messages come, and a move begin, before processes meet.
func (p *people) ahead() {
	for range rapid.IntRange(0, 5).Draw(p.t, "messages ahead") {
		p.deliver((*profile.Engine).Apply)
		p.drain()
	}
	for moving := rapid.Bool().Draw(p.t, "moving"); moving && p.app().Move.Phase != config.MoveUsers; p.drain() {
		p.move()
	}
}

func (p *people) drain() {
	for len(p.working) > 0 {
		p.advance(0, proceed)
	}
}

// begun makes the process that checks, once the app is there.
func (p *people) begun() {
	if p.us != nil {
		_, err := p.apps.UpdateMove(ctx, p.appID, func(a *config.App) error { a.Region = "eu"; return nil })
		must.Succeed(p.t, err)
		p.changed()
		p.expire()
	}
	p.engine = p.process()
}

// changed notes a change of the configuration.
func (p *people) changed() {
	if p.us != nil {
		app := p.app()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.configs = append(p.configs, app)
	}
}

// expire lets caches forget every configuration but the newest.
func (p *people) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.floor = len(p.configs) - 1
}

// known returns a configuration that a process may know now.
func (p *people) known() config.App {
	if p.us == nil {
		return p.app()
	}
	return p.configs[rapid.IntRange(p.floor, len(p.configs)-1).Draw(p.t, "configuration")]
}

// cache is that of a process which began under a configuration. It expires.
type cache struct {
	*config.Store
	of   *people
	born int
}

func (c cache) App(context.Context, string) (config.App, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.of.configs[max(c.born, c.of.floor)], nil
}

// joined makes a process that reaches both regions.
func (p *people) joined() *profile.Engine {
	born := rapid.IntRange(p.floor, len(p.configs)-1).Draw(p.t, "cached")
	cached := config.NewCached(cache{p.apps, p, born}, 0)
	eu, us := p.open(p.store, cached), p.open(p.us, cached)
	must.Succeed(p.t, profile.Join("eu", map[string]*profile.Engine{"eu": eu, "us": us}))
	return eu
}

func (p *people) in(region string) *store.Store {
	if region == "us" {
		return p.us
	}
	return p.store
}

func (p *people) rowIn(region, token string) store.User {
	row, err := p.in(region).Users.ReadPrimary(ctx, p.appID, token, store.UserState)
	must.Succeed(p.t, err)
	return row
}

// home returns the store with the row of a token that counts.
func (p *people) home(token string) *store.Store {
	if p.us == nil {
		return p.store
	}
	eu, us := p.rowIn("eu", token).Owner, p.rowIn("us", token).Owner
	switch {
	case eu.Here() && us.Here():
		p.t.Fatalf("two regions own %s: eu %v, us %v", token, eu, us)
	case eu.Here(), !us.Here() && eu.Epoch > us.Epoch: // the other row does not count yet
		return p.store
	case us.Here(), us.Epoch > eu.Epoch:
		return p.us
	}
	return p.in(p.app().Region)
}

// move takes the next step of a move: the wait, the work of the phase, or the next phase. Now and then it turns the
// move back.
func (p *people) move() {
	app := p.app()
	switch {
	case app.Moving() && rapid.IntRange(0, 11).Draw(p.t, "undo") == 0 && app.UndoMove() == nil:
		p.changeMove((*config.App).UndoMove)
	case !app.Moving():
		p.moves++
		to := map[string]string{"eu": "us", "us": "eu"}[app.Region]
		p.changeMove(func(a *config.App) error { return a.StartMove(fmt.Sprint("move-", p.moves), to, p.now()) })
	case !p.waited:
		p.wait()
	case p.worked:
		p.changeMove(func(a *config.App) error { a.AdvanceMove(); return nil })
	case !p.moving:
		p.startWork(app)
	default:
		p.hurry()
	}
}

// hurry lets the process that works on the phase make some requests in a row, while the others stand still.
func (p *people) hurry() {
	for range rapid.IntRange(1, 30).Draw(p.t, "requests") {
		i := slices.IndexFunc(p.working, func(a *actor) bool { return strings.HasPrefix(a.name, phaseWork) })
		if i < 0 {
			return
		}
		p.advance(i, proceed)
	}
}

const phaseWork = "work of phase "

// wait waits as a job does before it begins a phase: caches have expired, and who began earlier has ended.
func (p *people) wait() {
	p.expire()
	for len(p.working) > 0 {
		i := rapid.IntRange(0, len(p.working)-1).Draw(p.t, "actor")
		p.advance(i, rapid.SampledFrom([]verdict{proceed, proceed, proceed, proceed, proceed, crash}).Draw(p.t, "verdict"))
	}
	p.waited = true
}

func (p *people) changeMove(change func(*config.App) error) {
	_, err := p.apps.UpdateMove(ctx, p.appID, change)
	must.Succeed(p.t, err)
	p.changed()
	p.waited, p.worked = false, false
}

// startWork starts a process on the work of a phase, on one token after the other. One works at a time: a mover that is
// slower than another one may bring back what was dropped from a log because of a user whom it names, until the drop.
func (p *people) startWork(app config.App) {
	e, id := p.process(), len(p.configs)
	p.moving = true
	done := false
	p.run(phaseWork+string(app.Move.Phase), func(ctx context.Context) error {
		for _, token := range tokens {
			if err := p.work(ctx, e, app, token); err != nil {
				return err
			}
		}
		done = true
		return nil
	}, func() { p.moving, p.worked = false, done && id == len(p.configs) })
}

// work does that of a phase for a token.
func (p *people) work(ctx context.Context, e *profile.Engine, app config.App, token string) (err error) {
	m := app.Move
	exists := func(region string) bool {
		row, err := p.in(region).Users.ReadPrimary(context.Background(), p.appID, token, store.UserState)
		return err == nil && row.Exists
	}
	if !exists("eu") && !exists("us") {
		return nil
	}
	bring := func() error {
		if err := e.StayUser(ctx, app, token); err != nil {
			return err
		}
		_, err := e.MoveUser(ctx, app, token, endless)
		return err
	}
	switch m.Phase {
	case config.MoveMarking:
		if exists(app.Region) {
			err = e.MarkUser(ctx, app, token)
		}
	case config.MoveArriving:
		if exists(m.To) {
			err = e.ArriveUser(ctx, app, token)
		}
	case config.MoveClearing:
		if exists(m.To) {
			err = e.ClearUser(ctx, app, token)
		}
	case config.MoveUsers:
		err = bring()
	case config.MoveDropping:
		if m.Back {
			err = bring()
		}
		if err == nil {
			_, err = e.ReconcileUser(ctx, app, token)
		}
		if err == nil {
			_, err = e.DropUser(ctx, app, token)
		}
	case config.MoveErasing:
		if row, _ := p.in(m.From).Users.ReadPrimary(context.Background(), p.appID, token, store.UserState); row.Owner.Here() {
			return fmt.Errorf("%s is erased, and owns %s: %v", m.From, token, row.Owner)
		}
		for _, table := range []string{store.TableUsers, store.TableEvents, store.TableEventsNarrow, store.TableHistories} {
			of := store.AppRows{App: p.appID, Table: table}
			must.Succeed(p.t, p.in(m.From).Rows.DeleteRows(context.Background(), of, func(int, string) error { return nil }))
		}
	}
	return err
}

// endMove ends the move that is under way, and checks that only the region of the app holds anything of it.
func (p *people) endMove() {
	for steps := 0; p.us != nil && p.app().Moving(); steps++ {
		if steps > 300 {
			p.t.Fatalf("the move does not end: %+v", p.app().Move)
		}
		p.move()
		p.check("in phase " + string(p.app().Move.Phase))
	}
	if p.us == nil {
		return
	}
	p.wait()
	other := map[string]string{"eu": "us", "us": "eu"}[p.app().Region]
	for _, token := range tokens {
		if row := p.rowIn(other, token); row.Exists {
			p.t.Fatalf("%s still has the row of %s: %+v", other, token, row)
		}
		for _, n := range schema.Names {
			all := []store.UserRange{{User: token, To: history.End}}
			err := p.in(other).Events.ReadLog(ctx, p.appID, schema.Of(n), all, func(_ string, r store.LogRow) error {
				return fmt.Errorf("%s still has the event %v of %s", other, r.Pos, token)
			})
			must.Succeed(p.t, err)
		}
	}
}
