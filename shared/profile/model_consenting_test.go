package profile_test

import (
	"context"
	"slices"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// consenting is what a simulation knows of changes of the user's consents.
type consenting struct {
	asking   int  // changes under way, or that died
	purposes bool // the app has purposes
}

// setPurposes gives some apps purposes that overlap.
func (w *simulation) setPurposes() {
	if w.purposes = rapid.Bool().Draw(w.t, "purposes"); !w.purposes {
		return
	}
	types := func(label string) []event.Type {
		return rapid.SampledFrom([][]event.Type{nil, {event.View}, {event.Conversion}}).Draw(w.t, label)
	}
	_, err := w.apps.SetPurposes(ctx, w.appID, []consent.Purpose{
		{Name: "a", Default: true, Types: types("types of a"), Surfaces: []consent.Surface{consent.Rank, consent.Segments}},
		{Name: "b", Default: rapid.Bool().Draw(w.t, "default of b"), Types: types("types of b"), Surfaces: []consent.Surface{consent.Rank, consent.Export}},
	})
	must.Succeed(w.t, err)
}

// law is the law of consents: whether an event of a receipt counts on a surface for what a row says.
func law(app config.App, row store.User, on consent.Surface, t event.Type, time, receipt int64) bool {
	said, err := consent.Parse(row.Consents)
	if err != nil {
		return false
	}
	for _, p := range app.Purposes.Purposes {
		one := consent.Consent{}
		for _, c := range said {
			if c.Purpose == p.Number {
				one = c
			}
		}
		granted := one.State == consent.Granted || one.State == consent.Default && p.Default
		if granted && (len(p.Types) == 0 || slices.Contains(p.Types, t)) && !one.Since.Covers(time, receipt) &&
			(on == consent.Kept || slices.Contains(p.Surfaces, on)) {
			return true
		}
	}
	return !app.Purposes.On()
}

// changeConsent starts a process that changes what the user grants.
func (w *simulation) changeConsent() {
	if !w.purposes {
		return
	}
	w.clock.Add(1)
	app, e := w.app(), w.processAt(w.skew())
	name, granted := rapid.SampledFrom([]string{"a", "b", ""}).Draw(w.t, "purpose"), rapid.Bool().Draw(w.t, "granted")
	w.asking++
	w.start("consent", func(ctx context.Context) error {
		c, err := profile.ConsentsOf(e).Forget, error(nil)
		if name != "" {
			_, err = profile.ConsentsOf(e).Set(ctx, app, "u", map[string]bool{name: granted})
		} else {
			_, err = c(ctx, app, "u")
		}
		if err == nil {
			w.asking--
		}
		return err
	})
}

func (w *simulation) purgeConsents() {
	if !w.purposes {
		return
	}
	app, e := w.app(), w.process()
	w.start("purge of consents", func(ctx context.Context) error {
		_, err := profile.ConsentsOf(e).Purge(ctx, app, "u")
		return err
	})
}

// exactSurfaces checks that what each surface reads, one user at a time, in groups, or packed, is the sum over what counts
// there.
func (w *simulation) exactSurfaces(when string, app config.App, row store.User) {
	if !w.purposes {
		return
	}
	for _, on := range []consent.Surface{consent.Rank, consent.Segments, consent.Export, consent.Feeds} {
		events, err := readLive(w.home(), app.For(on), "u", row)
		must.Succeed(w.t, err)
		got := w.peek(app.For(on)).Profile
		window := affinity.Window{Now: got.Anchor, RetentionDays: app.RetentionDays, DeletedUntil: row.Tombstone().DeletedUntil}
		want := affinity.Bounds{}.Reference(events, app.Strategy, window)
		w.equal(when, "read on "+string(on), got, want)
		if on == consent.Export {
			continue
		}
		there := app
		if app.Residency.On() { // a pack is of the users whose rows one region owns, whatever their locations say yet
			there = app.In("eu")
			if w.home() == w.us {
				there = app.In("us")
			}
		}
		packed := affinity.Profile{}
		onlooking := context.WithValue(context.Background(), actorKey{}, onlooker{})
		err = w.engine.ReadStored(onlooking, there.For(on), []string{"u"}, func(_ string, stored []byte) error {
			p, err := affinity.ParseProfile(stored, 0)
			packed = p
			return err
		})
		must.Succeed(w.t, err)
		if packed.Known {
			w.equal(when, "packed on "+string(on), w.bounds.At(packed, got.Anchor), want)
		} else if want.Known {
			w.t.Fatalf("%s: packed on %s: the user is unknown, the log says %+v", when, on, want)
		}
	}
}

// checkNothingWithheld checks that a purge leaves no event that counts for nothing.
func (w *simulation) checkNothingWithheld() {
	if !w.purposes {
		return
	}
	app := w.app()
	_, err := profile.ConsentsOf(w.process()).Purge(ctx, app, "u")
	must.Succeed(w.t, err)
	row, err := w.home().Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	all := []store.UserRange{{User: "u", To: history.End}}
	err = w.home().Events.ReadLog(ctx, w.appID, app.Log, all, func(_ string, r store.LogRow) error {
		e, err := r.Event()
		if !law(app, row, consent.Kept, e.Type, r.Time, r.Receipt()) {
			w.t.Fatalf("%+v is in the log, and counts for nothing", e)
		}
		return err
	})
	must.Succeed(w.t, err)
}
