package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// A person is a known user with the anonymous tokens whose events count for them. Their
// computation reads the row of the known user first, then the rows of the tokens that it lists,
// then blocks and logs of all. While the app moves, each row and each log is read where the token is owned. So a
// process that changes a link and marks the known user afterwards finds
// a computation that has read the change, or one whose profile the mark makes invalid.

// member is an anonymous token of a person. Its row excludes what that of the person does, too.
type member struct {
	user
	of        *computation
	intervals []links.Interval
	cell      links.Cell
	// types says that the person has opted out of types that the token has not: its blocks may hold such events.
	types bool
	// apart is the region that owns the token, if that of the person is another one; otherwise nil. Of its log alone the
	// reading takes the token's events: blocks stay with their region.
	apart   *Engine
	missing map[history.BlockID]bool
	// planned are the ranges of the log that the reading takes of the token for this person.
	planned []store.UserRange
}

// persons is what a computation knows of the links of its user.
type persons struct {
	joined  bool // members are those of the user's row
	cell    links.Cell
	members []*member
	before  []*member // of the attempt before
	// planned are the ranges of the user's own log that are read with those of others.
	planned []store.UserRange
}

// apart reports whether the log of the user is read as that of a person is, range by range: events
// of other tokens count, or some of the user's own were deleted with another one's.
func (p *persons) apart() bool { return len(p.members) > 0 || len(p.cell.DeadRanges()) > 0 }

// lacksBlocks reports whether blocks of other tokens were not found.
func (p *persons) lacksBlocks() bool {
	return slices.ContainsFunc(p.members, func(m *member) bool { return len(m.missing) > 0 })
}

// linksOf parses the links of a row.
func linksOf(appID, token string, row store.User) (links.Cell, error) {
	c, err := links.Parse(row.Links)
	if err != nil {
		return c, fmt.Errorf("row of %s,%s: %w", appID, token, err)
	}
	return c, nil
}

// join reads the links of users of an app that has any, and the rows of the tokens that their rows
// list, in one request if the app rests. The rows of the users have been read before.
func (c *computer) join(ctx context.Context, app config.App, all []*computation) error {
	if !app.Identity.On() {
		return nil
	}
	var tokens []string
	for _, u := range all {
		if u.joined || u.fault != nil {
			continue
		}
		if u.cell, u.fault = linksOf(app.ID, u.token, u.row); u.fault == nil && app.Identity.Counts() && !u.row.Gone() {
			tokens = append(tokens, u.cell.Tokens()...)
		}
	}
	var rows map[string]place
	if len(tokens) > 0 {
		var err error
		if rows, err = c.placesOf(ctx, app, tokens, store.UserHistory); err != nil {
			return err
		}
	}
	for _, u := range all {
		if u.joined || u.fault != nil {
			continue
		}
		u.joined, u.before, u.members = true, u.members, nil
		for _, l := range u.cell.List {
			if of, ok := rows[l.Token]; ok && u.fault == nil {
				u.fault = c.addMember(ctx, app, u, l.Token, of)
			}
		}
	}
	return nil
}

// addMember adds a token to a person if any of its events may count for them.
func (c *computer) addMember(ctx context.Context, app config.App, u *computation, token string, from place) error {
	until := links.Open
	if u.at != nil {
		until = u.at.at
	}
	m, err := c.memberOf(ctx, app, u.user, token, from.row, until)
	if m == nil || err != nil {
		return err
	}
	m.of = u
	if from.at != c.engine {
		m.apart = from.at
	}
	for _, old := range u.before {
		if old.token == token {
			c.inherit(ctx, app.ID, m, old)
		}
	}
	u.members = append(u.members, m)
	return nil
}

// memberOf returns a token as a member of the person of a known user, by evidence of times up to
// until. It returns nil if none of its events counts for them.
func (v *env) memberOf(ctx context.Context, app config.App, known *user, token string, row store.User,
	until int64) (*member, error) {
	m := &member{user: user{token: token}}
	var err error
	if m.cell, err = linksOf(app.ID, token, row); err != nil {
		return nil, err
	}
	own, of := exclusionOf(row), exclusionOf(known.row)
	if m.intervals = m.cell.Intervals(known.token, own, of, until); len(m.intervals) == 0 {
		return nil, nil
	}
	m.types = of.OptedOut&^own.OptedOut != 0
	err = v.setRow(ctx, app.ID, &m.user, excluding(row, own.With(of)))
	if app.Purposes.On() {
		m.consents = app.Purposes.Both(m.consents, known.consents)
	}
	return m, err
}

// inherit takes over what an earlier attempt has found of the blocks of a member.
func (c *computer) inherit(ctx context.Context, appID string, m, old *member) {
	m.badBlocks = old.badBlocks
	for _, b := range m.manifest.Blocks {
		if old.missing[b.ID] {
			c.addBadBlock(ctx, appID, &m.user, b.ID, errLost)
		}
	}
}

// cut returns the blocks that may hold events of intervals of time, and the parts of the log that lie
// in them.
func cut(blocks []history.Block, gaps []history.Range, intervals []links.Interval) ([]history.Block, []history.Range) {
	var kept []history.Block
	for _, b := range blocks {
		if slices.ContainsFunc(intervals, func(i links.Interval) bool { return b.From.Time < i.To && i.Since <= b.Newest }) {
			kept = append(kept, b)
		}
	}
	var ranges []history.Range
	for _, g := range gaps {
		for _, i := range intervals {
			part := g
			if from(i).Compare(part.From) > 0 {
				part.From = from(i)
			}
			if to(i).Compare(part.To) < 0 {
				part.To = to(i)
			}
			if part.From.Compare(part.To) < 0 {
				ranges = append(ranges, part)
			}
		}
	}
	slices.SortFunc(ranges, func(a, b history.Range) int { return a.From.Compare(b.From) })
	return kept, ranges
}

func from(i links.Interval) history.Pos { return history.Pos{Time: i.Since} }

func to(i links.Interval) history.Pos {
	if i.To == links.Open {
		return history.End
	}
	return history.Pos{Time: i.To}
}

// spare leaves out the blocks of an anonymous token that may hold events which were deleted with
// a known user: the log takes their place.
func spare(cell *links.Cell, blocks []history.Block, gaps []history.Range) ([]history.Block, []history.Range) {
	dead := cell.DeadRanges()
	if len(dead) == 0 {
		return blocks, gaps
	}
	var kept []history.Block
	for _, b := range blocks {
		if slices.ContainsFunc(dead, func(d links.DeadRange) bool { return b.From.Time < d.To && d.From <= b.Newest }) {
			gaps = append(gaps, b.Range)
		} else {
			kept = append(kept, b)
		}
	}
	slices.SortFunc(gaps, func(a, b history.Range) int { return a.From.Compare(b.From) })
	return kept, gaps
}

// planMembers adds the blocks and log ranges of the other tokens of a person to the reading. It
// returns the blocks, and reports whether there are any ranges.
func (r *reading) planMembers(u *computation) (all []located, logged bool) {
	if u.use == consent.None {
		return nil, false
	}
	for _, m := range u.members {
		m.window, m.missing, m.planned = u.window, map[history.BlockID]bool{}, nil
		t := m.row.Tombstone()
		m.window.DeletedUntil, m.window.ReceivedUntil = t.DeletedUntil, t.ReceivedUntil
		m.setView(r.app)
		blocks, gaps := m.parts()
		if u.at != nil {
			blocks, gaps = u.at.before(blocks, gaps)
		}
		blocks, gaps = m.within(blocks, gaps)
		for _, b := range blocks {
			m.missing[b.ID] = true
			if !b.Inline {
				r.names = append(r.names, store.BlockName{User: m.token, ID: b.ID})
			}
		}
		for _, g := range gaps {
			m.planned = append(m.planned, store.UserRange{User: m.token, From: g.From, To: g.To})
		}
		if len(blocks)+len(gaps) == 0 {
			continue
		}
		if r.members == nil {
			r.members, r.elsewhere = map[string][]*member{}, map[*Engine][]store.UserRange{}
		}
		r.members[m.token] = append(r.members[m.token], m)
		if m.apart == nil {
			r.sifted = append(r.sifted, m.planned...)
		} else {
			r.elsewhere[m.apart] = append(r.elsewhere[m.apart], m.planned...)
		}
		located := locate(&m.user, m.missing, blocks)
		for i := range located {
			located[i].intervals = m.intervals
		}
		all, logged = append(all, located...), logged || len(gaps) > 0
	}
	return all, logged
}

// within returns the blocks whose events of the intervals count for the person, and the ranges of the log that
// hold the others, of the parts of the token's log.
func (m *member) within(blocks []history.Block, gaps []history.Range) ([]history.Block, []history.Range) {
	if m.types || m.view != nil || m.apart != nil {
		for _, b := range blocks {
			gaps = append(gaps, b.Range)
		}
		blocks = nil
	}
	blocks, gaps = spare(&m.cell, blocks, gaps)
	blocks, gaps = cut(blocks, gaps, m.intervals)
	if band, ok := m.band(); ok {
		_, parts := cut(nil, []history.Range{{From: band.From, To: band.To}}, m.intervals)
		gaps = append(gaps, parts...)
	}
	return blocks, gaps
}

// sift adds a range of a user's own log whose events may be excluded to the reading.
func (r *reading) sift(u *computation, part store.UserRange) {
	r.sifted = append(r.sifted, part)
	if r.app.Identity.On() {
		u.planned = append(u.planned, part)
	}
}

// merged returns ranges of logs without overlaps: two persons, or a token and its person, may read
// the same stretch.
func merged(ranges []store.UserRange) []store.UserRange {
	slices.SortFunc(ranges, func(a, b store.UserRange) int {
		return cmp.Or(cmp.Compare(a.User, b.User), a.From.Compare(b.From))
	})
	var all []store.UserRange
	for _, next := range ranges {
		if n := len(all) - 1; n >= 0 && all[n].User == next.User && next.From.Compare(all[n].To) <= 0 {
			if all[n].To.Compare(next.To) < 0 {
				all[n].To = next.To
			}
			continue
		}
		all = append(all, next)
	}
	return all
}

// distinctBlocks returns each block once.
func distinctBlocks(names []store.BlockName) []store.BlockName {
	seen := make(map[store.BlockName]bool, len(names))
	return slices.DeleteFunc(names, func(name store.BlockName) bool {
		was := seen[name]
		seen[name] = true
		return was
	})
}

func within(ranges []store.UserRange, at history.Pos) bool {
	return slices.ContainsFunc(ranges, func(r store.UserRange) bool {
		return r.From.Compare(at) <= 0 && at.Compare(r.To) < 0
	})
}

// scoreShared adds a row of the log in the region of the engine at, nil: that of the reading, to each user for whom the
// reading takes it.
func (r *reading) scoreShared(at *Engine, token string, row store.LogRow, scorer *store.LogScorer) {
	u := r.byUser[token]
	if at == nil && u != nil && within(u.planned, row.Pos) && !u.cell.Dropped(row.Time, row.Receipt()) {
		r.scoreSifted(u, row, scorer)
	}
	for _, m := range r.members[token] {
		if m.apart == at && m.of.fault == nil && within(m.planned, row.Pos) && !row.Excluded(m.row) &&
			!m.cell.Dropped(row.Time, row.Receipt()) {
			m.of.banded++ // no fold of the person takes it
			if m.view != nil {
				r.scoreViewed(m.of, m.view, row, scorer)
			} else {
				r.score(m.of, row, scorer)
			}
		}
	}
}

// takeShared scores a block for each user for whom the reading takes it.
func (r *reading) takeShared(ctx context.Context, name store.BlockName, value []byte) error {
	if u := r.byUser[name.User]; u != nil && u.missing[name.ID] {
		if err := r.takeBlock(ctx, u, name.ID, value, nil); err != nil {
			return err
		}
	}
	for _, m := range r.members[name.User] {
		if !m.missing[name.ID] {
			continue
		}
		if err := r.takeOfMember(ctx, m, name.ID, value, nil); err != nil {
			return err
		}
	}
	return nil
}

// takeOfMember is takeBlock of a block of another token.
func (r *reading) takeOfMember(ctx context.Context, m *member, id history.BlockID, value []byte, damage error) error {
	delete(m.missing, id)
	u := m.of
	if u.restart {
		return nil
	}
	n, err := 0, damage
	for _, i := range m.intervals {
		if err == nil {
			n, err = r.blocks.ScoreBetween(value, u.scorer, i.Since, i.To)
		}
	}
	if err == nil && u.newest != nil {
		err = r.searchBlock(u, store.BlockName{User: m.token, ID: id}, value)
	}
	switch {
	case errors.Is(err, history.ErrUnread):
		return err
	case err != nil:
		r.addBadBlock(ctx, r.app.ID, &m.user, id, err)
		u.restart = true
	}
	u.events += n
	return nil
}

// addInlineOfMembers scores the inline blocks of other tokens, which came with their rows.
func (r *reading) addInlineOfMembers(ctx context.Context) error {
	for _, of := range r.members {
		for _, m := range of {
			b, named := m.usable().Inline()
			if !named || !m.missing[b.ID] {
				continue
			}
			block, err := history.ParseInline(b, m.row.Inline)
			if errors.Is(err, history.ErrOtherBlock) {
				continue
			}
			if err := r.takeOfMember(ctx, m, b.ID, block, err); err != nil {
				return err
			}
		}
	}
	return nil
}
