package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// keepBytes bounds the rows of the log that a refresh of many users retains.
const keepBytes = 16 << 20

// maxRestarts bounds how often a computation begins again because a block went
// away or is damaged. Each takes a fold or a damage of its own.
const maxRestarts = 8

// work is the computation of one user's profile: his row of one instant, and
// what was read of blocks and log after it.
type work struct {
	user     string
	row      store.User
	manifest history.Manifest
	window   affinity.Window
	// newest is a time that the profile must be as of at least: receipt was
	// stamped by another machine's clock.
	newest int64
	// damaged says that the manifest could not be read.
	damaged bool
	// bad are blocks that cannot be read: the log is, in their place.
	bad map[history.BlockID]bool

	scorer *affinity.Scorer
	// loose counts the events outside the blocks. rows are those events, in order,
	// where the reader keeps them; nil with loose > 0: too many.
	loose  int
	rows   []store.LogRow
	events int // scored or not, in blocks and outside
	// joint are blocks as read that a fold may join with what follows them.
	joint   map[history.BlockID][]byte
	missing map[history.BlockID]bool // named, and not found so far
	restart bool

	// Of a bulk computation: whether he is to be computed, and has been.
	stale, done bool
}

// adopt takes a row, read at one instant, as what is true of the user.
func (e *Engine) adopt(ctx context.Context, appID string, w *work, row store.User) error {
	m, err := history.ParseManifest(row.Manifest)
	w.damaged = false
	switch {
	case errors.Is(err, history.ErrNewer):
		return fmt.Errorf("history of %s,%s: %w: %w", appID, w.user, ErrManifest, err)
	case err != nil:
		// It names no blocks: the log is read in their place until it is replaced.
		m, w.damaged = history.Manifest{}, true
		e.counters.CorruptManifests.Add(1)
		e.log.LogAttrs(ctx, slog.LevelError, "manifest is damaged, reading the log in its place",
			slog.String("app", appID), slog.String("user", w.user), slog.Any("error", err))
	}
	w.row, w.manifest = row, m
	return nil
}

// ErrManifest means that a newer version of the engine has packed part of a
// user's log: this one must not compute his profile.
var ErrManifest = errors.New("the user's history is in a format this version does not read; deploy the newer version")

// from is where the user's window begins in his log.
func (w *work) from() history.Pos { return history.Pos{Time: max(w.window.From(), 0)} }

// usable is the manifest without the blocks that cannot be read.
func (w *work) usable() history.Manifest {
	if len(w.bad) == 0 {
		return w.manifest
	}
	return w.manifest.Without(func(b history.Block) bool { return w.bad[b.ID] })
}

// parts are the blocks and the ranges of the log that hold the user's window.
// Where the manifest says that at this very ticket nothing lay outside the
// blocks, the ranges from the first block on need not be read: whoever wrote the
// log since has not drawn his ticket, so that his events are not yet promised.
func (w *work) parts() (blocks []history.Block, gaps []history.Range) {
	m, from := w.usable(), w.from()
	for _, b := range m.Blocks {
		if b.Newest >= from.Time {
			blocks = append(blocks, b)
		}
	}
	gaps = m.Gaps(from)
	if m.Complete != 0 && m.Complete == w.row.Ticket && len(m.Blocks) > 0 {
		gaps = slices.DeleteFunc(gaps, func(g history.Range) bool { return g.From.Compare(m.Blocks[0].From) >= 0 })
	}
	return blocks, gaps
}

// again renews the row of a user whose manifest named a block that is gone.
type again func(ctx context.Context, w *work) error

// compute scores users, whose rows were read before, from blocks and log. With
// keep it retains what lies outside the blocks, for a fold.
func (e *Engine) compute(ctx context.Context, app config.App, c *affinity.Compiled, works []*work, keep bool, renew again) error {
	for range maxRestarts {
		if err := e.readParts(ctx, app, c, works, keep); err != nil {
			return err
		}
		var rest []*work
		for _, w := range works {
			if !w.restart {
				continue
			}
			e.counters.Restarts.Add(1)
			if err := e.renew(ctx, app.ID, w, renew); err != nil {
				return err
			}
			rest = append(rest, w)
		}
		if works = rest; len(works) == 0 {
			return nil
		}
	}
	return fmt.Errorf("compute %s,%s and %d others: their histories changed %d times meanwhile", app.ID, works[0].user, len(works)-1, maxRestarts)
}

// renew prepares a user's next attempt. A block that is gone was replaced, so
// that a new row names another; one that is named all the same is lost, and the
// log is read in its place.
func (e *Engine) renew(ctx context.Context, appID string, w *work, renew again) error {
	gone := w.missing
	if len(gone) == 0 {
		return nil // a damaged block: it is set aside already
	}
	if err := renew(ctx, w); err != nil {
		return err
	}
	for _, b := range w.manifest.Blocks {
		if gone[b.ID] {
			e.corrupt(ctx, appID, w, b.ID, errLost)
		}
	}
	return nil
}

var errLost = errors.New("the block is named and not there")

// reading is one reading of blocks and log for some users.
type reading struct {
	e     *Engine
	app   config.App
	c     *affinity.Compiled
	keep  bool
	works map[string]*work
	names []store.BlockName
	spans []store.UserRange
	outer map[string]*affinity.Scorer // of the log, where a user has blocks too
	// kept rows, and their bytes.
	kept, keptBytes int
}

// readParts reads blocks and log at once and leaves each user scored, or marked
// to begin again.
func (e *Engine) readParts(ctx context.Context, app config.App, c *affinity.Compiled, works []*work, keep bool) error {
	r := &reading{e: e, app: app, c: c, keep: keep, works: make(map[string]*work, len(works)), outer: map[string]*affinity.Scorer{}}
	for _, w := range works {
		r.plan(w)
	}
	g, gctx := errgroup.WithContext(ctx)
	if len(r.names) > 0 {
		g.Go(func() error { return r.blocks(gctx) })
	}
	if len(r.spans) > 0 {
		g.Go(func() error { return r.log(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, w := range works {
		if outer := r.outer[w.user]; outer != nil && outer != w.scorer {
			w.scorer.Merge(outer)
		}
		w.restart = w.restart || len(w.missing) > 0
	}
	return nil
}

func (r *reading) plan(w *work) {
	w.window.RetentionDays, w.window.DeletedUntil = r.app.RetentionDays, w.row.DeletedUntil
	w.window.Now = max(r.e.now().UnixMilli(), w.newest)
	w.scorer = affinity.NewScorer(r.c, w.window)
	w.loose, w.rows, w.events, w.restart = 0, nil, 0, false
	w.missing, w.joint = map[history.BlockID]bool{}, map[history.BlockID][]byte{}
	r.works[w.user] = w
	blocks, gaps := w.parts()
	for _, g := range gaps {
		r.spans = append(r.spans, store.UserRange{User: w.user, From: g.From, To: g.To})
	}
	for _, b := range blocks {
		w.missing[b.ID] = true
		r.names = append(r.names, store.BlockName{User: w.user, ID: b.ID})
		if r.keep && b.Bytes <= jointBytes && slices.ContainsFunc(gaps, func(g history.Range) bool { return g.From == b.To }) {
			w.joint[b.ID] = nil
		}
	}
	if len(blocks) > 0 && len(gaps) > 0 {
		r.outer[w.user] = affinity.NewScorer(r.c, w.window)
	} else {
		r.outer[w.user] = w.scorer
	}
}

// blocks scores the blocks. One that is damaged is set aside, and its user
// begins again without it.
func (r *reading) blocks(ctx context.Context) error {
	scratch := history.NewReader(r.c)
	return r.e.store.ReadBlocks(ctx, r.app.ID, r.names, func(name store.BlockName, value []byte) error {
		w := r.works[name.User]
		delete(w.missing, name.ID)
		if w.restart {
			return nil
		}
		n, err := scratch.Score(value, w.scorer)
		if err != nil {
			r.e.corrupt(ctx, r.app.ID, w, name.ID, err)
			w.restart = true
			return nil
		}
		w.events += n
		if _, ok := w.joint[name.ID]; ok {
			w.joint[name.ID] = slices.Clone(value)
		}
		return nil
	})
}

// corrupt names a block that cannot be read.
func (e *Engine) corrupt(ctx context.Context, appID string, w *work, id history.BlockID, err error) {
	if w.bad == nil {
		w.bad = map[history.BlockID]bool{}
	}
	w.bad[id] = true
	e.counters.CorruptBlocks.Add(1)
	e.log.LogAttrs(ctx, slog.LevelError, "block is damaged, reading the log in its place", slog.String("app", appID),
		slog.String("user", w.user), slog.Int64("ticket", id.Ticket), slog.Int("n", id.N), slog.Any("error", err))
}

// log scores what lies outside the blocks. A reader that keeps events for a fold
// has whole ones sent, any other only what the strategy scores.
func (r *reading) log(ctx context.Context) error {
	scorer := store.NewLogScorer(r.c)
	log := r.e.logOf(r.app)
	read := log.Read
	if !r.keep {
		read = func(ctx context.Context, spans []store.UserRange, fn func(string, store.LogRow) error) error {
			return log.ReadFor(ctx, spans, r.c, fn)
		}
	}
	loose := make(map[string]int, len(r.works))
	err := read(ctx, r.spans, func(user string, row store.LogRow) error {
		w := r.works[user]
		loose[user]++
		if r.keep {
			r.retain(w, row, loose[user])
		}
		return scorer.Score(row, r.outer[user])
	})
	for user, n := range loose {
		r.works[user].loose = n
	}
	return err
}

// retain keeps a row of a user's log for a fold, unless that would be too many:
// then the fold reads them again by itself.
func (r *reading) retain(w *work, row store.LogRow, n int) {
	if n != len(w.rows)+1 {
		return // given up before
	}
	if r.kept >= r.e.limits.keepRows || r.keptBytes >= keepBytes {
		for i := range w.rows {
			r.keptBytes -= w.rows[i].Size()
		}
		r.kept -= len(w.rows)
		w.rows = nil
		return
	}
	w.rows = append(w.rows, row)
	r.kept++
	r.keptBytes += row.Size()
}

// profile is the profile that a work has come to.
func (w *work) profile(app config.App) affinity.Profile {
	p := w.scorer.Profile()
	p.StrategyVersion, p.RetentionDays = app.StrategyVersion, app.RetentionDays
	return p
}

// mend takes blocks that cannot be read out of their users' manifests, and
// replaces manifests that cannot be read, so that the next fold begins anew.
func (e *Engine) mend(ctx context.Context, appID string, works []*work) {
	var wg sync.WaitGroup
	for _, w := range works {
		if len(w.bad) == 0 && !w.damaged {
			continue
		}
		wg.Go(func() {
			if err := e.uncoverBlocks(ctx, appID, w.user, func(b history.Block) bool { return w.bad[b.ID] }); err != nil {
				e.log.LogAttrs(ctx, slog.LevelWarn, "damaged blocks stay named", slog.String("app", appID), slog.String("user", w.user), slog.Any("error", err))
			}
		})
	}
	wg.Wait()
}
