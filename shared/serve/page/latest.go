package page

import (
	"context"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// latest makes a page of the latest order.
func (p *pager) latest(ctx context.Context) error {
	w := p.window
	next := min(p.q.Offset, len(w.all))
	if p.q.Cursor != "" {
		next = p.after(p.walk.Date, p.walk.ObjectID)
	}
	passed := make(map[uint64]bool, len(p.walk.Passed))
	for _, k := range p.walk.Passed {
		passed[k] = true
	}
	var order []int
	for i := range next {
		if passed[w.keys[i]] {
			order = append(order, i)
		}
	}
	most := min(p.q.Limit+p.extra, maxPassed)
	for i := next; i < len(w.all) && len(order) < most; i++ {
		order = append(order, i)
	}
	t, err := p.fill(ctx, order, func(c candidate, r record) bool {
		return p.outside(r) || r.at < c.at // its place comes later
	})
	if err != nil {
		return err
	}
	p.walk.Passed = p.walk.Passed[:0]
	for i, at := range order {
		tried := i < t.n
		if tried && t.slow[at] || !tried && passed[w.keys[at]] {
			p.walk.Passed = append(p.walk.Passed, w.keys[at])
		}
		if tried {
			next = max(next, at+1)
		}
		delete(passed, w.keys[at])
	}
	if !p.complete { // they may be in the next list
		p.walk.Passed = append(p.walk.Passed, slices.Sorted(maps.Keys(passed))...)
	}
	if next == len(w.all) && len(p.walk.Passed) == 0 && p.complete {
		return nil
	}
	if next > 0 {
		p.walk.Date, p.walk.ObjectID = w.all[next-1].at, w.all[next-1].id
	} else if p.q.Cursor == "" {
		p.walk.Date, p.walk.ObjectID = p.walk.Start+1, ""
	}
	p.page.Cursor = p.walk.Cursor()
	return nil
}

// behind reports whether the page comes after all candidates. Only the order says it if it
// leaves some out.
func (p *pager) behind() bool {
	counts := p.q.Order == feed.Latest || p.q.Feed.Seen != ranking.Exclude
	return counts && p.q.Offset > 0 && p.q.Offset >= len(p.window.all)
}

// fromOldest makes a page of the latest order from its end.
func (p *pager) fromOldest(ctx context.Context) error {
	last := len(p.window.all) - 1 - p.q.Offset
	order := make([]int, 0, p.q.Limit)
	for i := last; i >= 0 && len(order) < p.q.Limit; i-- {
		order = append(order, i)
	}
	_, err := p.fill(ctx, order, func(c candidate, r record) bool { return p.outside(r) || r.at < c.at })
	return err
}

// after returns the position of the first candidate behind a place in the order.
func (p *pager) after(date int64, objectID string) int {
	for i, c := range p.window.all {
		if c.at < date || c.at == date && c.id > objectID {
			return i
		}
	}
	return len(p.window.all)
}
