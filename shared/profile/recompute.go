package profile

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// RecomputeOptions say what a recompute does with each user.
type RecomputeOptions struct {
	// OnlyStale leaves profiles alone that can be served as they are.
	OnlyStale bool
	// Maintain makes it the nightly round: histories are folded, trimmed, and blocks
	// that nothing names removed.
	Maintain bool
	// Discard computes and stores nothing.
	Discard bool
	// Until is when no further users are begun. Zero: never.
	Until time.Time
}

// Progress is what a recompute has done of its part.
type Progress struct {
	Next string // From of what is left
	Done bool   // nothing is left

	Users   int64 // users seen
	Known   int64 // of those, users with an event in the window
	Events  int64 // events read to compute them, scored or not
	Written int64 // profiles stored
	Folded  int64 // histories folded
}

func (p *Progress) add(q Progress) {
	p.Users += q.Users
	p.Known += q.Known
	p.Events += q.Events
	p.Written += q.Written
	p.Folded += q.Folded
}

// Recompute computes the profiles of a part of an app's users, each from his
// row, his blocks and what lies outside them, read in that order, and stores
// them at the tickets of the rows, so that none hides a refresh that began
// later. Memory is bounded by some hundred users' profiles. progress is called
// after each group of users, in order; an error of it ends the recompute. At
// least one group is done, whatever Until says.
func (e *Engine) Recompute(ctx context.Context, app config.App, part store.Range, o RecomputeOptions, progress func(Progress) error) (Progress, error) {
	b := newBulk(e, app, o)
	ctx, stop := context.WithCancel(ctx)
	defer b.running.Wait()
	defer stop()
	total, from, more := Progress{Next: part.From}, part.From, true
	var groups []*group // under way, in order
	for {
		for more && len(groups) < b.depth && (from == part.From || o.Until.IsZero() || e.now().Before(o.Until)) {
			gr, err := b.next(ctx, store.Range{From: from, To: part.To})
			if err != nil {
				return total, err
			}
			from, more = gr.next, !gr.last
			groups = append(groups, gr)
			b.start(ctx, gr)
		}
		if len(groups) == 0 {
			return total, nil
		}
		first := groups[0]
		groups = groups[1:]
		<-first.done
		if first.err != nil {
			return total, first.err
		}
		total.add(first.result)
		total.Next, total.Done = first.next, first.last
		if err := progress(total); err != nil {
			return total, err
		}
	}
}

// Verify counts the users of a part whose stored profile is of another strategy
// version or retention than the app's. Users without a stored profile, or with
// one that is to be computed when read, do not count.
func (e *Engine) Verify(ctx context.Context, app config.App, part store.Range) (int64, error) {
	var stale int64
	err := e.store.ScanUsers(ctx, app.ID, part.From, part.To, 0, store.UserSummary, func(_ string, row store.User) error {
		if len(row.Summary) == 0 {
			return nil
		}
		p, err := affinity.ParseProfile(row.Summary, 0)
		if err != nil || p.StrategyVersion != app.StrategyVersion || p.RetentionDays != app.RetentionDays {
			stale++
		}
		return nil
	})
	return stale, err
}
