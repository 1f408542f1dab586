package profile_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Each test leads processes into an interleaving that breaks a simpler way to move tokens that are linked.

// newLinkedMoving makes travels in the phase in which users move. a is linked to k and has two events, k and b have one.
func newLinkedMoving(t *testing.T) *travels {
	t.Helper()
	tr := newTravels(t)
	tr.setIdentity(config.IdentityCollect)
	tr.setIdentity(config.IdentityLink)
	tr.apply(tr.of("k", 1, ""), tr.of("b", 1, ""))
	tr.apply(tr.of("a", 2, ""), tr.of("a", 3, "k"))
	tr.counts("k", 3)
	tr.beginFor("a", "b", "k")
	return tr
}

// beginFor is begin for tokens.
func (tr *travels) beginFor(tokens ...string) {
	tr.t.Helper()
	to := map[string]string{"eu": "us", "us": "eu"}[tr.app().Region]
	tr.change(func(a *config.App) error { return a.StartMove("move-"+to, to, tr.now()) })
	for _, token := range tokens {
		tr.must(tr.eng.MarkUser(ctx, tr.app(), token))
	}
	tr.nextPhase()
}

func (tr *travels) moves(tokens ...string) {
	tr.t.Helper()
	for _, token := range tokens {
		_, err := tr.eng.MoveUser(ctx, tr.app(), token, endless)
		tr.must(err)
	}
}

func (tr *travels) rowOf(region, token string) store.User {
	tr.t.Helper()
	row, err := tr.in(region).Users.ReadPrimary(ctx, appID, token, store.UserState)
	tr.must(err)
	return row
}

func (tr *travels) startMover(token string) *actor {
	app, e := tr.app(), tr.process(tr.apps)
	return tr.start("mover of "+token, func(ctx context.Context) error {
		_, err := e.MoveUser(ctx, app, token, endless)
		return err
	})
}

// moverOf is a mover of a token that has given the row in eu a state.
func (tr *travels) moverOf(token string, s store.OwnerState) *actor {
	tr.t.Helper()
	a := tr.startMover(token)
	for tr.rowOf("eu", token).Owner.State != s {
		tr.step(a, 1)
	}
	return a
}

// linksOf returns the links of a token in a region.
func (tr *travels) linksOf(region, token string) links.Cell {
	tr.t.Helper()
	cell, err := links.Parse(tr.rowOf(region, token).Links)
	tr.must(err)
	return cell
}

// The links of a token travel with its row, also of an app that does not link any more, and nothing stays behind.
func TestLinksTravel(t *testing.T) {
	tr := newTravels(t)
	tr.setIdentity(config.IdentityCollect)
	tr.apply(tr.of("a", 3, "k"))
	tr.setIdentity(config.IdentityOff)
	tr.beginFor("a", "k")
	a, k := tr.rowOf("eu", "a").Links, tr.rowOf("eu", "k").Links
	tr.moves("a", "k")
	if len(a) == 0 || !bytes.Equal(tr.rowOf("us", "a").Links, a) || !bytes.Equal(tr.rowOf("us", "k").Links, k) {
		t.Error("links were lost")
	}
	tr.switched()
	tr.nextPhase()
	for _, token := range []string{"a", "k"} {
		_, err := tr.eng.DropUser(ctx, tr.app(), token)
		tr.must(err)
		if len(tr.rowOf("eu", token).Links) > 0 {
			t.Errorf("the row that %s has left still names others", token)
		}
	}
}

// A known user counts the events of a token wherever either lives, and each of them gets events there.
func TestPersonInTwoRegions(t *testing.T) {
	for name, first := range map[string]string{"the token moves first": "a", "the known user moves first": "k"} {
		t.Run(name, func(t *testing.T) {
			tr := newLinkedMoving(t)
			tr.moves(first)
			tr.counts("k", 3)
			tr.apply(tr.of("a", 4, ""))
			tr.counts("k", 4)
			tr.apply(tr.of("k", 5, ""))
			tr.counts("k", 5)
			tr.counts("a", 3)
			tr.unlink("a", "k")
			tr.counts("k", 2)
			tr.clock += hour
			tr.apply(tr.of("a", 6, "k"))
			tr.counts("k", 6)
			tr.moves("a", "k")
			tr.counts("k", 6)
			tr.apply(tr.of("a", 7, ""), tr.of("k", 8, ""))
			tr.counts("k", 8)
		})
	}
}

// What is shown of a person, exported and listed comes from both regions, and an app that serves tokens as their persons
// does so.
func TestPersonIsShownFromTwoRegions(t *testing.T) {
	for name, moving := range map[string][]string{"at home": nil, "the token": {"a"}, "the known user": {"k"}, "both": {"a", "k"}} {
		t.Run(name, func(t *testing.T) {
			tr := newLinkedMoving(t)
			tr.moves(moving...)
			app, identities := tr.app(), profile.IdentitiesOf(tr.eng)
			p, err := identities.Of(ctx, app, "k")
			tr.must(err)
			if len(p.Links) != 1 || len(p.Others) != 1 {
				t.Fatalf("%+v", p)
			}
			if n, _, err := identities.CountEvents(ctx, app, p.Links[0], 100); n != 2 || err != nil {
				t.Errorf("%d events by the link, %v", n, err)
			}
			objects, originals := 0, 0
			tr.must(tr.eng.ObjectsOf(ctx, app, "k", nil, func(affinity.Event) error { objects++; return nil }))
			holder, err := tr.eng.StoreOf(ctx, app, "k")
			tr.must(err)
			tr.must(p.ReadOriginals(ctx, holder.Events.Log(appID, app.Log), history.Range{To: history.End},
				func(string, store.LogRow, []byte) error { originals++; return nil }))
			if objects != 3 || originals != 3 {
				t.Errorf("%d objects and %d originals, want 3", objects, originals)
			}
			page, err := identities.ListLinks(ctx, app, "", 100, 100, func(*links.Entry) bool { return true })
			if err != nil || len(page.Links) != 1 || page.Links[0].Ended || page.Next != "" {
				t.Errorf("%+v, %v", page, err)
			}
			app.Identity.ServePersons = true
			served, err := identities.Read(ctx, app, "a", 0)
			tr.must(err)
			ranked, err := identities.ReadRanking(ctx, app, "a")
			tr.must(err)
			if served.Of != "k" || red(served) != 90 || red(ranked) != 90 {
				t.Errorf("served as %q: %v and %v, want 90", served.Of, red(served), red(ranked))
			}
		})
	}
}

// An unlink has drawn its ticket when the row of the token is moved: its swap changes nothing there, and it is
// made where the row counts.
func TestUnlinkMeetsMove(t *testing.T) {
	tr := newLinkedMoving(t)
	app, e := tr.app(), tr.process(tr.apps)
	u := tr.start("unlink", func(ctx context.Context) error {
		_, err := profile.IdentitiesOf(e).Unlink(ctx, app, "a", "k")
		return err
	})
	tr.step(u, 1)
	tr.moves("a")
	tr.finish(u)
	if cell := tr.linksOf("us", "a"); cell.UnlinkedUntil("k") == 0 {
		t.Errorf("the link is still there: %+v", cell.Entries)
	}
	tr.counts("k", 1)
	tr.moves("k")
	tr.counts("k", 1)
}

// A deletion of a known user whose tokens live elsewhere takes along what they did for the user, in both logs.
func TestDeletedPersonInTwoRegions(t *testing.T) {
	tr := newLinkedMoving(t)
	tr.moves("a")
	tr.clock += hour
	until, err := tr.eng.Delete(ctx, appID, "k")
	tr.must(err)
	tr.counts("k", 0)
	tr.counts("a", 0)
	_, err = tr.eng.Purge(ctx, appID, "k", until)
	tr.must(err)
	for _, region := range []string{"eu", "us"} {
		if n := tr.logged(region, "a"); n > 0 {
			t.Errorf("%s still has %d events of a", region, n)
		}
	}
}

// A mover has read the log of a token when the known user is deleted and purged, and writes its copy afterwards.
func TestCopyBringsNoDeadEvents(t *testing.T) {
	tr := newLinkedMoving(t)
	m := tr.moverOf("a", store.Leaving)
	tr.stepTo(m, "MutateRows")
	tr.clock += hour
	tr.must(deleteAndPurge(ctx, tr.eng, "k"))
	tr.finish(m)
	tr.counts("a", 0)
	if n := tr.logged("eu", "a") + tr.logged("us", "a"); n > 0 {
		t.Errorf("the logs have %d events of a", n)
	}
}

// An event that names a user who is out is dropped in no log that is being copied: a copy would bring it back. Another
// delivery drops it in both.
func TestNamedEventMeetsCopy(t *testing.T) {
	tr := newLinkedMoving(t)
	_, err := tr.eng.OptOut(ctx, appID, "k")
	tr.must(err)
	tr.clock += hour
	m := tr.moverOf("b", store.Leaving)
	named := tr.of("b", 20, "k")
	_, err = tr.eng.Apply(ctx, tr.app(), []store.LogEvent{named})
	if transient, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err); !ok || !transient.Transient() {
		t.Fatalf("a delivery while the log is copied: %v", err)
	}
	tr.finish(m)
	tr.apply(named)
	tr.counts("b", 1)
	if eu, us := tr.logged("eu", "b"), tr.logged("us", "b"); eu != 1 || us != 1 {
		t.Errorf("%d and %d events of b, want 1 in both", eu, us)
	}
}

// logged returns the number of events in the log of a token in a region.
func (tr *travels) logged(region, token string) (n int) {
	tr.t.Helper()
	must.Succeed(tr.t, tr.in(region).Events.Log(appID, tr.app().Log).ReadObjects(ctx, []store.UserRange{{User: token, To: history.End}},
		func(string, store.LogRow) error { n++; return nil }))
	return n
}
