// Package links holds what a user row says of the links between the tokens of a person: which
// known user the events of an anonymous token count for, and when. The functions are pure. Package
// profile reads and writes the cell, u:i of the table users, and orders the changes.
//
// A visitor is anonymous until login. The row of their anonymous token holds an Entry for each
// known user who has signed in under it: the truth. The row of a known user lists the tokens that
// may have such entries, so that a computation knows whose rows to read. A token is anonymous or
// known for good, by what it was named as first. So there is no chain of links, and no circle.
package links

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

const (
	// MaxEntries is the number of entries of an anonymous token, and of tokens of a known user.
	MaxEntries = 20
	// MaxOpen is the number of tokens that are open at a known user by recent evidence, and of
	// known users whom an anonymous token may meet in that time.
	MaxOpen = 5
	// recent (ms) is the time in which MaxOpen counts.
	recent = 30 * 24 * int64(time.Hour/time.Millisecond)
	// Open is the end of an interval that has none yet.
	Open int64 = math.MaxInt64
)

// Role is what a token has been named as.
type Role byte

// A token has no role until an event or a request names it beside another one.
const (
	None Role = iota
	Anonymous
	Known
)

var roles = [...]string{"none", "anonymous", "known"}

// String returns the name of a role in answers.
func (r Role) String() string {
	if int(r) < len(roles) {
		return roles[r]
	}
	return fmt.Sprintf("role %d", byte(r))
}

// State is what has become of an entry.
type State byte

// The events of the interval of a Live entry count for the known user. Those of a Void one count
// for the anonymous token alone, as if there had never been a link. Those of a Dead one that the
// known user's deletion covers count for nobody.
const (
	Live State = iota
	Void
	Dead
)

// Source is where evidence came from.
type Source byte

// The sources of evidence.
const (
	FromEvent   Source = iota // an event with both tokens
	FromRequest               // a request of an admin
	FromCall                  // a call of an SDK that says who has signed in
)

// Entry is an interval of an anonymous token that a known user's login has opened.
type Entry struct {
	Known string // the known token
	// Since and To bound the times of the events (ms): since <= time < to. To is Open until a
	// change closes the interval. Since is fixed when the link is made.
	Since, To int64
	// From and At are the time and the receipt of the evidence (ms).
	From, At int64
	Source   Source
	By       string // the ID of the event, the reason of the request, or the messageId of the call
	Weak     bool   // the evidence came with a public key
	Key      string // the ID of the key, in hexadecimal digits; of a request none
	Limited  bool   // closed because the known user had too many tokens
	State    State
	// Until is, of a Void entry, the receipt up to which evidence links no more, and, of a Dead
	// one, the known user's tombstone.
	Until affinity.Tombstone
	// Was is the end of the interval of a Dead entry before the deletion closed it.
	Was int64
	// Done is the fingerprint of the entry, and of what its row excludes, when the known user was
	// last marked for it; of a Dead entry, the anonymous token itself. Anything else means that a
	// stored profile may not know of the change.
	Done uint64
}

// Listed is a token that a known user's row lists.
type Listed struct {
	Token string
	At    int64 // the time of its newest evidence (ms)
	// Shut is the time (ms) at which the limit closes the token's open entry; 0: it does not.
	Shut int64
}

// Cell is what a user row says of links. The zero Cell is that of a row without one.
type Cell struct {
	Role    Role
	Number  int64    // of changes: no two values of the cell are equal
	Entries []Entry  // of an anonymous token, by From
	List    []Listed // of a known one, in the order in which they were first linked
	// OutBy is the known user whose opt-out has taken the anonymous token along; "": none has.
	OutBy string
}

// Exclusion is what a user row excludes: the user's deletions and opt-out.
type Exclusion struct {
	affinity.Tombstone
	OptedOut event.Types
	// Consents are those of the row. They end no link: who reads the events looks at them.
	Consents string
}

// gone reports whether the user has opted out of everything.
func (x Exclusion) gone() bool { return x.OptedOut&event.AllTypes == event.AllTypes }

// With returns the exclusion of what either excludes.
func (x Exclusion) With(o Exclusion) Exclusion {
	x.DeletedUntil, x.ReceivedUntil = max(x.DeletedUntil, o.DeletedUntil), max(x.ReceivedUntil, o.ReceivedUntil)
	x.OptedOut |= o.OptedOut
	return x
}

// holds reports whether the interval holds a time.
func (e *Entry) holds(time int64) bool { return e.Since <= time && time < e.To }

// Counts reports whether the events of the interval count for the known user, by what the rows of
// both tokens exclude: a user who was deleted, or has opted out, after the evidence was received has
// ended the link.
func (e *Entry) Counts(anonymous, known Exclusion) bool {
	return e.State == Live && e.At > anonymous.ReceivedUntil && e.At > known.ReceivedUntil &&
		!anonymous.gone() && !known.gone()
}

// ended reports whether a deletion or an opt-out of the anonymous token has ended a link.
func (e *Entry) ended(anonymous Exclusion) bool {
	return e.State == Live && e.At <= anonymous.ReceivedUntil
}

// Dropped reports whether an event of the token is deleted because a known user was, whose
// interval held it.
func (c *Cell) Dropped(time, receipt int64) bool {
	_, dropped := c.DroppedBy(time, receipt)
	return dropped
}

// DroppedBy is Dropped, and returns the known user's tombstone.
func (c *Cell) DroppedBy(time, receipt int64) (affinity.Tombstone, bool) {
	for i := range c.Entries {
		if e := &c.Entries[i]; e.drops(time, receipt) {
			return e.Until, true
		}
	}
	return affinity.Tombstone{}, false
}

func (e *Entry) drops(time, receipt int64) bool {
	return e.State == Dead && e.Since <= time && time < e.Was && e.Until.Covers(time, receipt)
}

// DeadRange is a stretch of an anonymous token's log in which events may be deleted because a
// known user was: from <= time < to.
type DeadRange struct{ From, To int64 }

// DeadRanges returns those of the token.
func (c *Cell) DeadRanges() []DeadRange {
	var all []DeadRange
	for i := range c.Entries {
		e := &c.Entries[i]
		if to := min(e.Was, e.Until.Alive()); e.State == Dead && e.Since < to {
			all = append(all, DeadRange{e.Since, to})
		}
	}
	return all
}

// Interval is a stretch of an anonymous token's log that counts for a known user.
type Interval struct{ Since, To int64 }

// Holds reports whether the interval holds a time.
func (i Interval) Holds(time int64) bool { return i.Since <= time && time < i.To }

// Intervals returns the intervals of the token that count for a known user, ascending. until
// bounds the times of the evidence; Open: all evidence counts.
func (c *Cell) Intervals(known string, anonymous, of Exclusion, until int64) []Interval {
	var all []Interval
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Known == known && e.Counts(anonymous, of) && e.From <= until && e.Since < e.To {
			all = append(all, Interval{e.Since, e.To})
		}
	}
	slices.SortFunc(all, func(a, b Interval) int { return cmp.Compare(a.Since, b.Since) })
	return all
}

// fingerprint identifies an entry together with what its row excludes.
func (e *Entry) fingerprint(x Exclusion) uint64 {
	h := fnv.New64a()
	bare := *e
	bare.Done, bare.Weak, bare.Key = 0, false, ""
	h.Write(bare.append(nil))
	fmt.Fprint(h, x.DeletedUntil, x.ReceivedUntil, x.OptedOut, x.Consents)
	return max(h.Sum64(), 1)
}

// undone reports whether a stored profile may not know of a change of the entry.
func (e *Entry) undone(x Exclusion) bool { return e.Done != e.fingerprint(x) }

// Open reports whether an entry is open for a known user, whatever has been deleted.
func (c *Cell) Open(known string) bool {
	return slices.ContainsFunc(c.Entries, func(e Entry) bool {
		return e.Known == known && e.State == Live && e.To == Open
	})
}

// Absorbed reports whether the token is part of another person at the moment: an open entry counts, by what
// the token's own row excludes.
func (c *Cell) Absorbed(anonymous Exclusion) bool {
	return slices.ContainsFunc(c.Entries, func(e Entry) bool { return e.To == Open && e.Counts(anonymous, Exclusion{}) })
}

// SignedIn returns the open entry of an anonymous token if its evidence is strong: that of the user whose profile
// may be served to who holds the token, unless a deletion or an opt-out has ended the link.
func (c *Cell) SignedIn() (Entry, bool) {
	for _, e := range c.Entries {
		if e.State == Live && e.To == Open && !e.Weak {
			return e, true
		}
	}
	return Entry{}, false
}

// Tokens returns the tokens of the list.
func (c *Cell) Tokens() []string {
	tokens := make([]string, len(c.List))
	for i, l := range c.List {
		tokens[i] = l.Token
	}
	return tokens
}

// First returns the token of a known user's first open link, and false if there is none: that which the list has had
// for longest, and which the limit has not shut.
func (c *Cell) First() (string, bool) {
	for _, l := range c.List {
		if l.Shut == 0 {
			return l.Token, true
		}
	}
	return "", false
}

// Newest returns the time of the newest evidence of a known user's links, 0 if there are none.
func (c *Cell) Newest(known string) int64 {
	var newest int64
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Known == known && e.State == Live {
			newest = max(newest, e.From)
		}
	}
	return newest
}

// Lists reports whether the list holds a token, and whether the limit has shut it.
func (c *Cell) Lists(token string) (listed, shut bool) {
	for _, l := range c.List {
		if l.Token == token {
			return true, l.Shut != 0
		}
	}
	return false, false
}
