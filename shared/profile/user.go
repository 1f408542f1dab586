package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// user is a user with the state of their row at one instant.
type user struct {
	token    string
	row      store.User
	manifest history.Manifest
	// damaged means that the row's manifest does not parse. manifest is then empty.
	damaged bool
	// late means that a block, or an announcement, was removed for the user's ticket.
	late bool
	// badBlocks are blocks that the manifest names and that are lost or damaged. The
	// engine reads the log in their place.
	badBlocks map[history.BlockID]bool
	window    affinity.Window
	// consents are those of the row, view says what counts by them on the surface of the app, and use whether that is
	// what is stored.
	consents consent.Consents
	view     *consent.View
	use      consent.Use
	// named are events of the user that were dropped because of the users whom they name.
	named naming
	// fault is why the user cannot be computed. It does not concern other users.
	fault error
}

// ErrManifest reports that a newer version of the engine has packed part of a
// user's log. This version must not compute the profile.
var ErrManifest = errors.New("the user's history is in a format this version does not read; deploy the newer version")

var errLost = errors.New("the manifest names the block, and it does not exist")

// setRow makes a row, read at one instant, the state of the user.
func (v *env) setRow(ctx context.Context, appID string, u *user, row store.User) error {
	consents, unread := consentsOf(appID, u.token, row)
	m, err := history.ParseManifest(row.Manifest)
	u.damaged, u.consents = false, consents
	switch {
	case unread != nil:
		u.row, u.manifest = row, history.Manifest{}
		return unread
	case errors.Is(err, wire.ErrNewer):
		u.row, u.manifest = row, history.Manifest{}
		return fmt.Errorf("history of %s,%s: %w: %w", appID, u.token, ErrManifest, err)
	case err != nil:
		// An empty manifest names no blocks, so readers read the log until a repair.
		m, u.damaged = history.Manifest{}, true
		v.counters.CorruptManifests.Add(1)
		v.log.LogAttrs(ctx, slog.LevelError, "manifest is damaged, reading the log in its place",
			slog.String("app", appID), slog.String("user", u.token), slog.Any("error", err))
	}
	u.row, u.manifest = row, m
	return nil
}

// setRowOf is setRow of one of many users: a manifest of a newer version is the fault
// of that user.
func (v *env) setRowOf(ctx context.Context, appID string, u *user, row store.User) {
	u.fault = v.setRow(ctx, appID, u, row)
}

// rereader returns a rowReader that draws no ticket.
func (v *env) rereader(appID string) rowReader {
	return func(ctx context.Context, u *user) error {
		row, err := v.store.Users.ReadPrimary(ctx, appID, u.token, store.UserHistory)
		if err != nil {
			return err
		}
		return v.setRow(ctx, appID, u, row)
	}
}

// addBadBlock records that a block is lost or damaged.
func (v *env) addBadBlock(ctx context.Context, appID string, u *user, id history.BlockID, err error) {
	if u.badBlocks == nil {
		u.badBlocks = map[history.BlockID]bool{}
	}
	u.badBlocks[id] = true
	v.counters.CorruptBlocks.Add(1)
	v.log.LogAttrs(ctx, slog.LevelError, "block is damaged, reading the log in its place", slog.String("app", appID),
		slog.String("user", u.token), slog.Int64("ticket", id.Ticket), slog.Int("n", id.N), slog.Any("error", err))
}

// windowStart is the position in the user's log at which the window begins.
func (u *user) windowStart() history.Pos { return history.Pos{Time: max(u.window.From(), 0)} }

// foldStart is the position from which folds take events, and blocks are used. A block
// does not know receipts, so events that only their receipts decide stay in the log.
func (u *user) foldStart() history.Pos {
	return history.Pos{Time: max(u.windowStart().Time, u.row.Tombstone().Alive())}
}

// band returns the part of the window in which receipts decide which events are
// deleted. It returns false if there is none.
func (u *user) band() (store.UserRange, bool) {
	from, to := u.windowStart(), u.foldStart()
	return store.UserRange{User: u.token, From: from, To: to}, from.Compare(to) < 0 && !u.row.Gone()
}

// sifted reports whether the log of the user holds, or may hold, events that a deletion,
// an opt-out or the consents exclude by their receipts or types.
func (u *user) sifted() bool {
	_, banded := u.band()
	return banded || (u.row.OptedOut != 0 || u.view != nil) && !u.row.Gone()
}

// leftover reports whether a range of a block, or of an announcement, is from before a
// deletion, or reaches into its band. A deletion may have died before it emptied the
// manifest.
func leftover(t affinity.Tombstone, r history.Range) bool { return r.From.Time < t.Alive() }

// reach returns how far ahead of this clock the time of an event can be, in ms: MaxAhead
// ahead of its receipt, by a clock that is less than the slack ahead. What is further ahead
// is of a clock that was wrong.
func (v *env) reach() int64 { return (event.MaxAhead + v.slack).Milliseconds() }

// Reach returns how far ahead of the engine's clock an event may be to count. What is further
// ahead is of a machine whose clock was wrong, and counts once the clock comes near.
func (e *Engine) Reach() time.Duration { return event.MaxAhead + e.env.slack }

// setReading sets the window of a reading as of a time (ms) that is now or, if it is not
// too far ahead, the time of an event.
func (v *env) setReading(u *user, now, at int64, app config.App) {
	if at > now+v.reach() {
		at = now
	}
	u.setWindow(max(now, at), app)
	u.window.Clock, u.window.Ahead = now, v.reach()
}

// setWindow sets the window as of now (ms).
func (u *user) setWindow(now int64, app config.App) {
	t := u.row.Tombstone()
	u.window = affinity.Window{
		Now: now, RetentionDays: app.RetentionDays, DeletedUntil: t.DeletedUntil, ReceivedUntil: t.ReceivedUntil,
		Marks: u.row.Marks,
	}
	u.setView(app)
	u.holdOut(app)
}

// usable is the manifest without bad blocks and leftovers.
func (u *user) usable() history.Manifest {
	t := u.row.Tombstone()
	if len(u.badBlocks) == 0 && t.DeletedUntil == 0 {
		return u.manifest
	}
	return u.manifest.Without(func(b history.Block) bool { return u.badBlocks[b.ID] || leftover(t, b.Range) })
}

// trimmed is the usable manifest without spent blocks.
func (u *user) trimmed() history.Manifest { return u.usable().Without(u.spent) }

// spent reports whether all events of a block have left the window, or the block is a
// leftover.
func (u *user) spent(b history.Block) bool {
	return b.Newest < u.windowStart().Time || leftover(u.row.Tombstone(), b.Range)
}

// parts returns the blocks and the ranges of the log that hold the window, without the
// band of the tombstone. A user who is gone has none.
//
// If manifest.Complete equals the row's ticket, the log is not read after the
// first block: any later event belongs to a write that has not drawn its ticket
// and so has not been acknowledged.
func (u *user) parts() (blocks []history.Block, gaps []history.Range) {
	if u.row.Gone() {
		return nil, nil
	}
	m, from := u.usable(), u.windowStart()
	for _, b := range m.Blocks {
		if b.Newest >= from.Time {
			blocks = append(blocks, b)
		}
	}
	gaps = m.Gaps(u.foldStart())
	if m.Complete != 0 && m.Complete == u.row.Ticket && len(m.Blocks) > 0 {
		gaps = slices.DeleteFunc(gaps, func(g history.Range) bool { return g.From.Compare(m.Blocks[0].From) >= 0 })
	}
	return blocks, gaps
}

// precedesGap reports whether a block ends where one of the gaps begins.
func precedesGap(b history.Block, gaps []history.Range) bool {
	return slices.ContainsFunc(gaps, func(g history.Range) bool { return g.From == b.To })
}

// summaryBytes holds most summaries.
const summaryBytes = 64

// profileWrite returns a user's encoded profile, without a session, as a write at
// the ticket of the user's row.
func profileWrite(u *user, scorer *affinity.Scorer, app config.App, encoded []byte) store.ProfileWrite {
	summary := scorer.Outline()
	summary.StrategyVersion = app.ScoringVersion
	return store.ProfileWrite{
		User: u.token, Row: u.row, Version: app.ScoringVersion, Value: encoded,
		Summary: summary.AppendBinary(make([]byte, 0, summaryBytes)),
	}
}
