package profile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// residents are travels of an app whose users have regions of their own.
type residents struct{ *travels }

func newResidents(t *testing.T) residents {
	t.Helper()
	r := residents{newTravels(t)}
	r.reside(config.ResidencyPrepare)
	r.reside(config.ResidencyOn)
	r.eng = r.fresh()
	return r
}

// newLinkedResidents are residents of an app that links tokens.
func newLinkedResidents(t *testing.T) residents {
	r := newResidents(t)
	r.setIdentity(config.IdentityCollect)
	r.setIdentity(config.IdentityLink)
	return r
}

func (r residents) reside(mode config.ResidencyMode) {
	r.t.Helper()
	_, err := r.apps.SetResidency(ctx, appID, config.Residency{Mode: mode, Regions: []string{"eu", "us"}}, 0)
	must.Succeed(r.t, err)
}

// fresh returns a process that remembers nothing.
func (r residents) fresh() *profile.Engine { return r.process(r.apps) }

func (r residents) live(user, region string) error {
	return profile.ResidentsOf(r.fresh()).Move(ctx, r.app(), user, region, endless)
}

// movingAt starts a mover to us, and stops it when the row in eu says so.
func (r residents) movingAt(state store.OwnerState) *actor {
	r.t.Helper()
	m := r.start("move", func(ctx context.Context) error {
		return profile.ResidentsOf(r.fresh()).Move(ctx, r.app(), "u", "us", endless)
	})
	for r.row("eu").Owner.State != state {
		r.step(m, 1)
	}
	return m
}

// clean cleans a region after the wait.
func (r residents) clean(user, region string) bool {
	r.t.Helper()
	r.clock += 11 * minute
	gone, err := profile.ResidentsOf(r.fresh()).Clean(ctx, r.app(), user, region, 5*time.Minute)
	must.Succeed(r.t, err)
	return gone
}

// livesOnlyIn checks where a user lives, and that the other region holds nothing of them.
func (r residents) livesOnlyIn(user, region string) {
	r.t.Helper()
	lives, err := profile.ResidentsOf(r.fresh()).Region(ctx, r.app(), user)
	must.Succeed(r.t, err)
	if lives != region {
		r.t.Errorf("%s lives in %s, want %s", user, lives, region)
	}
	other := map[string]*store.Store{"us": r.store, "eu": r.us}[region]
	row, err := other.Users.ReadPrimary(ctx, appID, user, store.UserState)
	must.Succeed(r.t, err)
	if row.Exists {
		r.t.Errorf("%s lives in %s, and the other region has a row: %+v", user, region, row)
	}
	for _, n := range schema.Names {
		must.Succeed(r.t, other.Events.ReadLog(ctx, appID, schema.Of(n), []store.UserRange{{User: user, To: history.End}}, func(_ string, e store.LogRow) error {
			r.t.Errorf("%s lives in %s, and the other region has the event %s", user, region, e.ID)
			return nil
		}))
	}
}

// A user moves with what they have, and the region that they left holds nothing after the wait. A stored read there is
// one row.
func TestResidentMoves(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	r.livesOnlyIn("u", "eu")
	must.Succeed(t, r.live("u", "us"))
	r.expect(1)
	r.apply(r.at(2))
	r.expect(2)
	if gone, err := profile.ResidentsOf(r.eng).Clean(ctx, r.app(), "u", "eu", 5*time.Minute); err != nil || gone {
		t.Fatalf("cleaned before the wait: %v, %v", gone, err)
	}
	if !r.clean("u", "eu") {
		t.Fatal("the region is not clean after the wait")
	}
	r.livesOnlyIn("u", "us")
	r.expect(2)
	r.eng = r.fresh()
	r.read("u")
	reads := r.start("read", func(ctx context.Context) error { _, err := r.eng.Read(ctx, r.app(), "u", 0); return err })
	if r.step(reads, 1); reads.before != "" {
		t.Errorf("after one request the read stands before %s", reads.before)
	}
}

// A process that remembers the region of before finds the user.
func TestResidentIsFoundByTheStub(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	stale := r.eng
	must.Succeed(t, r.live("u", "us"))
	_, err := stale.Apply(ctx, r.app(), []store.LogEvent{r.at(2)})
	must.Succeed(t, err)
	r.eng = r.fresh()
	r.expect(2)
}

// Nobody moves back to a region where something is left.
func TestResidentComesBackOnceItIsClean(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	must.Succeed(t, r.live("u", "us"))
	var transient interface{ Transient() bool }
	if err := r.live("u", "eu"); !errors.As(err, &transient) || !transient.Transient() {
		t.Fatalf("moved back onto what is left: %v", err)
	}
	r.clean("u", "eu")
	must.Succeed(t, r.live("u", "eu"))
	r.eng = r.fresh()
	r.expect(1)
	r.clean("u", "us")
	r.livesOnlyIn("u", "eu")
}

// A new user begins where they are moved to, and one from before residency lives in the region of the app.
func TestResidentBegins(t *testing.T) {
	r := residents{newTravels(t)}
	r.apply(r.at(1))
	r.reside(config.ResidencyPrepare)
	r.reside(config.ResidencyOn)
	r.eng = r.fresh()
	r.expect(1)
	must.Succeed(t, r.live("new", "us"))
	e := r.at(2)
	e.User = "new"
	r.apply(e)
	r.livesOnlyIn("new", "us")
	r.apply(r.at(3))
	r.expect(2)
	r.livesOnlyIn("u", "eu")
}

// A user from before residency, whom nobody has located yet, moves with what they have.
func TestUserFromBeforeMoves(t *testing.T) {
	r := residents{newTravels(t)}
	r.apply(r.at(1))
	r.reside(config.ResidencyPrepare)
	r.reside(config.ResidencyOn)
	must.Succeed(t, r.live("u", "us"))
	r.eng = r.fresh()
	r.expect(1)
	r.clean("u", "eu")
	r.livesOnlyIn("u", "us")
	r.expect(1)
}

// A move that is given up leaves a copy, which nobody takes for the user's.
func TestCopyOfAResidentIsCleaned(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	m := r.movingAt(store.Leaving)
	r.stepTo(m, "CheckAndMutateRow") // it has copied the log
	r.kill(m)
	must.Succeed(t, r.live("u", "eu"))
	if r.clean("u", "us") {
		t.Fatal("cleaned without a wait in which nobody moves there")
	}
	r.clean("u", "us")
	r.livesOnlyIn("u", "eu")
	r.eng = r.fresh()
	r.expect(1)
}

// An event that names a known user of another region moves its token there first: no region but theirs holds what names
// them. A known user's tokens move with them.
func TestTokensLiveWhereTheirUserDoes(t *testing.T) {
	r := newLinkedResidents(t)
	r.apply(r.of("a", 1, ""))
	must.Succeed(t, r.live("k", "us"))
	r.apply(r.of("a", 2, "k"))
	r.clean("a", "eu")
	r.livesOnlyIn("a", "us")
	r.livesOnlyIn("k", "us")
	r.counts("k", 2)
	r.apply(r.of("b", 3, "k"))
	r.livesOnlyIn("b", "us")
	r.counts("k", 3)

	var refused profile.ResidenceRefused
	if err := r.live("a", "eu"); !errors.As(err, &refused) {
		t.Errorf("a token moves away from its user: %v", err)
	}
	must.Succeed(t, r.live("k", "eu"))
	for _, token := range []string{"a", "b", "k"} {
		r.clean(token, "us")
		r.livesOnlyIn(token, "eu")
	}
	r.eng = r.fresh()
	r.counts("k", 3)
}

// A slow process writes the copy of an earlier location over that of a later one. What was left is not removed until
// the copy is right, and those who have read the wrong one are done: an event that comes by it is written to the region
// that was left.
func TestResidentIsCleanedOnceTheCopyIsRight(t *testing.T) {
	r := newResidents(t)
	birth := r.start("apply", func(ctx context.Context) error {
		_, err := r.fresh().Apply(ctx, r.app(), []store.LogEvent{r.at(1)})
		return err
	})
	for r.upTo(birth, 1) {
		if lives, err := profile.ResidentsOf(r.fresh()).Located(ctx, r.app(), "u"); err != nil || lives {
			must.Succeed(t, err)
			break
		}
	}
	must.Succeed(t, r.live("u", "us"))
	r.finish(birth)
	if r.clean("u", "eu") {
		t.Fatal("cleaned, and the copy says that the user lives in eu")
	}
	there := r.process(r.apps)
	there.InRegion("us")
	_, err := there.Apply(ctx, r.app(), []store.LogEvent{r.at(2)})
	must.Succeed(t, err)
	if !r.clean("u", "eu") {
		t.Fatal("the region is not clean after the wait")
	}
	r.livesOnlyIn("u", "us")
	r.eng = there
	r.expect(2)
}

// A row that was closed points to where a user has begun, at an epoch that is lower. A process that comes by it does not
// take that user for one who has not arrived.
func TestClosedRowBringsNobody(t *testing.T) {
	r := newResidents(t)
	must.Succeed(t, r.live("u", "us"))
	misled := func(event store.LogEvent) *profile.Engine {
		must.Succeed(t, r.us.Locations.Copy(ctx, appID, "u", store.Location{Region: "eu", Since: 1}))
		e := r.process(r.apps)
		e.InRegion("us")
		_, err := e.Apply(ctx, r.app(), []store.LogEvent{event})
		must.Succeed(t, err)
		return e
	}
	r.eng = misled(r.at(1))
	if done, err := r.eng.Fold(ctx, r.app(), "u"); !done || err != nil {
		t.Fatal(done, err)
	}
	for range 3 {
		r.clean("u", "eu")
		if r.row("eu").Owner.State == store.Moved {
			break
		}
	}
	if owner := r.row("eu").Owner; owner.State != store.Moved {
		t.Fatalf("the row in eu is %+v", owner)
	}
	begun := r.row("us").Owner
	r.eng = misled(r.at(2))
	r.expect(2)
	if now := r.row("us").Owner; now != begun {
		t.Errorf("the owner was %+v, and is %+v: what was left arrived in its place", begun, now)
	}
	for range 3 {
		r.clean("u", "eu")
	}
	r.livesOnlyIn("u", "us")
}

// A cleaner closes the row of a region where a move that was given up has left events, while another mover is on its way
// there, which dies once the user has left. What that one has copied stays, and counts.
func TestClosedRowOfWhoHasLeft(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	given := r.movingAt(store.Leaving)
	copied := func() bool {
		empty, err := r.us.Events.LogIsEmpty(ctx, appID, "u")
		must.Succeed(t, err)
		return !empty
	}
	for !copied() {
		r.step(given, 1)
	}
	must.Succeed(t, r.live("u", "eu"))
	dies := r.movingAt(store.Leaving)
	r.clean("u", "us")
	if owner := r.row("us").Owner; owner.State != store.Moved {
		t.Fatalf("the row in us is not closed: %+v", owner)
	}
	for r.row("eu").Owner.State != store.Moved {
		r.step(dies, 1)
	}
	r.clean("u", "us")
	r.eng = r.fresh()
	r.expect(1)
	for range 3 {
		r.clean("u", "eu")
	}
	r.livesOnlyIn("u", "us")
	r.expect(1)
}

// A process that remembers the region of before, although the wait is over and the stub is gone, looks again.
func TestResidentIsFoundWithoutTheStub(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	reader, writer := r.fresh(), r.fresh()
	for _, stale := range []*profile.Engine{reader, writer} {
		_, err := stale.Read(ctx, r.app(), "u", 0)
		must.Succeed(t, err)
	}
	must.Succeed(t, r.live("u", "us"))
	r.clock++
	gone, err := profile.ResidentsOf(r.fresh()).Clean(ctx, r.app(), "u", "eu", 0)
	if err != nil || !gone {
		t.Fatalf("clean: %v, %v", gone, err)
	}
	if got, err := reader.Read(ctx, r.app(), "u", 0); err != nil || red(got) != 30 {
		t.Errorf("read %v, %v; want 30", red(got), err)
	}
	_, err = writer.Apply(ctx, r.app(), []store.LogEvent{r.at(2)})
	must.Succeed(t, err)
	r.eng = r.fresh()
	r.expect(2)
	if r.row("eu").Owner.Here() {
		t.Error("two regions own the user")
	}
}

// A mover dies before the arrival. The next one completes it, and only then the location says where the user lives.
func TestResidentArrivesBeforeTheLocation(t *testing.T) {
	r := newResidents(t)
	r.apply(r.at(1))
	m := r.movingAt(store.Moved)
	r.kill(m)
	r.expect(1)
	must.Succeed(t, r.live("u", "us"))
	r.eng = r.fresh()
	r.expect(1)
	r.clean("u", "eu")
	r.livesOnlyIn("u", "us")
}
