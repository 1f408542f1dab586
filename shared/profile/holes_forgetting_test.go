package profile_test

import (
	"context"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	locations "github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/store"
)

// newDeleted is a user of us who was deleted so long ago that nothing of before may come.
func newDeleted(t *testing.T) residents {
	t.Helper()
	r := newResidents(t)
	must.Succeed(t, r.live("u", "us"))
	r.apply(r.at(1))
	r.forgetAfter(locations.Lasting)
	return r
}

// forgetAfter deletes the user, and lets a time pass.
func (r residents) forgetAfter(d time.Duration) {
	r.t.Helper()
	until, err := r.eng.Delete(ctx, appID, "u")
	must.Succeed(r.t, err)
	r.clock += d.Milliseconds() + 2*minute
	_, err = r.eng.Purge(ctx, appID, "u", until)
	must.Succeed(r.t, err)
	r.eng = r.fresh()
}

// forgetter is a visit of the nightly job to the row of the user in us.
func (r residents) forgetter() *actor {
	return r.start("forgetter", func(ctx context.Context) error {
		_, err := profile.ResidentsOf(r.fresh()).Clean(ctx, r.app(), "u", "us", 0)
		return err
	})
}

// forget is the second visit to each region, after the wait.
func (r residents) forget() {
	r.t.Helper()
	r.clock += 11 * minute
	for _, region := range []string{"eu", "us"} {
		if left, err := profile.ResidentsOf(r.fresh()).Forget(ctx, r.app(), "u", region); err != nil || left {
			r.t.Errorf("forgotten in %s: something is left: %v, %v", region, left, err)
		}
	}
}

// rowsOf counts the rows of a table in both regions.
func (r residents) rowsOf(table string) (rows int) {
	r.t.Helper()
	for _, at := range []*store.Store{r.store, r.us} {
		there, err := at.Rows.FindRows(ctx, store.AppRows{App: appID, Table: table}, 10)
		must.Succeed(r.t, err)
		rows += len(there)
	}
	return rows
}

// Location, copy and row of a user who was deleted long ago go, and the user begins as a new one does.
func TestDeletedResidentIsForgotten(t *testing.T) {
	r := newDeleted(t)
	r.finish(r.forgetter())
	if rows := r.rowsOf(store.TableLocations); rows != 0 {
		t.Errorf("%d locations after the first visit", rows)
	}
	if !r.row("us").Exists {
		t.Error("the row is erased before the wait")
	}
	r.forget()
	if rows := r.rowsOf(store.TableUsers) + r.rowsOf(store.TableLocations); rows != 0 {
		t.Errorf("%d rows after the second visit", rows)
	}
	r.expect(0)
	r.apply(r.at(1))
	r.expect(1)
	r.livesOnlyIn("u", "eu")
}

// A user stays whose deletion is not long ago, who has come back, who is out, or who was never deleted.
func TestResidentIsNotForgotten(t *testing.T) {
	for name, prepare := range map[string]func(residents){
		"deleted lately": func(r residents) { r.forgetAfter(locations.Lasting - time.Hour) },
		"came back": func(r residents) {
			r.forgetAfter(locations.Lasting)
			r.apply(r.at(1))
		},
		"opted out": func(r residents) {
			_, err := r.eng.OptOut(ctx, appID, "u")
			must.Succeed(r.t, err)
			r.clock += locations.Lasting.Milliseconds() + 2*minute
		},
		"never deleted": func(r residents) { r.clock += locations.Lasting.Milliseconds() },
		"moved lately": func(r residents) {
			r.forgetAfter(locations.Lasting)
			must.Succeed(r.t, r.live("u", "eu"))
			must.Succeed(r.t, r.live("u", "eu"))
			r.clean("u", "us")
			must.Succeed(r.t, r.live("u", "us"))
			r.clean("u", "eu")
		},
	} {
		r := newResidents(t)
		must.Succeed(t, r.live("u", "us"))
		r.apply(r.at(1))
		prepare(r)
		before := r.row("us")
		r.finish(r.forgetter())
		r.forget()
		if after := r.row("us"); r.rowsOf(store.TableLocations) != 2 || after.Owner != before.Owner || after.DeletedUntil != before.DeletedUntil {
			t.Errorf("%s: the row was %+v, and is %+v, with %d locations", name, before, after, r.rowsOf(store.TableLocations))
		}
	}
}

// A token is forgotten while something of it comes, which knows where it lived. The forgetter stands at its beginning,
// or before it changes the row or the location, while the other one makes any number of requests. What comes counts,
// wherever it counts, and nothing of it lies elsewhere.
func meetsForgetter(t *testing.T, every int, start func(residents) *actor, events int) {
	for first, goesOn := 0, true; goesOn; first += every {
		for changes := range 3 {
			r := newDeleted(t)
			a, f := start(r), r.forgetter()
			for range changes {
				r.stepTo(f, "CheckAndMutateRow")
				if changes == 2 && r.row("us").DeletedUntil > 0 {
					r.step(f, 1)
				}
			}
			goesOn = r.upTo(a, first)
			r.meets(f, a, events)
			if t.Failed() {
				t.Fatalf("the forgetter before its change %d met %s at request %d", changes, a.name, first)
			}
		}
	}
}

// meets ends both, and checks what there is of the user.
func (r residents) meets(f, a *actor, events int) {
	r.t.Helper()
	r.finish(f)
	r.finish(a)
	r.eng = r.fresh()
	r.expect(events)
	for range 2 {
		r.clean("u", "eu")
		r.clean("u", "us")
	}
	r.forget()
	r.expect(events)
	lives, err := profile.ResidentsOf(r.eng).Region(ctx, r.app(), "u")
	must.Succeed(r.t, err)
	r.livesOnlyIn("u", lives)
	if found, err := profile.ResidentsOf(r.eng).Located(ctx, r.app(), "u"); err != nil || !found {
		r.t.Errorf("the user has no location: %v", err)
	}
}

func TestMessageMeetsForgetter(t *testing.T) {
	meetsForgetter(t, 1, func(r residents) *actor {
		e := r.fresh()
		must.Succeed(t, e.ReadStored(ctx, r.app(), []string{"u"}, func(string, []byte) error { return nil })) // which remembers the location
		return r.startApply(e, r.at(1))
	}, 1)
}

func TestMoveMeetsForgetter(t *testing.T) {
	meetsForgetter(t, 7, func(r residents) *actor {
		e := r.fresh()
		return r.start("move", func(ctx context.Context) error {
			return profile.ResidentsOf(e).Move(ctx, r.app(), "u", "eu", endless)
		})
	}, 0)
}

func TestDeletionMeetsForgetter(t *testing.T) {
	meetsForgetter(t, 4, func(r residents) *actor { return r.deletion() }, 0)
}
