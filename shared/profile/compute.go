package profile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
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
	// own is the time (ms) of the newest event that the refresh is for, and ahead that
	// of the newest event that a reading found later than its window. A profile is as of
	// the newest event that it counts: other machines receive events, their clocks may
	// be ahead, and so may those of users.
	own, ahead int64
	sought     bool // a reading since the row was read has looked for events ahead
	// at is the instant of the past that the profile is as of; nil: now.
	at *instant
	persons

	scorer  *affinity.Scorer
	pass    *affinity.Scorer // of a user who is computed alone
	newest  *newest          // nil if nobody needs the session
	session affinity.Session
	counted affinity.Counted
	events  int // read from blocks, scored or not
	missing map[history.BlockID]bool
	restart bool
	done    bool // passed on

	// unfolded is the number of events outside the blocks, without those in the band of
	// the tombstone, which banded counts: no fold takes them. rows holds the unfolded
	// events, in order, for a fold. It is nil if they are too many, or some were left out.
	unfolded int
	banded   int
	rows     []store.LogRow
	rowBytes int
	// mergeable holds the contents of blocks that a fold may merge with the events
	// after them.
	mergeable map[history.BlockID][]byte

	// tail is what the refresh before this one has read, nil if the process does not have
	// it, and first the position of the oldest event that the refresh is for. hit means
	// that the reading used the rows of the tail. whole means that rows and unfolded are
	// all of the log outside the blocks, and blocks holds blocks: the next tail.
	tail   *tail
	first  history.Pos
	hit    bool
	whole  bool
	blocks map[history.BlockID][]byte
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

// write returns the encoded profile, with its session and what it counts, as a write at
// the ticket of the user's row. The last of several passes counts an event that arrived
// after the first with some of its values, so nobody may add to that profile.
func (c *computation) write(app config.App, encoded []byte) store.ProfileWrite {
	w := profileWrite(c.user, c.scorer, app, encoded)
	w.Session = c.session.AppendBinary(nil, encoded)
	if c.pass == nil {
		w.Counted = c.counted.AppendBinary(nil, encoded)
	}
	return w
}

// rowReader reads the row again of a user whose manifest named a block that does
// not exist.
type rowReader func(ctx context.Context, u *user) error

// work is what the computations of some users have in common.
type work struct {
	app      config.App
	compiled *affinity.Compiled
	why      purpose
	share    *affinity.Share
	readRow  rowReader
	// patience is how long a user with very many values waits for others to be
	// computed.
	patience time.Duration
}

// compute scores users, whose rows the caller has read, from blocks and log, and
// passes them to done. Their scorers are valid until done returns. First come the users
// whose values fit in the memory of all: they do not wait for the others, each of whom
// is computed alone. A user who cannot be computed has a fault and is not passed. After
// an error the next call computes the users who have not been passed. done checks the
// schemas of the log, which has been read by then.
func (c *computer) compute(ctx context.Context, w work, all []*computation, done func([]*computation) error) error {
	if err := c.score(ctx, w, all); err != nil {
		return err
	}
	var computed, large []*computation
	for _, u := range all {
		switch {
		case u.fault != nil || u.done:
		case u.scorer.Full():
			large = append(large, u)
		default:
			computed = append(computed, u)
		}
	}
	if err := complete(computed, done); err != nil {
		return err
	}
	for _, u := range all {
		u.release()
	}
	for _, u := range large {
		if err := c.computeSerially(ctx, w, u, done); err != nil {
			return err
		}
	}
	return nil
}

func complete(computed []*computation, done func([]*computation) error) error {
	if len(computed) == 0 {
		return nil
	}
	if err := done(computed); err != nil {
		return err
	}
	for _, u := range computed {
		u.done = true
	}
	return nil
}

// release gives back the memory of the scorer.
func (c *computation) release() {
	if c.scorer != nil {
		c.scorer.Reset(c.window)
		c.scorer = nil
	}
}

// score scores users from blocks and log, as far as their scorers hold them.
func (c *computer) score(ctx context.Context, w work, all []*computation) error {
	all = slices.DeleteFunc(slices.Clone(all), func(u *computation) bool { return u.fault != nil || u.done })
	for range maxRestarts {
		if len(all) == 0 {
			return nil
		}
		if err := c.join(ctx, w.app, all); err != nil {
			return err
		}
		if err := c.readParts(ctx, w, all); err != nil {
			return err
		}
		var rest []*computation
		for _, u := range all {
			if !u.restart || u.fault != nil {
				continue
			}
			c.counters.Restarts.Add(1)
			switch err := c.prepare(ctx, w.app.ID, u, w.readRow); {
			case ofOne(err):
				u.fault = err
			case err != nil:
				return err
			default:
				rest = append(rest, u)
			}
		}
		all = rest
	}
	for _, u := range all {
		u.fault = fmt.Errorf("compute %s,%s: the history changed %d times", w.app.ID, u.token, maxRestarts)
	}
	return nil
}

// prepare prepares a user's next attempt. If another fold has replaced a missing
// block, the row now names another block. If the row still names it, the block is
// lost, and the next attempt reads the log in its place.
func (c *computer) prepare(ctx context.Context, appID string, u *computation, readRow rowReader) error {
	missing := u.missing
	u.joined = u.joined && len(missing) == 0 && !u.lacksBlocks()
	if len(missing) == 0 {
		return nil // a damaged block, which badBlocks holds already, or one of another token
	}
	if err := readRow(ctx, u.user); err != nil {
		return err
	}
	u.sought = false // the new ticket is that of later writers, too
	for _, b := range u.manifest.Blocks {
		if missing[b.ID] {
			c.addBadBlock(ctx, appID, u.user, b.ID, errLost)
		}
	}
	return nil
}
