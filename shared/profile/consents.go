package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// The consents of a user lie behind the opt-out in one cell of the row. A change of them is written like that of an
// opt-out: on condition of a ticket that was drawn before the clock was read. It raises no tombstone. In its
// place the same mutation empties the manifest and adds a mark, because blocks and profiles of before hold what no
// longer counts.

// Consents are the operations on what users grant.
type Consents struct{ engine *Engine }

// ConsentsOf returns those of an engine.
func ConsentsOf(e *Engine) Consents { return Consents{e} }

// Consented is what a user has said of the purposes of an app.
type Consented struct {
	// Says are the answers of the user, and Grants what they lead to for each purpose of the app.
	Says, Grants map[string]bool
	// Answers are both, with times, by the order of the purposes.
	Answers []consent.Answer
	// Uses are what each surface does with the profile of the user. Only Read says so.
	Uses map[consent.Surface]consent.Use
	// Exported are the purposes of the surface export that the user has withdrawn.
	Exported []string
	// Changed reports that other events count than before. Call Purge then.
	Changed bool
}

// Set grants the purposes of grants whose value is true for a user, and withdraws the others. From its return on, no
// answer has what counts for withdrawn purposes alone. For one that is granted again, only events count that are
// received afterwards, by clocks that differ by less than the slack. Granted or withdrawn twice, a purpose
// stays as it is. The error, of kind fault.Invalid, names a
// purpose that the app does not have.
func (c Consents) Set(ctx context.Context, app config.App, user string, grants map[string]bool) (Consented, error) {
	return c.change(ctx, app, user, func(had consent.Consents, t affinity.Tombstone) (consent.Consents, bool, error) {
		return app.Purposes.Ask(had, grants, t, t.DeletedUntil)
	})
}

// Forget takes back all answers of a user, so that the defaults of the purposes hold. What did not count before stays
// out.
func (c Consents) Forget(ctx context.Context, app config.App, user string) (Consented, error) {
	return c.change(ctx, app, user, func(had consent.Consents, t affinity.Tombstone) (consent.Consents, bool, error) {
		next, changes := app.Purposes.Forget(had, t, t.DeletedUntil)
		return next, changes, nil
	})
}

// Restore adds the consents of a copy of a user to theirs, as consent.Setting.Restore says.
func (c Consents) Restore(ctx context.Context, app config.App, user string, from consent.Consents) (Consented, error) {
	return c.change(ctx, app, user, func(had consent.Consents, t affinity.Tombstone) (consent.Consents, bool, error) {
		next, changes, begins := app.Purposes.Restore(had, from, affinity.Tombstone{})
		if !begins {
			return next, changes, nil
		}
		// A message that dropped events by the former consents, or is about to, wrote them before it drew its ticket, and
		// that was before the one of this change. So if the log has none, no event of before is missing.
		none, err := c.logsNothing(ctx, app, user)
		if err == nil && !none {
			next, changes, _ = app.Purposes.Restore(had, from, t)
		}
		return next, changes, err
	})
}

// logsNothing reports whether no log has an event of a user.
func (c Consents) logsNothing(ctx context.Context, app config.App, user string) (bool, error) {
	at, err := c.engine.at(app)
	if err != nil {
		return false, err
	}
	all, err := logsAnywhere(app, at)
	for i := 0; err == nil && i < len(all); i++ {
		var events []store.LogEvent
		if events, err = all[i].env.store.Events.EventsOf(ctx, app.ID, user, event.AllTypes); len(events) > 0 {
			return false, nil
		}
	}
	return err == nil, err
}

// Read returns what a user has said.
func (c Consents) Read(ctx context.Context, app config.App, user string) (Consented, error) {
	at, err := c.engine.at(app)
	if err != nil {
		return Consented{}, err
	}
	row, err := at.env.rowOf(ctx, app, user)
	if err != nil {
		return Consented{}, err
	}
	had, err := consentsOf(app.ID, user, row)
	if err != nil {
		return Consented{}, err
	}
	said := consented(app, had, false)
	said.Uses = make(map[consent.Surface]consent.Use)
	app.HeldOutToo = true // it is about what users have said
	for _, on := range consent.Surfaces() {
		if said.Uses[on], err = at.env.useOf(app.For(on), user, row); err != nil {
			return Consented{}, err
		}
	}
	return said, nil
}

// Purge removes what was stored of a user for purposes that are withdrawn alone: events of the log, and blocks. It
// returns the number of events.
func (c Consents) Purge(ctx context.Context, app config.App, user string) (int, error) {
	at, err := c.engine.at(app)
	if err != nil {
		return 0, err
	}
	return at.deletion.purgeWithdrawn(ctx, app, user)
}

func (c Consents) change(ctx context.Context, app config.App, user string,
	ask func(consent.Consents, affinity.Tombstone) (consent.Consents, bool, error)) (Consented, error) {
	at, err := c.engine.at(app)
	if err != nil {
		return Consented{}, err
	}
	return at.deletion.setConsents(ctx, app, user, ask)
}

func consented(app config.App, c consent.Consents, changed bool) Consented {
	said := Consented{Says: app.Purposes.Says(c), Grants: app.Purposes.Grants(c), Answers: app.Purposes.Answers(c),
		Changed: changed}
	for i, of := range said.Answers {
		if !of.Granted && of.Since.DeletedUntil > 0 && slices.Contains(app.Purposes.Purposes[i].Surfaces, consent.Export) {
			said.Exported = append(said.Exported, of.Name)
		}
	}
	return said
}

// consentsOf parses the consents of a row.
func consentsOf(appID, token string, row store.User) (consent.Consents, error) {
	c, err := consent.Parse(row.Consents)
	if err != nil {
		return nil, fmt.Errorf("row of %s,%s: %w", appID, token, err)
	}
	return c, nil
}

// setConsents changes the consents of a user. A message that judged by the former ones drew its ticket, and was
// received, before this ticket and this clock.
func (d *deletion) setConsents(ctx context.Context, app config.App, token string,
	ask func(consent.Consents, affinity.Tombstone) (consent.Consents, bool, error)) (Consented, error) {
	for range maxOptOuts {
		of, err := d.take(ctx, app, token)
		if err != nil {
			return Consented{}, err
		}
		had, err := consentsOf(app.ID, token, of.row)
		if err != nil {
			return Consented{}, err
		}
		next, changes, err := ask(had, d.tombstone())
		switch {
		case err != nil:
			return Consented{}, err
		case next.Same(had):
			// An earlier attempt may have died after its mutation. The ticket has been drawn.
			err = d.listConsents(ctx, app, token, of)
			return consented(app, had, len(had) > 0), err
		}
		var manifest []byte
		if changes {
			manifest = history.Manifest{Version: version(of.row.Ticket, uncovered)}.AppendBinary(nil)
		}
		done, err := of.at.env.store.Users.SetConsents(ctx, app.ID, token, of.row, next.Append(nil), manifest)
		if err != nil {
			return Consented{}, err
		}
		if done && changes {
			err = d.forget(ctx, app, token, d.markConsents)
		}
		if done {
			return consented(app, next, changes), err
		}
	}
	return Consented{}, fmt.Errorf("set consents of %s,%s: messages drew tickets %d times", app.ID, token, maxOptOuts)
}

// markConsents marks the known users of an anonymous token whose consents have changed. of has the row of a
// ticket drawn after the change. The events of other tokens follow the row of a known user when they are read.
func (d *deletion) markConsents(ctx context.Context, app config.App, token string, of place) error {
	cell, err := linksOf(app.ID, token, of.row)
	if err != nil || cell.Role != links.Anonymous {
		return err
	}
	return d.endLinks(ctx, app, token, of)
}

func (d *deletion) listConsents(ctx context.Context, app config.App, token string, of place) error {
	if err := d.markConsents(ctx, app, token, of); err != nil {
		return err
	}
	return d.changes.list(ctx, app, token)
}

// purgeWithdrawn removes the events of a user that count for no purpose, and the blocks that the manifest no longer
// names.
func (d *deletion) purgeWithdrawn(ctx context.Context, app config.App, token string) (int, error) {
	of, err := d.rowToChange(ctx, app, token)
	if err != nil {
		return 0, err
	}
	all, err := logsAnywhere(app, of.at)
	if err != nil {
		return 0, err
	}
	purged := 0
	for _, at := range all {
		n, err := at.deletion.purgeUnkept(ctx, app, token)
		if err != nil {
			return purged, err
		}
		purged = max(purged, n)
	}
	blocks, err := of.at.env.store.Histories.ListBlocks(ctx, app.ID, token)
	if err == nil {
		err = of.at.deletion.orphans.delete(ctx, app.ID, map[string][]history.BlockID{token: blocks})
	}
	return purged, err
}

// purgeUnkept removes such events from the log of the region of d. As a writer does, it draws a ticket after it has
// seen them, so a later grant covers them.
func (d *deletion) purgeUnkept(ctx context.Context, app config.App, token string) (int, error) {
	row, err := d.rowOf(ctx, app, token)
	if err != nil || !app.Purposes.On() {
		return 0, err
	}
	seen, err := d.unkept(ctx, app, token, row, nil)
	if err != nil || len(seen) == 0 {
		return 0, err
	}
	of, err := d.take(ctx, app, token)
	if err != nil {
		return 0, err
	}
	some, err := d.unkept(ctx, app, token, of.row, seen)
	if err != nil {
		return 0, err
	}
	return len(some), d.logs.of(app).DropExcluded(ctx, some, func(string) store.User { return excludingAll(of.row) })
}

// unkept returns the events of the log, or of those that were seen there, that count for no purpose by a row.
func (d *deletion) unkept(ctx context.Context, app config.App, token string, row store.User,
	seen []store.LogEvent) ([]store.LogEvent, error) {
	c, err := consentsOf(app.ID, token, row)
	if err != nil {
		return nil, err
	}
	view, _ := app.Purposes.Of(c, consent.Kept, 0)
	if view == nil {
		return nil, nil
	}
	if seen == nil {
		if seen, err = d.store.Events.EventsOf(ctx, app.ID, token, event.AllTypes); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(seen, func(e store.LogEvent) bool {
		return view.Keeps(e.Type, e.Name, e.Time, e.Receipt)
	}), nil
}

// excludingAll returns a row that excludes whatever its user has done, apart from the tombstone: for events that count
// for no purpose.
func excludingAll(row store.User) store.User {
	row.OptedOut = event.AllTypes
	return row
}

// setView sets what counts of the user on the surface of an app, by their consents.
func (u *user) setView(app config.App) {
	u.view, u.use = nil, consent.All
	if app.Purposes.On() {
		u.view, u.use = viewOf(app, u.consents, u.row, u.windowStart().Time)
	}
}

// viewOf is consent.Setting.Of. What the tokens of a person grant may differ, so the stored profile of a person serves
// a surface only if that is one of every purpose.
func viewOf(app config.App, c consent.Consents, row store.User, from int64) (*consent.View, consent.Use) {
	view, use := app.Purposes.Of(c, app.Surface, from)
	if use == consent.All && app.Surface != consent.Kept && app.Identity.Counts() && len(row.Links) > 0 &&
		slices.ContainsFunc(app.Purposes.Purposes, func(p consent.Purpose) bool {
			return !slices.Contains(p.Surfaces, app.Surface)
		}) {
		use = consent.Part
	}
	return view, use
}

// useOf returns what the surface of an app does with a stored profile of a row.
func (v *env) useOf(app config.App, token string, row store.User) (consent.Use, error) {
	switch {
	case leavesOut(app, token, row):
		return consent.None, nil
	case app.Surface == consent.Kept || !app.Purposes.On():
		return consent.All, nil
	}
	c, err := consentsOf(app.ID, token, row)
	if err != nil {
		return consent.None, err
	}
	u := user{row: row}
	u.setWindow(v.now().UnixMilli(), config.App{RetentionDays: app.RetentionDays})
	_, use := viewOf(app, c, row, u.windowStart().Time)
	return use, nil
}

// spareUnclear leaves out the blocks that do not say for what an event counts: the log takes their place.
func (u *user) spareUnclear(blocks []history.Block, gaps []history.Range) ([]history.Block, []history.Range) {
	if u.view == nil {
		return blocks, gaps
	}
	var kept []history.Block
	for _, b := range blocks {
		if u.view.Unclear(b.From.Time, b.Newest+1) {
			gaps = append(gaps, b.Range)
		} else {
			kept = append(kept, b)
		}
	}
	slices.SortFunc(gaps, func(a, b history.Range) int { return a.From.Compare(b.From) })
	return kept, gaps
}

// partly reports whether some events of a block, or facets of them, may not count.
func (u *user) partly(id history.BlockID) bool {
	if u.view == nil {
		return false
	}
	i := slices.IndexFunc(u.manifest.Blocks, func(b history.Block) bool { return b.ID == id })
	return i < 0 || u.manifest.Blocks[i].From.Time < u.view.Whole()
}

// views are those of the users of a message that do not keep all events, by token.
func views(app config.App, rows map[string]store.User) (map[string]*consent.View, error) {
	if !app.Purposes.On() {
		return nil, nil
	}
	found := make(map[string]*consent.View, len(rows))
	var failed []error
	for token, row := range rows {
		c, err := consentsOf(app.ID, token, row)
		if err != nil {
			failed = append(failed, err)
		} else if view, _ := app.Purposes.Of(c, consent.Kept, 0); view != nil {
			found[token] = view
		}
	}
	return found, errors.Join(failed...)
}

// grantedByBoth returns what is kept of the events of a token that count for a user, by the rows of both.
func grantedByBoth(app config.App, row, of store.User, token string) (granted, error) {
	if !app.Purposes.On() {
		return granted{}, nil
	}
	own, err := consentsOf(app.ID, token, row)
	if err != nil {
		return granted{}, err
	}
	known, err := consentsOf(app.ID, token, of)
	both := granted{setting: app.Purposes, consents: app.Purposes.Both(own, known)}
	both.view, _ = app.Purposes.Of(both.consents, consent.Kept, 0)
	return both, err
}
