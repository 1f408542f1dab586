package profile

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// mergeBytes is the size of the largest block that a fold merges with the events
	// that follow it. Merging keeps a user's blocks few.
	mergeBytes = 64 << 10
	// mergeRatio is the largest number of old events that a merge rewrites for each
	// new one.
	mergeRatio = 8
	// pendingBytes is the size of blocks from which a fold writes them.
	pendingBytes = 4 << 20
	// maxFolds is the number of folds that one message, or one group of a
	// recompute, runs at a time.
	maxFolds = 8
	// announceRatio times foldEvents is the number of events from which a refresh
	// whose commit failed folds again with an announcement.
	announceRatio = 4
	// maxRefreshFold is the largest number of events that a refresh folds if it did
	// not keep their rows.
	maxRefreshFold = 20_000
	// refreshPatience is the number of tickets for which a refresh leaves another
	// fold's announcement alone. Two folds that remove each other's announcements
	// never commit. But the process of the other fold may have died.
	refreshPatience = 1_000
)

// folder packs unfolded events into blocks. It changes no profile.
type folder struct {
	*env
	logs    *logs
	tickets *tickets
	// youngToo says that the folds take events of any age.
	youngToo bool
}

// foldUnfolded folds the users of a refresh that have many unfolded events. It
// logs its errors: no profile depends on a fold.
func (f *folder) foldUnfolded(ctx context.Context, app config.App, computations []*computation) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxFolds)
	for _, c := range computations {
		foldable := c.unfolded // an upper bound: some may be too young
		if c.rows != nil {
			foldable = f.foldable(c)
		}
		if foldable < f.limits.foldEvents {
			continue
		}
		g.Go(func() error {
			f.logFailure(ctx, app.ID, c.token, f.foldAfterRefresh(ctx, app, c, foldable))
			return nil
		})
	}
	_ = g.Wait() // it returns no error
}

// logFailure logs a failed fold or trim. The cancellation of its job, such as a
// superseded recompute, is not a failure.
func (f *folder) logFailure(ctx context.Context, appID, token string, err error) {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	f.counters.FoldFaults.Add(1)
	f.log.LogAttrs(ctx, slog.LevelWarn, "history is not folded",
		slog.String("app", appID), slog.String("user", token), slog.Any("error", err))
}

// foldAfterRefresh folds once, however many events are left, because messages wait
// for the refresh.
func (f *folder) foldAfterRefresh(ctx context.Context, app config.App, c *computation, foldable int) error {
	if c.rows != nil {
		done, err := f.foldRows(ctx, app, c)
		if done || err != nil || foldable < announceRatio*f.limits.foldEvents {
			return err
		}
	}
	_, err := f.foldOnce(ctx, app, c.token, min(f.limits.maxFold, maxRefreshFold), refreshPatience)
	return err
}

// foldRows folds the rows that a refresh read after drawing its ticket. It reports
// whether it committed.
//
// The commit succeeds only if no newer ticket exists. A writer whose event the
// fold missed must still draw a ticket. If it draws before the commit, the commit
// fails. If it draws after the commit, the writer sees that a block covers its
// event, and uncovers the range.
func (f *folder) foldRows(ctx context.Context, app config.App, c *computation) (bool, error) {
	n := f.foldable(c)
	if n == 0 {
		return true, nil // all too young
	}
	p := f.newPacker(app, c.user, c.trimmed(), c.unfolded, c.mergeable, f.newBuilder(ctx, app.ID),
		store.NewLogDecoder())
	for i := range c.rows[:n] {
		if err := p.add(ctx, c.rows[i]); err != nil {
			return false, err
		}
	}
	rest := history.End
	if n < len(c.rows) {
		rest = c.rows[n].Pos
	}
	next, cell, err := p.finish(ctx, rest)
	if err != nil {
		return false, err
	}
	if n == len(c.rows) {
		next.Complete = c.row.Ticket
	}
	next.Version = version(c.row.Ticket, committed)
	if err := f.logs.check(ctx, app); err != nil {
		return false, err
	}
	left := owned(next, cell)
	done, err := f.commit(ctx, app.ID, c.user, left, cell)
	f.countFold(done, err)
	if done {
		c.whole = c.whole && len(left.Blocks) == len(next.Blocks) // else events are unfolded that it has not read
		c.folded(left, n, p.written)
	}
	return done, err
}

func (f *folder) countFold(done bool, err error) {
	switch {
	case done:
		f.counters.Folds.Add(1)
	case err == nil:
		f.counters.FoldsLost.Add(1)
	}
}

// foldable returns how many of the kept rows to fold: those that are old enough.
// If more than maxYoung are younger, it leaves only the newest of them.
func (f *folder) foldable(c *computation) int {
	before := c.window.Now - f.limits.foldAge.Milliseconds()
	n, _ := slices.BinarySearchFunc(c.rows, before, func(r store.LogRow, t int64) int {
		if r.Time < t {
			return -1
		}
		return 1
	})
	if young := f.limits.maxYoung; len(c.rows)-n > young {
		n = len(c.rows) - young/4
	}
	return n
}

// fold folds with announcements until it has packed every event that is old
// enough, or until another change of the manifest comes first.
func (f *folder) fold(ctx context.Context, app config.App, token string) (bool, error) {
	done := false
	for {
		packed, err := f.foldOnce(ctx, app, token, f.limits.maxFold, 0)
		if err != nil || packed == packedNone {
			return done, err
		}
		done = true
		if packed == packedAll {
			return true, nil
		}
	}
}

// extent is the share of the old enough events that a fold has packed.
type extent int

const (
	packedNone extent = iota
	packedSome
	packedAll
)

// foldOnce folds up to maxEvents events of a user. It announces the range in the
// manifest, then reads the range, and commits if the manifest has not changed
// since the announcement. Events outside the range do not disturb the fold. The
// writer of a late event inside it removes the announcement. foldOnce does nothing
// if another fold announced itself fewer than patience tickets ago.
func (f *folder) foldOnce(ctx context.Context, app config.App, token string,
	maxEvents int, patience int64) (extent, error) {
	u := &user{token: token}
	if ok, err := f.mayAnnounce(ctx, app.ID, u, patience); !ok || err != nil {
		return packedNone, err
	}
	u.setWindow(f.now().UnixMilli(), app)
	base, gaps, until, ok := f.toFold(u)
	if !ok {
		return packedNone, nil
	}
	open, ok, err := f.announce(ctx, app.ID, u, base, history.Range{From: gaps[0].From, To: until})
	if !ok || err != nil {
		return packedNone, err
	}
	next, cell, packed, err := f.packGaps(ctx, app, u, base, gaps, until, maxEvents)
	if packed == packedNone || err != nil {
		return packedNone, err
	}
	if err := f.logs.check(ctx, app); err != nil {
		return packedNone, err
	}
	done, err := f.swapManifest(ctx, app.ID, token, open, next, cell)
	f.countFold(done, err)
	if !done || err != nil {
		return packedNone, err
	}
	return packed, nil
}

// mayAnnounce draws a ticket for a fold of a user. It reports whether the fold may
// announce itself: not if another fold did so fewer than patience tickets ago.
func (f *folder) mayAnnounce(ctx context.Context, appID string, u *user, patience int64) (bool, error) {
	row, err := f.store.Users.TakeTicket(ctx, appID, u.token)
	if err != nil {
		return false, err
	}
	if err := f.setRow(ctx, appID, u, row); err != nil {
		return false, err
	}
	if a := u.manifest.Announced; a != nil && row.Ticket-a.Ticket < patience {
		return false, nil
	}
	if u.damaged {
		return f.tickets.replaceManifest(ctx, appID, u)
	}
	return true, nil
}

// announce announces a range in a user's manifest. It returns the new manifest.
// False means that another change of the manifest came first.
func (f *folder) announce(ctx context.Context, appID string, u *user, base history.Manifest,
	r history.Range) (history.Manifest, bool, error) {
	open := base
	open.Announced = &history.Announcement{Range: r, Ticket: u.row.Ticket}
	open.Version = version(u.row.Ticket, announced)
	ok, err := f.swapManifest(ctx, appID, u.token, u.manifest, open, nil)
	if !ok || err != nil {
		f.countFold(false, err)
	}
	return open, ok, err
}

// packGaps packs the events of the gaps before a position into blocks. It returns
// the manifest that names the blocks, and the cell of the inline one if it is new.
func (f *folder) packGaps(ctx context.Context, app config.App, u *user, base history.Manifest,
	gaps []history.Range, until history.Pos, maxEvents int) (history.Manifest, []byte, extent, error) {
	mergeable, err := f.readMergeable(ctx, app.ID, u.token, base, gaps)
	if err != nil {
		return history.Manifest{}, nil, packedNone, err
	}
	p := f.newPacker(app, u, base, 0, mergeable, f.newBuilder(ctx, app.ID), store.NewLogDecoder())
	end, rest, err := f.pack(ctx, app, p, gaps, until, maxEvents)
	if err != nil || p.events == 0 {
		return history.Manifest{}, nil, packedNone, err
	}
	if until.Compare(rest) < 0 {
		rest = until // the announcement ends before the gap
	}
	next, cell, err := p.finish(ctx, rest)
	if err != nil || len(p.blocks) == 0 { // the user has opted out of the types of all events
		return history.Manifest{}, nil, packedNone, err
	}
	next.Version = version(u.row.Ticket, committed)
	switch end {
	case reachedEnd:
		next.Complete = u.row.Ticket
	case reachedLimit:
		return next, cell, packedSome, nil
	}
	return next, cell, packedAll, nil
}

// ending is the reason why a fold stopped reading.
type ending int

const (
	reachedEnd   ending = iota // no event is left
	reachedYoung               // the next event is too young
	reachedLimit               // there may be more events to fold
)

var errEnough = errors.New("read enough")

// pack gives the events of the gaps before a position to the packer. It returns
// the reason why it stopped, and the position of the first event that it did not
// pack.
func (f *folder) pack(ctx context.Context, app config.App, p *packer, gaps []history.Range,
	until history.Pos, maxEvents int) (ending, history.Pos, error) {
	ranges := make([]store.UserRange, len(gaps))
	for i, g := range gaps {
		ranges[i] = store.UserRange{User: p.user.token, From: g.From, To: g.To}
	}
	end, rest := reachedEnd, history.End
	err := f.logs.of(app).Read(ctx, ranges, func(_ string, row store.LogRow) error {
		switch {
		case row.Pos.Compare(until) >= 0:
			end, rest = reachedYoung, row.Pos
			return errEnough
		case p.events >= maxEvents:
			end, rest = reachedLimit, row.Pos
			return errEnough
		}
		return p.add(ctx, row)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return end, rest, err
}

// readMergeable reads the small blocks that end where a gap begins.
func (f *folder) readMergeable(ctx context.Context, appID, token string, base history.Manifest,
	gaps []history.Range) (map[history.BlockID][]byte, error) {
	var names []store.BlockName
	mergeable := map[history.BlockID][]byte{}
	for _, b := range base.Blocks {
		switch {
		case b.Bytes > mergeBytes || !precedesGap(b, gaps):
		case !b.Inline:
			names = append(names, store.BlockName{User: token, ID: b.ID})
		default:
			err := f.store.Users.ReadInline(ctx, appID, []string{token}, func(_ string, cell []byte) error {
				mergeable[b.ID], _ = history.ParseInline(b, cell) // a damaged one is found by the next computation
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	if len(names) == 0 {
		return mergeable, nil
	}
	err := f.store.Histories.ReadBlocks(ctx, appID, names, func(name store.BlockName, value []byte) error {
		mergeable[name.ID] = slices.Clone(value)
		return nil
	})
	return mergeable, err
}
