package links

import (
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Copy is what a dump says of the links of a token.
type Copy struct {
	Cell
	// Deleted is the tombstone of the row that the dump was made of.
	Deleted affinity.Tombstone
}

// Needs returns the known users whose rows must list the token, each with the time of their newest evidence.
func (c *Copy) Needs() map[string]int64 {
	all := map[string]int64{}
	for i := range c.Entries {
		if e := &c.Entries[i]; e.State != Void {
			all[e.Known] = max(all[e.Known], e.From)
		}
	}
	if c.OutBy != "" {
		all[c.OutBy] = max(all[c.OutBy], 0)
	}
	return all
}

// same reports whether two entries are by the same evidence.
func (e *Entry) same(o *Entry) bool {
	return e.Known == o.Known && e.From == o.From && e.At == o.At && e.By == o.By
}

// crosses reports whether two entries hold a time that both bound.
func (e *Entry) crosses(o *Entry, anonymous Exclusion) bool {
	if e.State == Void || o.State == Void || e.ended(anonymous) || o.ended(anonymous) {
		return false
	}
	return e.Since < o.To && o.Since < e.To
}

// Restore returns the row of an anonymous token with the entries of a copy that it lacks, whether it has changed, and
// how many entries are left out: those that cross one of the row, that were unlinked here, of a known user whose row
// does not list the token, and those for which there is no room. An entry of the row stays as it is. x is
// what the row excludes.
func (c *Cell) Restore(from Copy, x Exclusion, lists func(known string) bool) (next Cell, changed bool, left int) {
	next = c.changed()
	with := x.With(Exclusion{Tombstone: from.Deleted})
	for i := range from.Entries {
		e := from.Entries[i]
		switch {
		case next.any(e.same):
		case len(next.Entries) >= MaxEntries, next.any(func(o *Entry) bool { return e.crosses(o, with) }),
			e.State == Live && (e.At <= c.UnlinkedUntil(e.Known) || !lists(e.Known)):
			left++
		default:
			e.Done = 0
			next.Entries, changed = append(next.Entries, e), true
		}
	}
	if c.Role == None {
		next.Role, changed = Anonymous, true
	}
	// An opt-out of the token's own is no one else's.
	if from.OutBy != "" && c.OutBy == "" && (x.ReceivedUntil == 0 || x.ReceivedUntil == from.Deleted.ReceivedUntil) {
		next.OutBy, changed = from.OutBy, true
	}
	return next, changed, left
}

func (c *Cell) any(is func(*Entry) bool) bool {
	for i := range c.Entries {
		if is(&c.Entries[i]) {
			return true
		}
	}
	return false
}

// RestoreList returns the row of a known user with the tokens of a copy that its list lacks, in the order of the copy,
// and whether it has changed. Of a token that both list it keeps the newest evidence, and the closing by the limit
// that came after.
func (c *Cell) RestoreList(list []Listed) (next Cell, changed bool) {
	next = c.changed()
	next.Role = Known
	rest, merged := next.List, []Listed(nil)
	for _, l := range list {
		at := slices.IndexFunc(rest, func(o Listed) bool { return o.Token == l.Token })
		switch {
		case at >= 0:
			o := rest[at]
			if o.At = max(o.At, l.At); o.Shut == 0 && l.Shut > o.At {
				o.Shut = l.Shut
			}
			rest, merged = slices.Delete(rest, at, at+1), append(merged, o)
		case len(rest)+len(merged) < MaxEntries:
			merged = append(merged, l)
		}
	}
	next.List = append(merged, rest...)
	return next, c.Role != Known || !slices.Equal(next.List, c.List)
}
