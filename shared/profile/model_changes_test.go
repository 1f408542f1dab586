package profile_test

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// packedProfile is a profile that a process has read, and uses until the list of changes
// names its user.
type packedProfile struct {
	affinity.Profile
	app config.App
	cut store.ChangeSlot
}

// pack starts a process that reads the user's profile to use it later.
func (w *simulation) pack() {
	if !w.app().Segments.On() {
		return
	}
	app, skew := w.app(), w.skew()
	e := w.processAt(skew)
	w.start("pack", func(ctx context.Context) error {
		// The clocks of a simulation may differ by more than store.CutAt allows for.
		apart := 2 * min(w.slack/2, 30*time.Second)
		began := time.UnixMilli(w.clock.Load() + skew).Add(-max(0, apart-10*time.Second))
		r, err := e.Read(ctx, app, "u", 0)
		if err == nil {
			w.packed = &packedProfile{r.Profile, r.App, store.CutAt(began)}
		}
		return err
	})
}

// listedSince reports whether the user has been listed, wherever a process may ask.
func (w *simulation) listedSince(cut store.ChangeSlot) bool {
	lists := []*store.Store{w.store}
	if w.us != nil {
		lists = nil
		for _, app := range w.configs[w.floor:] {
			lists = append(lists, w.in(app.Region))
		}
	}
	for _, s := range lists {
		listed, _, err := s.Changes.List(ctx, w.appID, cut, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, ok := listed["u"]; !ok {
			return false
		}
	}
	return true
}

// checkPacked checks that a profile which was packed is still lawful, unless the user has
// been listed since, or the profile ends, or has not begun.
func (w *simulation) checkPacked(when string, app config.App, known func(int) bool) {
	p := w.packed
	if p == nil {
		return
	}
	now := w.clock.Load()
	if w.listedSince(p.cut) || now >= p.Until || !app.ScoresAs(p.app.ScoringVersion) {
		w.packed = nil
		return
	}
	if now < p.Anchor {
		return
	}
	row, err := w.home().Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	possible := func(n int) bool { // a change that was not answered may not be listed yet
		if w.asking == 0 && !w.counts(n, app, row, w.deletedBy, false) && !row.OptedOut.Has(w.events[n].Type) {
			return false
		}
		return w.alive(n, w.deletedBy, false) && !(w.certain && w.out.Has(w.events[n].Type))
	}
	w.lawful(when+", packed and not listed since", app, w.bounds.At(p.Profile, now), known, possible)
}
