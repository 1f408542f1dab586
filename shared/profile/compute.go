package profile

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// keepBytes bounds the log rows that a refresh keeps for its folds.
	keepBytes = 16 << 20
	// maxRestarts bounds how often a computation starts again. Only another fold or
	// another damaged block makes it restart.
	maxRestarts = 8
)

// computer computes profiles from blocks and log.
type computer struct {
	*env
	logs *logs
}

// computation computes the profile of one user.
type computation struct {
	*user
	// atLeast is the earliest time (ms) of the profile. Another machine may have
	// stamped the receipt of an event, and this machine's clock may be behind.
	atLeast int64

	scorer  *affinity.Scorer
	newest  *newest // nil if nobody needs the session
	session affinity.Session
	events  int // read from blocks, scored or not
	missing map[history.BlockID]bool
	restart bool

	// unfolded is the number of events outside the blocks. rows holds these events,
	// in order, for a fold. It is nil if they are too many.
	unfolded int
	rows     []store.LogRow
	// mergeable holds the contents of blocks that a fold may merge with the events
	// after them.
	mergeable map[history.BlockID][]byte
}

// purpose is what a computation is for. Each reads what those before it read.
type purpose int

const (
	forScores  purpose = iota // the profile
	forReading                // the profile and the session
	forRefresh                // both, and whole events for a fold
)

// profile returns the computed profile.
func (c *computation) profile(app config.App) affinity.Profile {
	p := c.scorer.Profile()
	p.StrategyVersion, p.RetentionDays = app.ScoringVersion, app.RetentionDays
	return p
}

// write returns the encoded profile, with its session, as a write at the ticket of
// the user's row.
func (c *computation) write(app config.App, encoded []byte) store.ProfileWrite {
	w := profileWrite(c.user, c.scorer, app, encoded)
	w.Session = c.session.AppendBinary(nil, encoded)
	return w
}

// rowReader reads the row again of a user whose manifest named a block that does
// not exist.
type rowReader func(ctx context.Context, u *user) error

// compute scores users, whose rows the caller has read, from blocks and log.
func (c *computer) compute(ctx context.Context, app config.App, compiled *affinity.Compiled,
	all []*computation, why purpose, readRow rowReader) error {
	for range maxRestarts {
		if err := c.readParts(ctx, app, compiled, all, why); err != nil {
			return err
		}
		var rest []*computation
		for _, u := range all {
			if !u.restart {
				continue
			}
			c.counters.Restarts.Add(1)
			if err := c.prepare(ctx, app.ID, u, readRow); err != nil {
				return err
			}
			rest = append(rest, u)
		}
		if all = rest; len(all) == 0 {
			return nil
		}
	}
	return fmt.Errorf("compute %s,%s and %d others: their histories changed %d times",
		app.ID, all[0].token, len(all)-1, maxRestarts)
}

// prepare prepares a user's next attempt. If another fold has replaced a missing
// block, the row now names another block. If the row still names it, the block is
// lost, and the next attempt reads the log in its place.
func (c *computer) prepare(ctx context.Context, appID string, u *computation, readRow rowReader) error {
	missing := u.missing
	if len(missing) == 0 {
		return nil // a damaged block, which badBlocks holds already
	}
	if err := readRow(ctx, u.user); err != nil {
		return err
	}
	for _, b := range u.manifest.Blocks {
		if missing[b.ID] {
			c.addBadBlock(ctx, appID, u.user, b.ID, errLost)
		}
	}
	return nil
}

// reading reads blocks and log of some users once.
type reading struct {
	*computer
	app      config.App
	compiled *affinity.Compiled
	why      purpose
	byUser   map[string]*computation
	blocks   *history.Reader
	names    []store.BlockName
	ranges   []store.UserRange
	// logScorers holds the scorers of the log by user. A user who also has blocks
	// needs two scorers, because the engine reads blocks and log at the same time.
	logScorers map[string]*affinity.Scorer

	kept, keptBytes int // log rows
	blockBytes      int // of blocks that wait for the log
}

// readParts reads blocks and log at the same time. It leaves each user scored, or
// marked to restart.
func (c *computer) readParts(ctx context.Context, app config.App, compiled *affinity.Compiled,
	all []*computation, why purpose) error {
	r := &reading{
		computer: c, app: app, compiled: compiled, why: why, blocks: history.NewReader(compiled),
		byUser: make(map[string]*computation, len(all)), logScorers: map[string]*affinity.Scorer{},
	}
	for _, u := range all {
		r.plan(u)
	}
	g, gctx := errgroup.WithContext(ctx)
	if len(r.names) > 0 {
		g.Go(func() error { return r.readBlocks(gctx) })
	}
	if len(r.ranges) > 0 {
		g.Go(func() error { return r.readLog(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, u := range all {
		if ofLog := r.logScorers[u.token]; ofLog != nil && ofLog != u.scorer {
			u.scorer.Merge(ofLog)
		}
		u.restart = u.restart || len(u.missing) > 0
	}
	return r.sessions(ctx, all)
}

// plan adds a user's blocks and log ranges to the reading.
func (r *reading) plan(u *computation) {
	u.window.RetentionDays, u.window.DeletedUntil = r.app.RetentionDays, u.row.DeletedUntil
	u.window.Now = max(r.now().UnixMilli(), u.atLeast)
	u.scorer = affinity.NewScorer(r.compiled, u.window)
	u.unfolded, u.rows, u.events, u.restart = 0, nil, 0, false
	u.missing, u.mergeable = map[history.BlockID]bool{}, map[history.BlockID][]byte{}
	r.byUser[u.token] = u
	blocks, gaps := u.parts()
	if u.newest = nil; r.why >= forReading {
		u.newest = newNewest(r.compiled, u.window, blocks, &r.limits)
	}
	for _, g := range gaps {
		r.ranges = append(r.ranges, store.UserRange{User: u.token, From: g.From, To: g.To})
	}
	for _, b := range blocks {
		u.missing[b.ID] = true
		r.names = append(r.names, store.BlockName{User: u.token, ID: b.ID})
		if r.why == forRefresh && b.Bytes <= mergeBytes && precedesGap(b, gaps) {
			u.mergeable[b.ID] = nil
		}
	}
	if len(blocks) > 0 && len(gaps) > 0 {
		r.logScorers[u.token] = affinity.NewScorer(r.compiled, u.window)
	} else {
		r.logScorers[u.token] = u.scorer
	}
}

// readBlocks scores the blocks. It restarts the user of a damaged block, who is
// then scored without that block.
func (r *reading) readBlocks(ctx context.Context) error {
	return r.store.ReadBlocks(ctx, r.app.ID, r.names, func(name store.BlockName, value []byte) error {
		u := r.byUser[name.User]
		delete(u.missing, name.ID)
		if u.restart {
			return nil
		}
		n, err := r.blocks.Score(value, u.scorer)
		if err == nil && u.newest != nil {
			err = r.searchBlock(u, name.ID, value)
		}
		if err != nil {
			r.addBadBlock(ctx, r.app.ID, u.user, name.ID, err)
			u.restart = true
			return nil
		}
		u.events += n
		if _, ok := u.mergeable[name.ID]; ok {
			u.mergeable[name.ID] = value
		}
		return nil
	})
}

// readLog scores the unfolded events. It reads whole events if it keeps them for a
// fold. Otherwise it reads the filters that the strategy scores and, for sessions,
// the objects.
func (r *reading) readLog(ctx context.Context) error {
	scorer := store.NewLogScorer(r.compiled)
	log := r.logs.of(r.app)
	unfolded := make(map[string]int, len(r.byUser))
	add := func(token string, row store.LogRow) error {
		unfolded[token]++
		u := r.byUser[token]
		if r.why == forRefresh {
			r.keepRow(u, row, unfolded[token])
		}
		if u.newest != nil {
			u.addRow(row, scorer)
		}
		return scorer.Score(row, r.logScorers[token])
	}
	var err error
	switch r.why {
	case forScores:
		err = log.ReadFor(ctx, r.ranges, r.compiled, add)
	case forReading:
		err = log.ReadWithObjects(ctx, r.ranges, r.compiled, add)
	case forRefresh:
		err = log.Read(ctx, r.ranges, add)
	}
	for token, n := range unfolded {
		r.byUser[token].unfolded = n
	}
	return err
}

// keepRow keeps the n-th row of a user's log for a fold. Above the limits it drops
// the rows of this user, and the fold reads them again.
func (r *reading) keepRow(u *computation, row store.LogRow, n int) {
	if n != len(u.rows)+1 {
		return // dropped before
	}
	if r.kept >= r.limits.keepRows || r.keptBytes >= keepBytes {
		for i := range u.rows {
			r.keptBytes -= u.rows[i].Size()
		}
		r.kept -= len(u.rows)
		u.rows = nil
		return
	}
	u.rows = append(u.rows, row)
	r.kept++
	r.keptBytes += row.Size()
}
