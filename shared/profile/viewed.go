package profile

import (
	"fmt"
	"math"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// The users of an app with purposes for whom not all events and facets count are read event by event.

// keeps reports whether a view, which may be nil, keeps the event of a row that was read with objects.
func keeps(view *consent.View, row store.LogRow) bool {
	if view == nil {
		return true
	}
	o, ok := row.Objects()
	return ok && view.Keeps(o.Type, o.Name, row.Time, row.Receipt())
}

// scoreViewed is score of what counts of a row by a view.
func (r *reading) scoreViewed(u *computation, view *consent.View, row store.LogRow, scorer *store.LogScorer) {
	if r.decoder == nil {
		r.decoder = store.NewLogDecoder()
	}
	e, err := r.decoder.Event(row)
	if err != nil {
		u.fault = fmt.Errorf("compute %s,%s: %w", r.app.ID, u.token, err)
		return
	}
	counts, kept := view.Counts(e, row.Receipt())
	if !kept {
		return
	}
	if u.newest != nil {
		u.addRow(row, view, scorer)
	}
	e.Counts = counts
	r.logScorers[u.token].AddEvent(e)
}

// scoreBlock scores what counts of a block.
func (r *reading) scoreBlock(u *computation, id history.BlockID, value []byte) (n int, err error) {
	if !u.partly(id) {
		return r.blocks.Score(value, u.scorer)
	}
	for e, err := range history.Events(value, r.dictionaries) {
		if err != nil {
			return n, err
		}
		n++
		if counts, kept := u.view.Counts(e, math.MaxInt64); kept {
			e.Counts = counts
			u.scorer.AddEvent(e)
		}
	}
	return n, nil
}

// addViewed is addBlock of a block of which not all counts.
func (r *reading) addViewed(u *computation, to *affinity.Collector[candidate], b *located, value []byte) error {
	ordinal := 0
	for e, err := range history.Events(value, r.dictionaries) {
		if err != nil {
			return err
		}
		counts, kept := u.view.Counts(e, math.MaxInt64)
		if !kept || !to.Wants(e.Time, string(e.Type), e.Name) {
			continue
		}
		id := ""
		if e.Time == b.From.Time {
			id = b.From.ID
		}
		ordinal++
		e.Counts = counts
		to.Add(e.Time, id, ordinal, candidate{event: detach(e), block: b})
	}
	return nil
}
