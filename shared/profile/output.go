package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/affinity"
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
	writes   []store.ProfileWrite
}

// row returns the function that scores the next unfolded event. The events of a
// user are successive. For a user who is not stale it only counts the events, for a
// fold. A user whose blocks come later keeps a scorer of their own until then.
func (o *output) row() func(string, store.LogRow) error {
	scorer := store.NewLogScorer(o.compiled)
	return func(token string, row store.LogRow) error {
		u := o.gr.byUser[token]
		u.unfolded++
		switch {
		case !u.stale:
			return nil
		case len(u.missing) == 0 && u != o.current:
			o.close()
			o.open(u)
		case u.scorer == nil:
			u.scorer = affinity.NewScorer(o.compiled, u.window)
		}
		return scorer.Score(row, u.scorer)
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
		if u.restart {
			return nil
		}
		if u != o.current {
			o.close()
			o.open(u)
		}
		n, err := o.scratch.blocks.Score(value, u.scorer)
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
		u.scorer = o.scratch.scorer
	}
}

// close completes the current user.
func (o *output) close() {
	u := o.current
	if u == nil {
		return
	}
	if u.restart || len(u.missing) > 0 {
		u.restart = true
		o.restarts = append(o.restarts, u)
	} else {
		o.add(&u.user, u.scorer, u.events+u.unfolded)
	}
	u.done, u.scorer, o.current = true, nil, nil
}

// add adds a user's profile to the group. events is the number of events read for
// it.
func (o *output) add(u *user, scorer *affinity.Scorer, events int) {
	o.gr.result.Events += int64(events)
	if scorer.Outline().Known {
		o.gr.result.Known++
	}
	o.scratch.buffer = scorer.AppendProfile(o.scratch.buffer[:0], o.app.ScoringVersion)
	if !o.options.Discard {
		o.writes = append(o.writes, profileWrite(u, scorer, o.app, slices.Clone(o.scratch.buffer)))
	}
}

// finish completes the users without blocks and the users whose blocks are missing,
// and writes all profiles.
func (o *output) finish(ctx context.Context) error {
	o.close()
	for _, u := range o.gr.users {
		if u.stale && !u.done {
			o.open(u)
			o.close()
		}
	}
	if len(o.restarts) > 0 {
		if err := o.restart(ctx); err != nil {
			return err
		}
	}
	if len(o.writes) == 0 {
		return nil
	}
	if err := o.logs.check(ctx, o.app); err != nil {
		return err
	}
	if err := o.store.WriteProfiles(ctx, o.app.ID, o.writes); err != nil {
		return err
	}
	o.gr.result.Written += int64(len(o.writes))
	return nil
}

// restart reads again the rows of users whose blocks are missing or damaged, and
// computes their profiles.
func (o *output) restart(ctx context.Context) error {
	computations, reread := make([]*computation, len(o.restarts)), o.rereader(o.app.ID)
	for i, u := range o.restarts {
		computations[i] = &computation{user: &u.user}
		if err := reread(ctx, &u.user); err != nil {
			return err
		}
	}
	if err := o.computer.compute(ctx, o.app, o.compiled, computations, forScores, reread); err != nil {
		return err
	}
	for i, c := range computations {
		o.restarts[i].unfolded = c.unfolded // for the fold that follows
		o.add(c.user, c.scorer, c.events+c.unfolded)
	}
	return nil
}
