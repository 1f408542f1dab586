package profile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/store"
)

// holdOut holds some users out, so that each answer is an exposure.
func (s *harness) holdOut() {
	s.t.Helper()
	_, err := s.apps.SetHoldout(ctx, appID, experiment.Holdout{Share: 0.2, Seed: "q"})
	must.Succeed(s.t, err)
}

// note reads the profile of a user for a ranking, as an answer does, and notes what they have met.
func (s *harness) note(e *profile.Engine, user string) *profile.Exposures {
	s.t.Helper()
	r, err := profile.IdentitiesOf(e).ReadRanking(ctx, s.app().For(consent.Rank), user)
	must.Succeed(s.t, err)
	x := profile.ExposuresOf(e).ByHand()
	x.Note(user, r)
	return x
}

// startExposure begins to write what a user has met by now.
func (s *harness) startExposure(e *profile.Engine) *actor {
	x := s.note(e, "u")
	return s.start("exposure", x.Flush)
}

// expose notes an answer and writes it.
func (s *harness) expose(e *profile.Engine, user string) {
	s.t.Helper()
	must.Succeed(s.t, s.note(e, user).Flush(ctx))
}

func exposuresIn(t *testing.T, s *store.Store, user string) []store.Exposure {
	t.Helper()
	row, err := s.Users.ReadPrimary(ctx, appID, user, store.UserExposures)
	must.Succeed(t, err)
	return row.Exposures
}

// An exposure of before a deletion, or of before an opt-out, is not there after it, whenever it is written. A user who
// has opted out of all types is not noted any more.
func TestExposureMeetsDeletion(t *testing.T) {
	out := func(types ...event.Type) func(context.Context, *profile.Engine) error {
		return func(ctx context.Context, e *profile.Engine) error {
			_, err := e.OptOut(ctx, appID, "u", types...)
			return err
		}
	}
	for name, exclude := range map[string]func(context.Context, *profile.Engine) error{
		"deletion": func(ctx context.Context, e *profile.Engine) error {
			_, err := e.Delete(ctx, appID, "u")
			return err
		},
		"opt-out": out(), "opt-out of views": out(event.View),
	} {
		t.Run(name, func(t *testing.T) {
			onEveryHarness(t, func(t *testing.T, s *harness) {
				s.holdOut()
				atEveryPair(func(first, second int) (bool, bool) {
					s.clear()
					s.apply(s.at(1))
					x := s.startExposure(s.engine())
					d := s.start(name, func(ctx context.Context) error { return exclude(ctx, s.engine()) })
					xGoesOn, dGoesOn := s.upTo(x, first), s.upTo(d, second)
					s.finish(x)
					s.finish(d)
					if got := exposuresIn(t, s.store, "u"); len(got) > 0 {
						t.Errorf("after %d and %d requests: %+v", first, second, got)
					}
					s.clock += hour
					s.expose(s.engine(), "u")
					if got := exposuresIn(t, s.store, "u"); (len(got) == 0) != (name == "opt-out") {
						t.Errorf("an hour later: %+v", got)
					}
					return xGoesOn, dGoesOn
				})
			})
		})
	}
}

// A user who has withdrawn the purpose of rankings by the time of the write is not noted.
func TestExposureMeetsWithdrawal(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		s.holdOut()
		s.apply(s.at(1))
		x := s.startExposure(s.engine())
		s.step(x, 1) // it has read the row
		s.consent("personal", false)
		s.finish(x)
		if got := exposuresIn(t, s.store, "u"); len(got) > 0 {
			t.Errorf("withdrawn: %+v", got)
		}
		s.consent("personal", true)
		s.expose(s.engine(), "u")
		if got := exposuresIn(t, s.store, "u"); len(got) != 1 {
			t.Errorf("granted: %+v", got)
		}
	})
}

// Of exposures that processes write at once, in any order, the earliest of each arm remains.
func TestFirstExposureRemains(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	r := rand.New(rand.NewPCG(1, 1))
	var want []store.Exposure
	var all []func()
	for _, arm := range []string{"a", "b"} {
		first := store.Exposure{Experiment: "x", Since: 5, Arm: arm}
		for range 20 {
			e := first
			e.At = s.clock + r.Int64N(1000)
			if first.At == 0 || e.At < first.At {
				first.At = e.At
			}
			all = append(all, func() { _, _ = s.store.Users.Expose(ctx, appID, "u", store.User{}, e) })
		}
		want = append(want, first)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var wg sync.WaitGroup
	for _, write := range all {
		wg.Go(write)
	}
	wg.Wait()
	if diff := cmp.Diff(want, exposuresIn(t, s.store, "u")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What has ended goes with the first exposure to what came after it. The holdout stays.
	row := store.User{Exposures: append(want, store.Exposure{Experiment: experiment.OfHoldout, Since: 4, Arm: experiment.HeldOut})}
	for _, e := range append([]store.Exposure{row.Exposures[2]}, store.Exposure{Experiment: "y", Since: 6, Arm: "a"}) {
		e.At = s.clock
		done, err := s.store.Users.Expose(ctx, appID, "u", row, e)
		must.Succeed(t, err)
		if !done {
			t.Errorf("%+v is not stored", e)
		}
	}
	var left []string
	for _, e := range exposuresIn(t, s.store, "u") {
		left = append(left, fmt.Sprint(e.Experiment, e.Since))
	}
	if slices.Sort(left); !slices.Equal(left, []string{"holdout4", "y6"}) {
		t.Errorf("%q are left", left)
	}
}

// A process reads the row of a user once an hour. So who was deleted and comes back is noted again, and is noted once.
func TestExposureIsRemembered(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.holdOut()
	first := s.clock
	s.expose(s.eng, "u")
	for range 3 {
		s.clock += minute
		x := s.start("exposure", s.note(s.eng, "u").Flush)
		if x.before != "" {
			t.Errorf("a %s for who is noted", x.before)
		}
	}
	got := exposuresIn(t, s.store, "u")
	if len(got) != 1 || got[0].At != first || got[0].Arm != experiment.HeldOut || got[0].Since != s.app().HoldoutSince.UnixMilli() {
		t.Fatalf("%+v", got)
	}
	if _, err := s.eng.Delete(ctx, appID, "u"); err != nil {
		t.Fatal(err)
	}
	s.clock += hour
	s.expose(s.eng, "u")
	if got := exposuresIn(t, s.store, "u"); len(got) != 1 || got[0].At != s.clock {
		t.Errorf("after a deletion: %+v", got)
	}
}

// A user who has met an experiment and done nothing is in a sweep of persons that asks for exposures, and in no other.
func TestExposedUsersWithoutEvents(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.holdOut()
	s.expose(s.eng, "v")
	for _, asks := range []bool{false, true} {
		o, got := profile.PersonSweep{Event: func(*profile.SweptPerson, string, affinity.Event) {}}, []string{}
		if asks {
			o.Exposure = func(of *profile.SweptPerson, e store.Exposure) { got = append(got, of.User+" "+e.Arm) }
		}
		progress, err := profile.SweepPersons(ctx, s.eng, s.app(), store.Range{}, o, func(profile.SweepProgress) error { return nil })
		must.Succeed(t, err)
		if asks != (progress.Users == 1) || asks != slices.Equal(got, []string{"v personalized"}) {
			t.Errorf("%t: %+v, %q", asks, progress, got)
		}
	}
	if r := s.read("v"); r.Known {
		t.Errorf("%+v", r)
	}
}

// An exposure that meets the mover of its user is where the user lives afterwards, and nowhere else; one that came too
// late is noted with the next answer.
func TestExposureMeetsMover(t *testing.T) {
	atEveryPair(func(first, mover int) (bool, bool) {
		tr := newMoving(t)
		tr.holdOut()
		x, m := tr.startExposure(tr.process(stuck{tr.apps, tr.app()})), tr.mover()
		goesOn, moverGoesOn := tr.upTo(x, first), tr.upTo(m, mover)
		tr.finish(x)
		tr.finish(m)
		at := tr.clock
		noted := len(exposuresIn(t, tr.us, "u"))
		tr.clock++
		tr.expose(tr.process(tr.apps), "u")
		if got := exposuresIn(t, tr.us, "u"); len(got) != 1 || noted == 1 && got[0].At != at {
			t.Errorf("after %d and %d requests: %+v", first, mover, got)
		}
		tr.expectMoved(1)
		if got := exposuresIn(t, tr.store, "u"); len(got) > 0 {
			t.Errorf("left behind: %+v", got)
		}
		return goesOn, moverGoesOn
	})
}

// Of an app whose users have regions of their own, an exposure is where the user lives. Of a token that nobody knows
// nothing is kept: where they live is not decided.
func TestExposuresOfResidents(t *testing.T) {
	r := newResidents(t)
	r.holdOut()
	r.expose(r.fresh(), "u")
	if got := slices.Concat(exposuresIn(t, r.store, "u"), exposuresIn(t, r.us, "u")); len(got) > 0 {
		t.Errorf("nobody knows the token: %+v", got)
	}
	r.apply(r.at(1))
	r.expose(r.fresh(), "u")
	must.Succeed(t, r.live("u", "us"))
	if got := exposuresIn(t, r.us, "u"); len(got) != 1 {
		t.Errorf("in us: %+v", got)
	}
	r.clean("u", "eu")
	if got := exposuresIn(t, r.store, "u"); len(got) > 0 {
		t.Errorf("in eu: %+v", got)
	}
}

// A visitor who signs in keeps the exposures of before as a part of the person, and those of after are of the known user.
func TestExposuresOfPersons(t *testing.T) {
	s := newLinked(t, storetest.NewWithClient)
	_, err := s.apps.SetIdentity(ctx, appID, config.Identity{Mode: config.IdentityLink, Lookback: 10 * 24 * time.Hour, ServePersons: true}, 0)
	must.Succeed(t, err)
	s.holdOut()
	s.expose(s.engine(), "a")
	before := s.clock
	s.clock += minute
	e := naming("a", s.clock, 1, event.Click, "Seen", "o1")
	e.Known, e.Strong, e.Receipt = "k1", true, s.clock
	s.apply(e)
	s.clock += minute
	s.expose(s.engine(), "a")
	if got := exposuresIn(t, s.store, "k1"); len(got) != 1 || got[0].At != s.clock {
		t.Errorf("of the known user: %+v", got)
	}
	var got []int64
	o := profile.PersonSweep{SweepOptions: profile.SweepOptions{AsOf: time.UnixMilli(s.clock)},
		Event: func(*profile.SweptPerson, string, affinity.Event) {},
		Exposure: func(of *profile.SweptPerson, e store.Exposure) {
			if got = append(got, e.At); of.User != "k1" {
				t.Errorf("exposure of %s", of.User)
			}
		}}
	_, err = profile.SweepPersons(ctx, s.eng, s.app(), store.Range{}, o, func(profile.SweepProgress) error { return nil })
	must.Succeed(t, err)
	if slices.Sort(got); !slices.Equal(got, []int64{before, s.clock}) {
		t.Errorf("exposures at %d, want %d and %d", got, before, s.clock)
	}
}
