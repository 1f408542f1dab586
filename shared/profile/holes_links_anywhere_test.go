package profile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// meetings is at how many requests one of which a token moves.
var meetings = race.Or(16, 48)

// linkWork is what a process does with the links of moving tokens, and how many events count afterwards. Before, a is
// linked to k and has two events, k and b have one.
type linkWork struct {
	name  string
	out   bool // k has opted out before, so that they count none
	do    func(context.Context, *travels, config.App, *profile.Engine) error
	count map[string]int
	// logged are the events that a token has in the logs at the end, where a purge has removed some.
	logged map[string]int
}

func linkWorks() []linkWork {
	apply := func(hours int64, token, known string) func(context.Context, *travels, config.App, *profile.Engine) error {
		return func(ctx context.Context, tr *travels, app config.App, e *profile.Engine) error {
			_, err := e.Apply(ctx, app, []store.LogEvent{tr.of(token, hours, known)})
			return err
		}
	}
	return []linkWork{
		{name: "an event", do: apply(4, "a", ""), count: map[string]int{"a": 3, "b": 1, "k": 4}},
		{name: "an event of the known user", do: apply(4, "k", ""), count: map[string]int{"a": 2, "b": 1, "k": 4}},
		{name: "an event that links", do: apply(4, "b", "k"), count: map[string]int{"a": 2, "b": 2, "k": 5}},
		{name: "another user's event", do: apply(4, "a", "l"), count: map[string]int{"a": 3, "b": 1, "k": 3, "l": 1}},
		{name: "an event that names who is out", out: true, do: apply(4, "b", "k"), count: map[string]int{"a": 0, "b": 1, "k": 0},
			logged: map[string]int{"b": 1}},
		{name: "an import", do: func(ctx context.Context, tr *travels, app config.App, e *profile.Engine) error {
			_, err := e.Import(ctx, app, []store.LogEvent{tr.of("b", 4, "k")})
			return err
		}, count: map[string]int{"a": 2, "b": 2, "k": 5}},
		{name: "a link", do: func(ctx context.Context, _ *travels, app config.App, e *profile.Engine) error {
			return profile.IdentitiesOf(e).Link(ctx, app, "b", "k", "asked")
		}, count: map[string]int{"a": 2, "b": 1, "k": 4}},
		{name: "a sign-in", do: func(ctx context.Context, tr *travels, app config.App, e *profile.Engine) error {
			return profile.IdentitiesOf(e).SignedIn(ctx, app, []profile.SignIn{{User: "b", Known: "k", Time: tr.clock, Receipt: tr.clock, Strong: true}})
		}, count: map[string]int{"a": 2, "b": 1, "k": 4}},
		{name: "an unlink", do: func(ctx context.Context, _ *travels, app config.App, e *profile.Engine) error {
			_, err := profile.IdentitiesOf(e).Unlink(ctx, app, "a", "k")
			return err
		}, count: map[string]int{"a": 2, "b": 1, "k": 1}},
		{name: "a deletion of the token", do: func(ctx context.Context, _ *travels, _ config.App, e *profile.Engine) error {
			return deleteAndPurge(ctx, e, "a")
		}, count: map[string]int{"a": 0, "b": 1, "k": 1}, logged: map[string]int{"a": 0, "k": 1}},
		{name: "a deletion of the known user", do: func(ctx context.Context, _ *travels, _ config.App, e *profile.Engine) error {
			return deleteAndPurge(ctx, e, "k")
		}, count: map[string]int{"a": 0, "b": 1, "k": 0}, logged: map[string]int{"a": 0, "k": 0}},
		{name: "an opt-out of the known user", do: func(ctx context.Context, _ *travels, _ config.App, e *profile.Engine) error {
			_, err := e.OptOut(ctx, appID, "k")
			return err
		}, count: map[string]int{"a": 0, "b": 1, "k": 0}},
		{name: "a read", do: func(ctx context.Context, _ *travels, app config.App, e *profile.Engine) error {
			_, err := e.ReadRanking(ctx, app, "k")
			return err
		}, count: map[string]int{"a": 2, "b": 1, "k": 3}},
	}
}

func deleteAndPurge(ctx context.Context, e *profile.Engine, token string) error {
	until, err := e.Delete(ctx, appID, token)
	if err == nil {
		_, err = e.Purge(ctx, appID, token, until)
	}
	return err
}

// TestLinksMeetMoves lets a token of a person move, at any request of a process that works on the links of the person, up
// to one of the states of its row. The process goes on then, or has died, and another one does its work. Whatever
// happens, the same events count as without a move. With -links-campaign they meet at each request, otherwise at some.
func TestLinksMeetMoves(t *testing.T) {
	for _, w := range linkWorks() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			tr := newTravels(t)
			tr.setIdentity(config.IdentityCollect)
			tr.setIdentity(config.IdentityLink)
			n := 0
			for _, token := range []string{"a", "b", "k"} {
				for _, state := range []store.OwnerState{store.Leaving, store.Moved, store.Own} {
					for _, dies := range []bool{false, true} {
						atEvery(func(requests int) bool {
							if n++; n%meetings != 0 && !*linksCampaign {
								return true
							}
							goesOn := tr.meet(w, token, state, dies, requests)
							if t.Failed() {
								t.Fatalf("%s moves until its row is %s, after %d requests; the process dies: %v", token, state, requests, dies)
							}
							return goesOn
						})
					}
				}
			}
		})
	}
}

// meet lets a process do its work for so many requests before a token moves, and reports whether it has more.
func (tr *travels) meet(w linkWork, token string, until store.OwnerState, dies bool, requests int) (goesOn bool) {
	tr.t.Helper()
	tr.startOver()
	tr.apply(tr.of("k", 1, ""), tr.of("b", 1, ""))
	tr.apply(tr.of("a", 2, ""), tr.of("a", 3, "k"))
	tr.clock += hour
	if w.out {
		_, err := tr.eng.OptOut(ctx, appID, "k")
		tr.must(err)
		tr.clock += hour
	}
	tr.beginFor("a", "b", "k")
	begin := func() *actor {
		app, e := tr.app(), tr.process(tr.apps)
		return tr.start(w.name, func(ctx context.Context) error { return w.do(ctx, tr, app, e) })
	}
	work := begin()
	goesOn = tr.upTo(work, requests)
	mover := tr.moverUntil(token, until)
	if dies {
		tr.kill(work)
		work = begin()
	}
	tr.upTo(work, 1_000)
	for token, events := range w.count {
		if work.err == nil {
			tr.counts(token, events)
		}
	}
	tr.finish(mover)
	if t, ok := errors.AsType[interface {
		error
		Transient() bool
	}](work.err); work.err != nil && ok && t.Transient() {
		work = begin() // another delivery
		tr.upTo(work, 1_000)
	}
	tr.must(work.err)
	for token, events := range w.count {
		tr.counts(token, events)
	}
	if tr.t.Failed() {
		return goesOn
	}
	tr.moves("a", "b", "k", "l")
	tr.switched()
	tr.nextPhase() // the drop
	for _, token := range []string{"a", "b", "k", "l"} {
		_, err := tr.eng.ReconcileUser(ctx, tr.app(), token)
		tr.must(err)
		_, err = tr.eng.DropUser(ctx, tr.app(), token)
		tr.must(err)
	}
	for token, events := range w.count {
		tr.counts(token, events)
	}
	for token, events := range w.logged {
		if n := tr.logged("us", token) + tr.logged("eu", token); n != events {
			tr.t.Errorf("the logs have %d events of %s, want %d", n, token, events)
		}
	}
	return goesOn
}

// moverUntil is a mover of a token that stands still once the row that counted has a state; Own: that of the region to
// which it moves. A token that has no owner yet moves nowhere.
func (tr *travels) moverUntil(token string, until store.OwnerState) *actor {
	tr.t.Helper()
	a := tr.startMover(token)
	for a.before != "" && (until == store.Own || tr.rowOf("eu", token).Owner.State != until) {
		tr.step(a, 1)
	}
	return a
}

// startOver makes the app one that rests in eu and has no users.
func (tr *travels) startOver() {
	tr.t.Helper()
	for _, s := range []*store.Store{tr.store, tr.us} {
		for _, table := range []string{store.TableUsers, store.TableEvents, store.TableEventsNarrow, store.TableHistories} {
			tr.must(s.Rows.DeleteRows(ctx, store.AppRows{App: appID, Table: table}, func(int, string) error { return nil }))
		}
	}
	tr.change(func(a *config.App) error { a.Region, a.Move = "eu", config.Move{}; return nil })
	tr.eng = tr.process(tr.apps)
}
