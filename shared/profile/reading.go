package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// reading reads blocks and log of some users once.
type reading struct {
	*computer
	work
	byUser map[string]*computation
	blocks *history.Reader
	// dictionaries are those that the blocks name.
	dictionaries history.Dictionaries
	names        []store.BlockName
	// inRows are the users whose inline blocks came with their rows, apart those whose
	// inline blocks are to be read.
	inRows []*computation
	apart  []string
	ranges []store.UserRange
	sifted []store.UserRange // of the log: with receipts and types
	// logScorers holds the scorers of the log by user. A user who also has blocks
	// needs two scorers, because the engine reads blocks and log at the same time.
	logScorers map[string]*affinity.Scorer

	kept, keptBytes int // log rows
	blockBytes      int // of blocks that wait for the log
	tailBytes       int // of blocks for tails
	// inMemory are the blocks that the tails of users hold.
	inMemory []store.BlockName
	// members are the tokens whose events count for persons, by token.
	members map[string][]*member
	// elsewhere are the ranges of logs in other regions that the reading takes of them.
	elsewhere map[*Engine][]store.UserRange
	decoder   *store.LogDecoder // of users with views
}

// readParts reads blocks and log at the same time. It leaves each user scored, or
// marked to restart.
func (c *computer) readParts(ctx context.Context, w work, all []*computation) error {
	dictionaries := c.dictionaries.Of(ctx, w.app.ID)
	r := &reading{
		computer: c, work: w, blocks: history.NewReader(w.compiled, dictionaries), dictionaries: dictionaries,
		byUser: make(map[string]*computation, len(all)), logScorers: map[string]*affinity.Scorer{},
	}
	for _, u := range all {
		r.plan(u)
	}
	g, gctx := errgroup.WithContext(ctx)
	if all[0].pass != nil {
		g.SetLimit(1) // both add to one scorer
	}
	if len(r.members) > 0 {
		r.sifted, r.names = merged(r.sifted), distinctBlocks(r.names)
	}
	if len(r.names)+len(r.inMemory)+len(r.inRows)+len(r.apart)+len(r.members) > 0 {
		g.Go(func() error { return r.readBlocks(gctx) })
	}
	if len(r.ranges)+len(r.sifted)+len(r.elsewhere) > 0 {
		g.Go(func() error { return r.readLog(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, u := range all {
		if ofLog := r.logScorers[u.token]; ofLog != nil && ofLog != u.scorer {
			u.scorer.Merge(ofLog)
			ofLog.Reset(u.window) // gives back its memory
		}
		u.restart = u.restart || len(u.missing) > 0 || u.lacksBlocks() || u.findAhead()
	}
	return r.sessions(ctx, all)
}

// findAhead reports whether the reading found events later than its window that may count, and
// no reading at the same row did before. The next one is then as of the newest of these. What that finds
// ahead of itself came into the log after the first began, so nobody waits for it:
// its writer draws a later ticket.
func (u *computation) findAhead() bool {
	if u.pass != nil || u.sought || u.fault != nil || u.at != nil {
		return false
	}
	found := u.scorer.Ahead()
	u.ahead, u.sought = max(u.ahead, found), found != 0
	return u.sought
}

// setWindowOf sets the window of a computation: as of now, of the newest event that it is for or
// that an earlier reading has found, or of an instant of the past.
func (r *reading) setWindowOf(u *computation) {
	if u.at != nil {
		u.at.window(u.user, r.app)
		return
	}
	now, at := r.now().UnixMilli(), u.ahead
	if u.own >= u.row.Tombstone().Alive() && u.own <= now+r.reach() { // else it may be deleted
		at = max(at, u.own)
	}
	r.setReading(u.user, now, at, r.app)
}

// plan adds a user's blocks and log ranges to the reading.
func (r *reading) plan(u *computation) {
	switch {
	case u.pass != nil: // each pass has the window of the first one
		u.scorer = u.pass
		u.scorer.Reset(u.window)
	default:
		r.setWindowOf(u)
		u.release() // of an earlier attempt
		u.scorer = r.newScorer(u)
	}
	u.unfolded, u.banded, u.rows, u.rowBytes, u.events, u.restart, u.hit = 0, 0, nil, 0, 0, false, false
	u.blocks = nil
	u.missing, u.mergeable = map[history.BlockID]bool{}, map[history.BlockID][]byte{}
	u.planned = nil
	r.byUser[u.token] = u
	blocks, gaps := u.parts()
	if u.at != nil {
		blocks, gaps = u.at.before(blocks, gaps)
	}
	blocks, gaps = u.spareUnclear(spare(&u.cell, blocks, gaps))
	others, logged := r.planMembers(u)
	if u.newest = nil; r.why >= forReading {
		u.newest = newNewest(r.compiled, u.window, append(others, locate(u.user, u.missing, blocks)...), &r.limits)
	}
	all := gaps
	u.whole = r.tailed(u)
	gaps = r.useTail(u, gaps)
	for _, g := range gaps {
		gap := store.UserRange{User: u.token, From: g.From, To: g.To}
		if u.row.OptedOut == 0 && u.view == nil && !u.apart() {
			r.ranges = append(r.ranges, gap)
		} else {
			r.sift(u, gap)
		}
	}
	band, banded := u.band()
	if banded {
		r.sift(u, band)
	}
	r.planBlocks(u, blocks, all)
	if len(blocks)+len(others) > 0 && (len(all) > 0 || banded || logged) && u.pass == nil {
		r.logScorers[u.token] = r.newScorer(u)
	} else {
		r.logScorers[u.token] = u.scorer
	}
}

// planBlocks adds a user's blocks to the reading.
func (r *reading) planBlocks(u *computation, blocks []history.Block, gaps []history.Range) {
	for _, b := range blocks {
		name := store.BlockName{User: u.token, ID: b.ID}
		_, kept := u.tail.block(b.ID)
		if !kept {
			u.missing[b.ID] = true
		}
		switch {
		case kept:
			r.inMemory = append(r.inMemory, name)
		case !b.Inline:
			r.names = append(r.names, name)
		case u.row.HasInline:
			r.inRows = append(r.inRows, u)
		default:
			r.apart = append(r.apart, u.token)
		}
		if r.why == forRefresh && b.Bytes <= mergeBytes && precedesGap(b, gaps) {
			u.mergeable[b.ID] = nil
		}
	}
}

// newScorer makes a scorer that takes part in the memory of all.
func (r *reading) newScorer(u *computation) *affinity.Scorer {
	sc := affinity.NewScorer(r.compiled, u.window)
	sc.Hold(r.share)
	return sc
}

// readBlocks scores the blocks. It restarts the user of a damaged block, who is
// then scored without that block.
func (r *reading) readBlocks(ctx context.Context) error {
	for _, name := range r.inMemory {
		u := r.byUser[name.User]
		value, _ := u.tail.block(name.ID)
		if err := r.takeBlock(ctx, u, name.ID, value, nil); err != nil {
			return err
		}
	}
	for _, u := range r.inRows {
		if err := r.addInline(ctx, u, u.row.Inline); err != nil {
			return err
		}
	}
	if err := r.addInlineOfMembers(ctx); err != nil {
		return err
	}
	if len(r.apart) > 0 {
		err := r.store.Users.ReadInline(ctx, r.app.ID, r.apart, func(user string, cell []byte) error {
			return r.addInline(ctx, r.byUser[user], cell)
		})
		if err != nil {
			return err
		}
	}
	if len(r.names) == 0 {
		return nil
	}
	return r.store.Histories.ReadBlocks(ctx, r.app.ID, r.names, func(name store.BlockName, value []byte) error {
		if r.why == forRefresh { // a fold or a tail may keep it
			value = slices.Clone(value)
		}
		if len(r.members) > 0 {
			return r.takeShared(ctx, name, value)
		}
		return r.takeBlock(ctx, r.byUser[name.User], name.ID, value, nil)
	})
}

// takeBlock scores a block, unless damage says that it is damaged. The error is that of a
// dictionary that could not be read.
func (r *reading) takeBlock(ctx context.Context, u *computation, id history.BlockID, value []byte, damage error) error {
	delete(u.missing, id)
	if u.restart {
		return nil
	}
	n, err := 0, damage
	if err == nil {
		n, err = r.scoreBlock(u, id, value)
	}
	if err == nil && u.newest != nil {
		err = r.searchBlock(u, store.BlockName{User: u.token, ID: id}, value)
	}
	if errors.Is(err, history.ErrUnread) {
		return err
	}
	if err != nil {
		r.addBadBlock(ctx, r.app.ID, u.user, id, err)
		u.restart = true
		return nil
	}
	u.events += n
	if _, ok := u.mergeable[id]; ok {
		u.mergeable[id] = value
	}
	r.keepBlock(u, id, value)
	return nil
}

// readLog scores the unfolded events. It reads whole events if it keeps them for a
// fold. Otherwise it reads the filters that the strategy scores and, for sessions,
// the objects.
func (r *reading) readLog(ctx context.Context) error {
	scorer := store.NewLogScorer(r.compiled)
	log := r.logs.of(r.app)
	err := log.ReadWithObjects(ctx, r.sifted, r.compiled, func(token string, row store.LogRow) error {
		u := r.byUser[token]
		if len(r.members) > 0 || u.apart() {
			r.scoreShared(nil, token, row, scorer)
			return nil
		}
		r.scoreSifted(u, row, scorer)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.readElsewhere(ctx, scorer); err != nil {
		return err
	}
	unfolded := make(map[string]int, len(r.byUser))
	for token, u := range r.byUser {
		for i := range u.rows { // of the tail
			unfolded[token]++
			r.score(u, u.rows[i], scorer)
		}
	}
	add := func(token string, row store.LogRow) error {
		u := r.byUser[token]
		if u.fault != nil {
			return nil
		}
		unfolded[token]++
		if r.why == forRefresh {
			r.keepRow(u, row, unfolded[token])
		}
		r.score(u, row, scorer)
		return nil
	}
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

// readElsewhere scores events of members that are owned in another region than the person.
func (r *reading) readElsewhere(ctx context.Context, scorer *store.LogScorer) error {
	for at, ranges := range r.elsewhere {
		err := at.logs.of(r.app).ReadWithObjects(ctx, merged(ranges), r.compiled, func(token string, row store.LogRow) error {
			r.scoreShared(at, token, row, scorer)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scoreSifted adds a row that may be excluded to a user.
func (r *reading) scoreSifted(u *computation, row store.LogRow, scorer *store.LogScorer) {
	if u.fault != nil || row.Excluded(u.row) || !keeps(u.view, row) {
		return
	}
	if row.Pos.Compare(u.foldStart()) < 0 {
		u.banded++
	} else {
		u.unfolded++
	}
	if u.view != nil {
		r.scoreViewed(u, u.view, row, scorer)
		return
	}
	r.score(u, row, scorer)
}

// score adds a row of the log to a user.
func (r *reading) score(u *computation, row store.LogRow, scorer *store.LogScorer) {
	if u.newest != nil {
		u.addRow(row, nil, scorer)
	}
	if err := scorer.Score(row, r.logScorers[u.token]); err != nil {
		u.fault = fmt.Errorf("compute %s,%s: %w", r.app.ID, u.token, err)
	}
}

// keepRow keeps the n-th row of a user's log for a fold. Above the limits it drops
// the rows of this user, and the fold reads them again.
func (r *reading) keepRow(u *computation, row store.LogRow, n int) {
	if n != len(u.rows)+1 {
		return // dropped before
	}
	if r.kept >= r.limits.keepRows || r.keptBytes >= keepBytes {
		r.keptBytes -= u.rowBytes
		r.kept -= len(u.rows)
		u.rows, u.rowBytes = nil, 0
		return
	}
	u.rows = append(u.rows, row)
	r.kept++
	size := row.Size()
	r.keptBytes += size
	u.rowBytes += size
}
