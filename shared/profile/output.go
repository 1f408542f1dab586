package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// output turns a group's events and blocks, as they pass, into its profiles.
type output struct {
	*bulk
	gr      *group
	scratch *scratch
	current *work // who is passing, in the scratch scorer or one of his own
	again   []*work
	writes  []store.ProfileWrite
}

// await names a block that is to come.
func (w *work) await(id history.BlockID) {
	if w.missing == nil {
		w.missing = map[history.BlockID]bool{}
	}
	w.missing[id] = true
}

// row takes the next event outside the blocks: those of one user follow each
// other. Of users who are not to be computed they are only counted, for a fold. A
// user whose blocks are still to come needs a scorer of his own until then.
func (o *output) row() func(string, store.LogRow) error {
	scorer := store.NewLogScorer(o.c)
	return func(user string, row store.LogRow) error {
		w := o.gr.byUser[user]
		w.loose++
		switch {
		case !w.stale:
			return nil
		case len(w.missing) == 0 && w != o.current:
			o.close()
			o.open(w)
		case w.scorer == nil:
			w.scorer = affinity.NewScorer(o.c, w.window)
		}
		return scorer.Score(row, w.scorer)
	}
}

// block takes the next block: those of one user follow each other. Blocks that
// the user's manifest does not name belong to folds that did not commit, or to
// one that came after the row was read.
func (o *output) block(ctx context.Context) func(store.BlockName, []byte) error {
	return func(name store.BlockName, value []byte) error {
		w := o.gr.byUser[name.User]
		if w == nil || !w.missing[name.ID] {
			return nil
		}
		delete(w.missing, name.ID)
		if w.restart {
			return nil
		}
		if w != o.current {
			o.close()
			o.open(w)
		}
		n, err := o.scratch.reader.Score(value, w.scorer)
		if err != nil {
			o.e.corrupt(ctx, o.app.ID, w, name.ID, err)
			w.restart = true
			return nil
		}
		w.events += n
		return nil
	}
}

func (o *output) open(w *work) {
	o.current = w
	if w.scorer == nil {
		o.scratch.scorer.Reset(w.window)
		w.scorer = o.scratch.scorer
	}
}

// close ends the user who has passed.
func (o *output) close() {
	w := o.current
	if w == nil {
		return
	}
	if w.restart || len(w.missing) > 0 {
		w.restart = true
		o.again = append(o.again, w)
	} else {
		o.profile(w)
	}
	w.done, w.scorer, o.current = true, nil, nil
}

// profile adds a user's profile to what is to be written.
func (o *output) profile(w *work) {
	o.gr.result.Events += int64(w.events + w.loose)
	if w.scorer.Outline().Known {
		o.gr.result.Known++
	}
	o.scratch.buffer = w.scorer.AppendProfile(o.scratch.buffer[:0], o.app.StrategyVersion)
	if !o.options.Discard {
		o.writes = append(o.writes, write(w, o.app, slices.Clone(o.scratch.buffer)))
	}
}

// finish ends users whose blocks did not come or who have none, and writes all
// profiles.
func (o *output) finish(ctx context.Context) error {
	o.close()
	for _, w := range o.gr.works {
		if w.stale && !w.done {
			o.open(w)
			o.close()
		}
	}
	if len(o.again) > 0 {
		if err := o.restart(ctx); err != nil {
			return err
		}
	}
	if len(o.writes) == 0 {
		return nil
	}
	if err := o.e.CheckSchema(ctx, o.app); err != nil {
		return err
	}
	if err := o.e.store.WriteProfiles(ctx, o.app.ID, o.writes); err != nil {
		return err
	}
	o.gr.result.Written += int64(len(o.writes))
	return nil
}

// restart computes users again whose blocks went away or are damaged, each from
// a new row.
func (o *output) restart(ctx context.Context) error {
	for _, w := range o.again {
		row, err := o.e.store.ReadUser(ctx, o.app.ID, w.user)
		if err != nil {
			return err
		}
		if err := o.e.adopt(ctx, o.app.ID, w, row); err != nil {
			return err
		}
	}
	if err := o.e.compute(ctx, o.app, o.c, o.again, false, o.e.rereads(o.app.ID)); err != nil {
		return err
	}
	for _, w := range o.again {
		o.profile(w)
	}
	return nil
}

// write is a user's profile, as it is stored, on its way to his row.
func write(w *work, app config.App, stored []byte) store.ProfileWrite {
	summary := w.scorer.Outline()
	summary.StrategyVersion = app.StrategyVersion
	return store.ProfileWrite{User: w.user, Row: w.row, Version: app.StrategyVersion, Value: stored, Summary: summary.AppendBinary(nil)}
}
