package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// output computes the profiles of a group while the group reads its events and
// blocks.
type output struct {
	*bulkRun
	gr       *group
	scratch  *scratch
	current  *bulkUser // the user whose events or blocks come now
	restarts []*bulkUser
	share    *affinity.Share
	save     *saver
	failed   []*user // faulty
	// builder and decoder are of the packers of new users.
	builder *history.Builder
	decoder *store.LogDecoder
}

// readLog reads ranges of the log, and those of new users, whose events it packs.
func (o *output) readLog(ctx context.Context, ranges, packing []store.UserRange) error {
	log := o.logs.of(o.app)
	if len(ranges) > 0 {
		if err := log.ReadFor(ctx, ranges, o.compiled, o.row(ctx)); err != nil {
			return err
		}
		if err := o.close(ctx); err != nil {
			return err
		}
	}
	if len(packing) == 0 {
		return nil
	}
	if err := log.Read(ctx, packing, o.row(ctx)); err != nil {
		return err
	}
	return o.close(ctx)
}

// row returns the function that scores the next unfolded event. The events of a
// user are successive. For a user who is not stale it only counts the events, for a
// fold. A user whose blocks come later keeps a scorer of their own until then.
func (o *output) row(ctx context.Context) func(string, store.LogRow) error {
	scorer := store.NewLogScorer(o.compiled)
	return func(token string, row store.LogRow) error {
		u := o.gr.byUser[token]
		if u.fault != nil {
			return nil
		}
		u.unfolded++
		switch {
		case !u.stale:
			return nil
		case len(u.missing) == 0 && u != o.current:
			if err := o.close(ctx); err != nil {
				return err
			}
			o.open(u)
		case u.scorer == nil:
			u.scorer = affinity.NewScorer(o.compiled, u.window)
			u.scorer.Hold(o.share)
		}
		if err := scorer.Score(row, u.scorer); err != nil {
			u.fault = fmt.Errorf("compute %s,%s: %w", o.app.ID, token, err)
		} else if u.packs {
			o.pack(ctx, u, row)
		}
		return nil
	}
}

// block returns the function that scores the next block. The blocks of a user are
// successive. It skips blocks that the manifest does not name: their fold has not
// committed, or committed after the group read the row.
func (o *output) block(ctx context.Context) func(store.BlockName, []byte) error {
	return func(name store.BlockName, value []byte) error {
		u := o.gr.byUser[name.User]
		if u == nil || !u.missing[name.ID] {
			return nil
		}
		delete(u.missing, name.ID)
		if u.restart || u.fault != nil {
			return nil
		}
		if u != o.current {
			if err := o.close(ctx); err != nil {
				return err
			}
			o.open(u)
		}
		n, err := o.scratch.blocks.Score(value, u.scorer)
		if errors.Is(err, history.ErrUnread) {
			return err
		}
		if err != nil {
			o.addBadBlock(ctx, o.app.ID, &u.user, name.ID, err)
			u.restart = true
			return nil
		}
		u.events += n
		return nil
	}
}

func (o *output) open(u *bulkUser) {
	o.current = u
	if u.scorer == nil {
		o.scratch.scorer.Reset(u.window)
		o.scratch.scorer.Hold(o.share)
		u.scorer = o.scratch.scorer
	}
}

// close completes the current user.
func (o *output) close(ctx context.Context) error {
	u := o.current
	if u == nil {
		return nil
	}
	if err := o.inline(ctx, u); err != nil {
		return err
	}
	var err error
	if u.fault != nil {
		o.failed = append(o.failed, &u.user)
	} else if u.restart || len(u.missing) > 0 || u.scorer.Full() || u.scorer.Ahead() != 0 {
		u.restart = true
		o.restarts = append(o.restarts, u)
	} else {
		o.packedAll(ctx, u)
		err = o.add(ctx, &u.user, u.scorer, u.events+u.unfolded)
	}
	o.unpack(u)
	u.scorer.Reset(u.window) // gives back its memory
	u.done, u.scorer, o.current = true, nil, nil
	return err
}

// add adds a user's profile to the group. events is the number of events read for
// it.
func (o *output) add(ctx context.Context, u *user, scorer *affinity.Scorer, events int) error {
	o.gr.result.Events += int64(events)
	known := scorer.Outline().Known
	if known {
		o.gr.result.Known++
	}
	o.scratch.buffer = scorer.AppendProfile(o.scratch.buffer[:0], o.app.ScoringVersion)
	if o.options.Discard && o.options.Each == nil {
		return nil
	}
	encoded := slices.Clone(o.scratch.buffer)
	if u.use == consent.None {
		return nil
	}
	if known && o.options.Each != nil {
		o.gr.byUser[u.token].profile = encoded
	}
	if o.options.Discard || u.use != consent.All {
		return nil // it is that of one surface
	}
	return o.save.add(ctx, profileWrite(u, scorer, o.app, encoded))
}

// finish completes the users without blocks and the users whose blocks are missing,
// and writes all profiles.
func (o *output) finish(ctx context.Context) error {
	if err := o.close(ctx); err != nil {
		return err
	}
	for _, u := range o.gr.users {
		if u.fault != nil && u.stale && !u.done {
			o.failed, u.done = append(o.failed, &u.user), true
		}
		if u.fault == nil && u.stale && !u.done {
			o.open(u)
			if err := o.close(ctx); err != nil {
				return err
			}
		}
	}
	if len(o.restarts) > 0 {
		if err := o.save.flush(ctx); err != nil { // the others do not wait
			return err
		}
		if err := o.restart(ctx); err != nil {
			return err
		}
	}
	if err := o.save.flush(ctx); err != nil {
		return err
	}
	o.gr.result.Written += o.save.written
	return o.fail(ctx)
}

// fail hides the profiles of faulty users, which nobody may serve any more, and
// counts the users.
func (o *output) fail(ctx context.Context) error {
	for _, u := range o.failed {
		o.logFault(ctx, o.app.ID, u.token, u.fault)
		o.save.faults.add(u.token, u.fault)
	}
	o.gr.result.Faulty, o.gr.result.Faults = o.save.faults.count, o.save.faults.names
	if o.options.Discard || len(o.failed) == 0 {
		return nil
	}
	return o.hide(ctx, o.app.ID, o.app.ScoringVersion, o.failed...)
}

// restart reads again the rows of users whose blocks are missing or damaged, who have
// too many values for the memory of all, or events later than now, and computes their
// profiles, and those of users whose log must be sifted.
func (o *output) restart(ctx context.Context) error {
	computations, reread := make([]*computation, len(o.restarts)), o.rereader(o.app.ID)
	for i, u := range o.restarts {
		computations[i] = &computation{user: &u.user}
		if !u.restart {
			continue // nothing was read since the row
		}
		err := reread(ctx, &u.user)
		if errors.Is(err, ErrManifest) {
			u.fault, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	w := work{o.app, o.compiled, forScores, o.share, reread, o.limits.bulkPatience}
	err := o.computer.compute(ctx, w, computations, func(some []*computation) error {
		for _, c := range some {
			if err := o.add(ctx, c.user, c.scorer, c.events+c.unfolded+c.banded); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range computations {
		o.restarts[i].unfolded = c.unfolded // for the fold that follows
		if c.fault != nil {
			o.failed = append(o.failed, c.user)
		}
	}
	return nil
}
