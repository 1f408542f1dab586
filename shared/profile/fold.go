package profile

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// limits of folds. Tests make them small.
type limits struct {
	// foldEvents outside the blocks make a refresh fold them: about as many as are
	// read faster from the log than from one more block.
	foldEvents int
	// maintainEvents is the same for the nightly round, which comes for users who
	// have few.
	maintainEvents int
	// settle is how old an event is before it is folded: one that comes late costs
	// the whole block that covers its time.
	settle time.Duration
	// looseEvents younger than settle are left out of blocks at most, for users
	// with very many.
	looseEvents int
	// foldMost events are folded before the manifest is changed.
	foldMost int
	// blockEvents is the most one block holds, whatever its size.
	blockEvents int
	// keepRows is how many rows of the log a refresh of many users retains.
	keepRows int
}

var usual = limits{
	foldEvents: 256, maintainEvents: 32, settle: time.Minute, looseEvents: 2_000, foldMost: 200_000, blockEvents: 1 << 20, keepRows: 8_192,
}

const (
	// jointBytes is the largest block that is joined with the events that follow
	// it, so that a user's blocks stay few.
	jointBytes = 64 << 10
	// jointRatio bounds what joining rewrites: this many old events for a new one.
	jointRatio = 8
	// pendingBytes of blocks are written at once.
	pendingBytes = 4 << 20
	// maxFolds at once for one message.
	maxFolds = 8
	// persistence is how many times the usual count of loose events makes a fold
	// that others overtook try again in the way that nobody overtakes.
	persistence = 4
	// refreshMost events are folded beside a refresh that does not have their rows.
	refreshMost = 20_000
	// patience is how many tickets a fold beside a refresh leaves another's
	// announcement alone: who announced may have died, and two who take each other's
	// announcements away never commit.
	patience = 1_000
)

// foldLoose folds what a refresh found outside the blocks, where it is much. It
// saves reads and changes no profile, so that its faults are told and not
// returned.
func (e *Engine) foldLoose(ctx context.Context, app config.App, works []*work) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxFolds)
	for _, w := range works {
		ripe := w.loose // of which some may be too young, where the rows were not kept
		if w.rows != nil {
			ripe = e.settled(w)
		}
		if ripe < e.limits.foldEvents {
			continue
		}
		g.Go(func() error {
			e.untended(ctx, app.ID, w, e.foldWork(ctx, app, w, ripe))
			return nil
		})
	}
	_ = g.Wait() // nothing is returned
}

// foldWork folds once, however much there is: others wait for the refresh.
func (e *Engine) foldWork(ctx context.Context, app config.App, w *work, ripe int) error {
	if w.rows != nil {
		done, err := e.foldRows(ctx, app, w)
		if done || err != nil || ripe < persistence*e.limits.foldEvents {
			return err
		}
	}
	_, err := e.foldOnce(ctx, app, w.user, min(e.limits.foldMost, refreshMost), patience)
	return err
}

// foldRows folds the rows that a refresh read at its own ticket after drawing
// it. It commits only while that ticket is the newest: whoever wrote the log
// behind the reading draws a later one, before the commit, which then fails, or
// after it, and finds his event covered. It reports whether it committed.
func (e *Engine) foldRows(ctx context.Context, app config.App, w *work) (bool, error) {
	n := e.settled(w)
	if n == 0 {
		return true, nil // all too young
	}
	base := e.trimmed(w)
	p := e.newPacker(app.ID, w, base)
	for i := range w.rows[:n] {
		if err := p.add(ctx, w.rows[i]); err != nil {
			return false, err
		}
	}
	rest := history.End
	if n < len(w.rows) {
		rest = w.rows[n].Pos
	}
	next, err := p.finish(ctx, rest)
	if err != nil {
		return false, err
	}
	if n == len(w.rows) {
		next.Complete = w.row.Ticket
	}
	next.Version = version(w.row.Ticket, committed)
	if err := e.CheckSchema(ctx, app); err != nil {
		return false, err
	}
	done, err := e.store.CommitFold(ctx, app.ID, w.user, w.row.Ticket, next.AppendBinary(nil))
	e.countFold(done, err)
	return done, err
}

func (e *Engine) countFold(done bool, err error) {
	switch {
	case done:
		e.counters.Folds.Add(1)
	case err == nil:
		e.counters.FoldsLost.Add(1)
	}
}

// settled is how many of the rows are to be folded: those that are old enough,
// and of younger ones all but the newest where there are very many.
func (e *Engine) settled(w *work) int {
	before := w.window.Now - e.limits.settle.Milliseconds()
	n, _ := slices.BinarySearchFunc(w.rows, before, func(r store.LogRow, t int64) int {
		if r.Time < t {
			return -1
		}
		return 1
	})
	if most := e.limits.looseEvents; len(w.rows)-n > most {
		n = len(w.rows) - most/4
	}
	return n
}

// trimmed is the usable manifest without blocks of which nothing counts any
// more, and without what is left over from before a deletion.
func (e *Engine) trimmed(w *work) history.Manifest { return w.usable().Without(w.spent) }

func (w *work) spent(b history.Block) bool {
	return b.Newest < w.from().Time || w.row.DeletedUntil != 0 && b.From.Time <= w.row.DeletedUntil
}

var errEnough = errors.New("read enough")

// Fold packs what of a user's log lies outside his blocks, however much and
// however busy he is: it announces the range in the manifest, reads it after
// that, and commits if the manifest is still the one it announced in. Events
// outside the range do not disturb it; one inside withdraws the announcement.
// Another's announcement is taken away. It reports whether a fold was committed; false without an error means that
// there was nothing to fold, or that another change came between.
func (e *Engine) Fold(ctx context.Context, app config.App, user string) (bool, error) {
	done := false
	for {
		more, err := e.foldOnce(ctx, app, user, e.limits.foldMost, 0)
		if err != nil || more == nothing {
			return done, err
		}
		done = true
		if more == all {
			return true, nil
		}
	}
}

// extent is how much of what lay outside the blocks a fold has packed.
type extent int

const (
	nothing extent = iota
	some
	all
)

// foldOnce folds up to most events, unless another fold has announced itself
// fewer than so many tickets ago.
func (e *Engine) foldOnce(ctx context.Context, app config.App, user string, most int, patience int64) (extent, error) {
	w := &work{user: user}
	if ok, err := e.mayAnnounce(ctx, app.ID, w, patience); !ok || err != nil {
		return nothing, err
	}
	row := w.row
	w.window = affinity.Window{Now: e.now().UnixMilli(), RetentionDays: app.RetentionDays, DeletedUntil: row.DeletedUntil}
	base := e.trimmed(w)
	gaps := base.Gaps(w.from())
	until := history.Pos{Time: w.window.Now - e.limits.settle.Milliseconds()}
	if len(gaps) == 0 || gaps[0].From.Compare(until) >= 0 {
		return nothing, nil
	}
	open := base
	open.Announced = &history.Announcement{Range: history.Range{From: gaps[0].From, To: until}, Ticket: row.Ticket}
	open.Version = version(row.Ticket, announced)
	ok, err := e.store.SwapManifest(ctx, app.ID, user, w.manifest.Version, open.AppendBinary(nil))
	if !ok || err != nil {
		e.countFold(false, err)
		return nothing, err
	}
	if err := e.readJoints(ctx, app.ID, w, base, gaps); err != nil {
		return nothing, err
	}
	p := e.newPacker(app.ID, w, base)
	how, rest, err := e.pack(ctx, app, p, gaps, until, most)
	if err != nil || p.events == 0 {
		return nothing, err
	}
	if until.Compare(rest) < 0 {
		rest = until // a gap that ends later was not announced to its end
	}
	next, err := p.finish(ctx, rest)
	if err != nil {
		return nothing, err
	}
	if how == complete {
		next.Complete = row.Ticket
	}
	next.Version = version(row.Ticket, committed)
	if err := e.CheckSchema(ctx, app); err != nil {
		return nothing, err
	}
	done, err := e.store.SwapManifest(ctx, app.ID, user, open.Version, next.AppendBinary(nil))
	e.countFold(done, err)
	switch {
	case !done || err != nil:
		return nothing, err
	case how == cutShort:
		return some, nil
	}
	return all, nil
}

// mayAnnounce draws a ticket for a fold of a user, and tells whether it may announce
// itself: not while another's announcement is younger than so many tickets.
func (e *Engine) mayAnnounce(ctx context.Context, appID string, w *work, patience int64) (bool, error) {
	row, err := e.store.TakeTicket(ctx, appID, w.user)
	if err != nil {
		return false, err
	}
	if err := e.adopt(ctx, appID, w, row); err != nil {
		return false, err
	}
	if a := w.manifest.Announced; a != nil && row.Ticket-a.Ticket < patience {
		return false, nil
	}
	if w.damaged {
		return e.replaceManifest(ctx, appID, w)
	}
	return true, nil
}

// ending is how the reading of a fold came to its end.
type ending int

const (
	complete ending = iota // nothing is left outside
	younger                // what is left is too young
	cutShort               // there may be more to fold
)

// pack feeds the events of the gaps before a place to the packer. It tells how
// it ended, and the place of the first event that it did not take.
func (e *Engine) pack(ctx context.Context, app config.App, p *packer, gaps []history.Range, until history.Pos, most int) (ending, history.Pos, error) {
	spans := make([]store.UserRange, len(gaps))
	for i, g := range gaps {
		spans[i] = store.UserRange{User: p.w.user, From: g.From, To: g.To}
	}
	how, rest := complete, history.End
	err := e.logOf(app).Read(ctx, spans, func(_ string, row store.LogRow) error {
		switch {
		case row.Pos.Compare(until) >= 0:
			how, rest = younger, row.Pos
			return errEnough
		case p.events >= most:
			how, rest = cutShort, row.Pos
			return errEnough
		}
		return p.add(ctx, row)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return how, rest, err
}

// readJoints reads the small blocks that gaps follow.
func (e *Engine) readJoints(ctx context.Context, appID string, w *work, base history.Manifest, gaps []history.Range) error {
	var names []store.BlockName
	for _, b := range base.Blocks {
		if b.Bytes <= jointBytes && slices.ContainsFunc(gaps, func(g history.Range) bool { return g.From == b.To }) {
			names = append(names, store.BlockName{User: w.user, ID: b.ID})
		}
	}
	w.joint = map[history.BlockID][]byte{}
	if len(names) == 0 {
		return nil
	}
	return e.store.ReadBlocks(ctx, appID, names, func(name store.BlockName, value []byte) error {
		w.joint[name.ID] = slices.Clone(value)
		return nil
	})
}
