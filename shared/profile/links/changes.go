package links

import (
	"cmp"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Evidence says that the person of a known token has used an anonymous one.
type Evidence struct {
	Known         string
	Time, Receipt int64 // of the event or the request (ms)
	Source        Source
	By            string
	Weak          bool
	Key           string // the ID of the key that it came with; of a request none
}

// Reason is why evidence makes no link. The API answers with these words.
type Reason string

// The reasons that rows give. The others are of what the tokens or the keys are.
const (
	TokenIsKnown    Reason = "userTokenIsKnown"
	UserIsAnonymous Reason = "authenticatedUserTokenIsAnonymous"
	TooLate         Reason = "late"
	Unlinked        Reason = "unlinked"
	Deleted         Reason = "deleted"
	OptedOut        Reason = "optedOut"
	Shared          Reason = "shared"
	Limit           Reason = "limit"
	WeakKey         Reason = "weak"
	BadValue        Reason = "value"
)

// NamesNobody reports whether a token stands for no person, so that to link it would make one person of
// many: what event.NamesNobody says, in any case and spacing, and -1.
func NamesNobody(token string) bool {
	token = strings.TrimSpace(token)
	return token == "-1" || event.NamesNobody(token)
}

// Asks reports whether evidence asks the row of an anonymous token for another entry, or, with
// a reason, that the row refuses it. Evidence that an entry satisfies asks for nothing, and has no reason.
// known is what the known user's row excludes; the zero Exclusion before it has been read.
func (c *Cell) Asks(e Evidence, anonymous, known Exclusion) (bool, Reason) {
	if c.Role == Known {
		return false, TokenIsKnown
	}
	met := map[string]bool{}
	var boundary int64
	for i := range c.Entries {
		x := &c.Entries[i]
		switch {
		case x.Known == e.Known && x.Counts(anonymous, known) && x.holds(e.Time):
			return false, ""
		case x.State == Void && x.Known == e.Known && e.Receipt <= x.Until.ReceivedUntil:
			return false, Unlinked
		case x.State == Void || x.ended(anonymous):
			continue
		}
		if boundary = max(boundary, x.From); x.To != Open {
			boundary = max(boundary, x.To)
		}
		if x.Known != e.Known && x.From > e.Time-recent {
			met[x.Known] = true
		}
	}
	switch {
	case e.Time < boundary:
		return false, TooLate
	case len(met) >= MaxOpen:
		return false, Shared
	case len(c.Entries) >= MaxEntries:
		return false, Limit
	}
	return true, ""
}

// Strengthen returns the row whose entry that satisfies strong evidence is strong, and whether it has
// changed. Nobody need be marked: what counts is the same.
func (c *Cell) Strengthen(e Evidence, anonymous Exclusion) (Cell, bool) {
	next, found := c.changed(), false
	for i := range next.Entries {
		x := &next.Entries[i]
		if !e.Weak && x.Weak && x.Known == e.Known && x.Counts(anonymous, Exclusion{}) && x.holds(e.Time) {
			x.Weak, x.Key, found = false, e.Key, true
		}
	}
	return next, found
}

// Admits reports why the row of a known user refuses evidence of a token, "" if it does not. of is
// what the row excludes.
func (c *Cell) Admits(token string, e Evidence, of Exclusion) Reason {
	listed, _ := c.Lists(token)
	switch {
	case c.Role == Anonymous:
		return UserIsAnonymous
	case of.gone():
		return OptedOut
	case of.Covers(e.Time, e.Receipt):
		return Deleted
	case !listed && len(c.List) >= MaxEntries:
		return Limit
	}
	if open := c.openAt(token, e.Time); len(open) >= MaxOpen && open[0].At > e.Time {
		return Limit // the new one would be the oldest
	}
	return ""
}

// openAt returns the other tokens that are linked by evidence of the time before an instant,
// the one of the oldest evidence first.
func (c *Cell) openAt(token string, time int64) []Listed {
	var open []Listed
	for _, l := range c.List {
		if l.Token != token && l.Shut == 0 && l.At > time-recent {
			open = append(open, l)
		}
	}
	slices.SortFunc(open, func(a, b Listed) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Token, b.Token)) })
	return open
}

// Lacks reports whether the list must change before a token is linked by evidence.
func (c *Cell) Lacks(token string, e Evidence) bool {
	for _, l := range c.List {
		if l.Token == token {
			return c.Role != Known || l.Shut != 0 || l.At <= e.Time-recent
		}
	}
	return true
}

// Admit returns the row of a known user that lists a token by evidence. Tokens beyond the limit
// are shut at the time of the evidence.
func (c *Cell) Admit(token string, e Evidence) Cell {
	next := c.changed()
	next.Role = Known
	open := next.openAt(token, e.Time)
	for i := range next.List {
		if over := len(open) - MaxOpen + 1; over > 0 && slices.Contains(open[:over], next.List[i]) {
			next.List[i].Shut = e.Time
		}
	}
	listed := Listed{Token: token, At: e.Time}
	if at := slices.IndexFunc(next.List, func(l Listed) bool { return l.Token == token }); at >= 0 {
		next.List[at] = listed
		return next
	}
	next.List = append(next.List, listed)
	return next
}

// ShutSince returns the tokens of the list that the limit has closed since an earlier form of the row.
func (c *Cell) ShutSince(before Cell) []Listed {
	var all []Listed
	for _, l := range c.List {
		if _, was := before.Lists(l.Token); l.Shut != 0 && !was {
			all = append(all, l)
		}
	}
	return all
}

// Relist returns the row of a known user that lists a token again, which a computation would not read.
func (c *Cell) Relist(token string, at int64) Cell {
	next := c.changed()
	next.Role = Known
	next.List = append(next.List, Listed{Token: token, At: at})
	return next
}

// Unlist returns the row without a token.
func (c *Cell) Unlist(token string) Cell {
	next := c.changed()
	next.List = slices.DeleteFunc(next.List, func(l Listed) bool { return l.Token == token })
	return next
}

// changed returns a copy with the next number.
func (c *Cell) changed() Cell {
	next := *c
	next.Number++
	next.Entries, next.List = slices.Clone(c.Entries), slices.Clone(c.List)
	return next
}

// Link returns the row of an anonymous token with the entry that evidence asks for. An open entry
// ends at the time of the evidence. The new one begins at most lookback (ms) earlier, and not
// before the end of another.
func (c *Cell) Link(e Evidence, anonymous, known Exclusion, lookback int64) Cell {
	next := c.changed()
	next.Role = Anonymous
	since := max(0, e.Time-lookback)
	for i := range next.Entries {
		x := &next.Entries[i]
		if x.State == Void {
			continue
		}
		if x.ended(anonymous) {
			if x.To == Open { // nothing counts by it; it must not seem open
				x.To, x.Done = max(x.Since, e.Time), 0
			}
			continue
		}
		if x.To == Open {
			x.To, x.Done = e.Time, 0
			if x.Known == e.Known && x.State == Live { // from before a deletion: what it counted is gone
				x.To = max(x.Since, min(known.DeletedUntil+1, e.Time))
			}
		}
		since = max(since, x.To)
	}
	next.Entries = append(next.Entries, Entry{
		Known: e.Known, Since: since, To: Open, Was: Open, From: e.Time, At: e.Receipt, Source: e.Source, By: e.By,
		Weak: e.Weak, Key: e.Key,
	})
	return next
}

// Shut returns the row whose open entry ends at a time, and whether there is one. known is whose
// entry it must be, "" for any.
func (c *Cell) Shut(known string, at int64) (Cell, bool) {
	next, found := c.changed(), false
	for i := range next.Entries {
		x := &next.Entries[i]
		if x.State == Live && x.To == Open && (known == "" || x.Known == known) {
			x.To, x.Done, x.Limited, found = max(x.Since, at), 0, true, true
		}
	}
	return next, found
}

// Unlink returns the row whose entries of a known user count for the anonymous token alone, and
// whether it has changed. Evidence received until received (ms) links no more.
func (c *Cell) Unlink(known string, received int64) (Cell, bool) {
	next, found := c.changed(), false
	for i := range next.Entries {
		x := &next.Entries[i]
		if x.Known == known && x.State == Live {
			x.State, x.Done, found = Void, 0, true
			x.Until = affinity.Tombstone{DeletedUntil: received, ReceivedUntil: received}
		}
	}
	return next, found
}

// UnlinkedUntil returns the receipt (ms) up to which evidence of a known user links no more, 0 if
// nobody has unlinked them.
func (c *Cell) UnlinkedUntil(known string) int64 {
	var until int64
	for i := range c.Entries {
		if x := &c.Entries[i]; x.Known == known && x.State == Void {
			until = max(until, x.Until.ReceivedUntil)
		}
	}
	return until
}

// Kill returns the row whose entries of a known user, who was deleted, are dead, and whether it has
// changed: those by evidence that the deletion covers. An entry that a deletion of the anonymous token
// has ended before is left: the events since are the token's own.
func (c *Cell) Kill(known string, t affinity.Tombstone, anonymous Exclusion) (Cell, bool) {
	next, found := c.changed(), false
	for i := range next.Entries {
		x := &next.Entries[i]
		if x.Known == known && x.State == Live && x.At <= t.ReceivedUntil && x.At > anonymous.ReceivedUntil {
			x.State, x.Done, x.Until, x.Was, found = Dead, 0, t, x.To, true
			x.To = max(x.Since, min(x.To, t.DeletedUntil+1))
		}
	}
	return next, found
}

// Along returns the row of a token that a change of the opt-out of a known user takes along, to these types, and
// whether it does: out, if all entries that have not ended are theirs, and in, if their opt-out has taken
// it along. anonymous is what the token's row excludes.
func (c *Cell) Along(known string, types event.Types, anonymous Exclusion) (Cell, bool) {
	next := c.changed()
	if next.OutBy = known; types == 0 {
		next.OutBy = ""
	}
	if c.OutBy == known {
		return next, anonymous.OptedOut != types
	}
	named := false
	for i := range c.Entries {
		e := &c.Entries[i]
		switch {
		case e.State == Void || e.ended(anonymous):
		case e.Known != known:
			return *c, false
		default:
			named = named || e.State == Live
		}
	}
	return next, named && types != 0 && anonymous.OptedOut == 0
}

// OptedApart returns the row of a token that has opted out, or in, by itself, and whether it has changed.
func (c *Cell) OptedApart() (Cell, bool) {
	next := c.changed()
	next.OutBy = ""
	return next, c.OutBy != ""
}

// Owed is a known user of whom an entry has changed since they were last marked. Of Dead ones the
// anonymous token itself must be marked.
type Owed struct {
	Known string
	Dead  bool
}

// Owes returns whom changes of the row concern that nobody has been marked for. x is what the row excludes.
func (c *Cell) Owes(x Exclusion) []Owed {
	var all []Owed
	for i := range c.Entries {
		e := &c.Entries[i]
		if o := (Owed{e.Known, e.State == Dead}); e.undone(x) && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// Owing reports whether a known user must be marked for an entry that is not dead.
func (c *Cell) Owing(known string, x Exclusion) bool {
	return slices.Contains(c.Owes(x), Owed{known, false})
}

// Pay returns the row after a mark for what c shows, and whether it has changed.
func (c *Cell) Pay(o Owed, x Exclusion) (Cell, bool) {
	next, found := c.changed(), false
	for i := range next.Entries {
		e := &next.Entries[i]
		if e.Known == o.Known && (e.State == Dead) == o.Dead && e.undone(x) {
			e.Done, found = e.fingerprint(x), true
		}
	}
	return next, found
}

// Holders returns the known users for whom an event of the token at a time counts, as far as the row
// tells: at most one.
func (c *Cell) Holders(time int64, x Exclusion) []string {
	var all []string
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Counts(x, Exclusion{}) && e.holds(time) {
			all = append(all, e.Known)
		}
	}
	return all
}

// Trim returns the row without the entries that nobody needs, and whether it has changed: paid ones
// whose interval ended before from (ms), undone links whose evidence can no longer be delivered again,
// because it was received before replayed (ms), and links that a deletion of the token has ended.
func (c *Cell) Trim(x Exclusion, from, replayed int64) (Cell, bool) {
	next := c.changed()
	next.Entries = slices.DeleteFunc(next.Entries, func(e Entry) bool {
		if e.undone(x) {
			return false
		}
		switch e.State {
		case Void:
			return e.Until.ReceivedUntil < replayed
		case Dead:
			return min(e.Was, e.Until.Alive()) <= from
		}
		return e.To <= from || e.At <= x.ReceivedUntil && x.DeletedUntil != 0
	})
	return next, len(next.Entries) < len(c.Entries)
}

// Spent reports whether no entry of the token names a known user as a link, or owes a mark, and their opt-out has not
// taken it along: their list need not name it. x is what the token's row excludes.
func (c *Cell) Spent(known string, x Exclusion) bool {
	return c.OutBy != known && !slices.ContainsFunc(c.Entries, func(e Entry) bool {
		return e.Known == known && (e.State == Live || e.undone(x))
	})
}
