package profile_test

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// optOuts is what a simulation knows of the user's opt-out.
type optOuts struct {
	changing map[*optOutChange]bool // under way
	certain  bool                   // the last change was answered, and met no other
	out      event.Types            // if certain
}

type optOutChange struct{ met bool }

// changeOptOut starts a process that changes the types of which the user is out.
func (w *simulation) changeOptOut(in bool) {
	w.clock.Add(1)
	skew := w.skew()
	now := w.clock.Load() + skew
	begun := affinity.Tombstone{DeletedUntil: now, ReceivedUntil: now + w.slack.Milliseconds()}
	c := &optOutChange{met: len(w.changing) > 0}
	for other := range w.changing {
		other.met = true
	}
	if w.changing == nil {
		w.changing = map[*optOutChange]bool{}
	}
	w.changing[c], w.certain = true, false
	types, set := rapid.SampledFrom([][]event.Type{nil, nil, {event.View}, {event.Conversion}, {event.Click, event.View}}).Draw(w.t, "types"), event.AllTypes
	if in {
		set = 0
	} else if types != nil {
		set, _ = event.TypesOf(types...)
	}
	e := w.processAt(skew)
	w.start("opt out", func(ctx context.Context) error {
		defer delete(w.changing, c)
		do := func() (time.Time, error) { return e.OptOut(ctx, w.appID, "u", types...) }
		if in {
			do = func() (time.Time, error) { return e.OptIn(ctx, w.appID, "u") }
		}
		until, err := do()
		if err == nil && until.UnixMilli() >= begun.ReceivedUntil { // else nothing changed
			w.deletedBy = raised(w.deletedBy, begun)
		}
		if err == nil && !c.met {
			w.certain, w.out = true, set
		}
		return err
	})
}

// restoreDeletion starts a process that brings a deletion of another engine, and its opt-out
// of types, here.
func (w *simulation) restoreDeletion() {
	until := w.clock.Load() + w.skew() - rapid.Int64Range(0, 3).Draw(w.t, "ago")
	t := affinity.Tombstone{DeletedUntil: until, ReceivedUntil: until + w.slack.Milliseconds()}
	types := rapid.SampledFrom([]event.Types{0, 0, event.Views, event.Conversions | event.Clicks, event.AllTypes}).Draw(w.t, "restored types")
	c := &optOutChange{met: len(w.changing) > 0}
	for other := range w.changing {
		other.met = true
	}
	if w.changing == nil {
		w.changing = map[*optOutChange]bool{}
	}
	was := w.certain
	w.changing[c], w.certain = true, false
	e := w.processAt(w.skew())
	w.start("restore a deletion", func(ctx context.Context) error {
		defer delete(w.changing, c)
		err := e.RestoreDeletion(ctx, w.appID, "u", t, types)
		if err == nil {
			w.deletedBy = raised(w.deletedBy, t)
		}
		if err == nil && !c.met && was {
			w.certain, w.out = true, w.out|types
		}
		return err
	})
}

// checkOptOut returns the user's row, which says what an answered change has set.
func (w *simulation) checkOptOut(when string) store.User {
	row, err := w.home().Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	if w.certain && row.OptedOut != w.out {
		w.t.Fatalf("%s: the user is out of %v, want %v", when, row.OptedOut.List(), w.out.List())
	}
	return row
}

// checkNothingKept checks that a purge leaves no event of types that the user is out of.
func (w *simulation) checkNothingKept() {
	row := w.checkOptOut("at the end")
	if _, err := w.process().Purge(ctx, w.appID, "u", time.UnixMilli(row.ReceivedUntil)); err != nil {
		w.t.Fatal(err)
	}
	all := []store.UserRange{{User: "u", To: history.End}}
	err := w.store.Events.ReadLog(ctx, w.appID, w.app().Log, all, func(_ string, r store.LogRow) error {
		e, err := r.Event()
		if row.OptedOut.Has(e.Type) {
			w.t.Fatalf("%+v is in the log, and the user is out of %v", e, row.OptedOut.List())
		}
		return err
	})
	must.Succeed(w.t, err)
	if row, err := w.store.Users.ReadUser(ctx, w.appID, "u"); err != nil || row.Gone() && len(row.Profile) > 0 && w.certain {
		w.t.Fatalf("a profile of %d bytes is stored, %v", len(row.Profile), err)
	}
}
