package consent

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// State is what a user says of a purpose. It is stored, so the numbers must not change.
type State uint8

// The states. A user who was never asked, or takes back the answer, leaves it to the default of the purpose.
const (
	Default State = iota
	Granted
	Withdrawn
)

// Consent is what a user has said of a purpose, by its number.
type Consent struct {
	Purpose uint8
	State   State
	// Since covers the events that do not count for the purpose, although it is granted: those from before the last
	// change between granted and not.
	Since affinity.Tombstone
	// Asked is when the user said so (ms).
	Asked int64
}

// Consents are those of a user, by purpose, ascending. A user who was never asked has none.
type Consents []Consent

// of returns the consent of a purpose.
func (c Consents) of(number uint8) (Consent, int, bool) {
	i, found := slices.BinarySearchFunc(c, number, func(c Consent, n uint8) int { return cmp.Compare(c.Purpose, n) })
	if !found {
		return Consent{Purpose: number}, i, false
	}
	return c[i], i, true
}

// grants reports whether a user grants the purpose.
func (p *Purpose) grants(c Consent) bool {
	return c.State == Granted || c.State == Default && p.Default
}

// Ask returns the consents once a user has granted, true, or withdrawn some purposes, by name. now is the clock, and
// covers what was received until now; asked is when the user said so (ms). changes reports that other events may count
// for a purpose than before. The error, of kind
// fault.Invalid, names a purpose that the app does not have.
func (s Setting) Ask(c Consents, grants map[string]bool, now affinity.Tombstone,
	asked int64) (next Consents, changes bool, err error) {
	states := make(map[uint8]State, len(grants))
	for name, granted := range grants {
		i := slices.IndexFunc(s.Purposes, func(p Purpose) bool { return p.Name == name })
		if i < 0 {
			return c, false, fault.New(fault.Invalid, "the app has no purpose %.100q", name)
		}
		if states[s.Purposes[i].Number] = Withdrawn; granted {
			states[s.Purposes[i].Number] = Granted
		}
	}
	next, changes = s.set(c, states, now, asked)
	return next, changes, nil
}

// Forget returns the consents once a user has taken back all answers.
func (s Setting) Forget(c Consents, now affinity.Tombstone, asked int64) (next Consents, changes bool) {
	states := make(map[uint8]State, len(c))
	for _, one := range c {
		states[one.Purpose] = Default
	}
	return s.set(c, states, now, asked)
}

func (s Setting) set(c Consents, states map[uint8]State, now affinity.Tombstone,
	asked int64) (next Consents, changes bool) {
	for i := range s.Purposes {
		p := &s.Purposes[i]
		one, _, found := c.of(p.Number)
		state, said := states[p.Number]
		if !said {
			if found {
				next = append(next, one)
			}
			continue
		}
		was := p.grants(one)
		one.Asked = max(one.Asked, asked)
		if one.State = state; p.grants(one) != was {
			one.Since, changes = advanced(one.Since, now), true
		}
		next = append(next, one)
	}
	return s.sorted(c, next), changes
}

// sorted adds to next what c says of purposes that are newer than the setting, by number.
func (s Setting) sorted(c, next Consents) Consents {
	for _, one := range c {
		if one.Purpose > s.Last {
			next = append(next, one)
		}
	}
	slices.SortFunc(next, func(a, b Consent) int { return cmp.Compare(a.Purpose, b.Purpose) })
	return next
}

// Says returns what the consents say of the purposes of the app, by name, without those left to the default.
func (s Setting) Says(c Consents) map[string]bool {
	said := map[string]bool{}
	for i := range s.Purposes {
		if one, _, _ := c.of(s.Purposes[i].Number); one.State != Default {
			said[s.Purposes[i].Name] = one.State == Granted
		}
	}
	return said
}

// Grants returns for each purpose of the app whether the user grants it.
func (s Setting) Grants(c Consents) map[string]bool {
	grants := make(map[string]bool, len(s.Purposes))
	for i := range s.Purposes {
		p := &s.Purposes[i]
		one, _, _ := c.of(p.Number)
		grants[p.Name] = p.grants(one)
	}
	return grants
}

// Answer is what a user has said of a purpose.
type Answer struct {
	Name string
	// Granted says whether the purpose is granted, and Asked whether the user has said so. Otherwise that is the default.
	Granted, Asked bool
	// Since is what does not count since the purpose last changed between granted and not; none if it never did.
	Since affinity.Tombstone
}

// Answers returns what a user has said of each purpose of the app, in its order.
func (s Setting) Answers(c Consents) []Answer {
	var answers []Answer
	for i := range s.Purposes {
		p := &s.Purposes[i]
		one, _, _ := c.of(p.Number)
		answers = append(answers, Answer{p.Name, p.grants(one), one.State != Default, one.Since})
	}
	return answers
}

// Same reports whether two consents differ in the times of the answers at most.
func (c Consents) Same(o Consents) bool {
	return slices.EqualFunc(c, o, func(a, b Consent) bool {
		a.Asked, b.Asked = 0, 0
		return a == b
	})
}

const maxAhead = int64(event.MaxAhead / time.Millisecond)

// advanced returns what covers at least what both cover.
func advanced(t, by affinity.Tombstone) affinity.Tombstone {
	t.DeletedUntil = max(t.DeletedUntil, by.DeletedUntil)
	t.ReceivedUntil = min(max(t.ReceivedUntil, by.ReceivedUntil, t.DeletedUntil), t.DeletedUntil+maxAhead)
	return t
}

// Append appends the consents, as the row of a user has them. Nothing stands for none.
func (c Consents) Append(b []byte) []byte {
	if len(c) == 0 {
		return b
	}
	b = append(b, byte(len(c)))
	for _, one := range c {
		b = append(b, one.Purpose, byte(one.State))
		b = binary.AppendUvarint(b, uint64(one.Since.DeletedUntil))
		b = binary.AppendUvarint(b, uint64(one.Since.ReceivedUntil-one.Since.DeletedUntil))
		b = binary.AppendUvarint(b, uint64(one.Asked))
	}
	return b
}

// ErrDamaged reports consents that this version does not read.
var ErrDamaged = errors.New("the consents of the row are damaged, or of a newer version")

// Parse parses what Append has appended. An error means that nobody may take the user for one who was never asked.
func Parse(b []byte) (Consents, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := bytes.NewReader(b[1:])
	c := make(Consents, b[0])
	for i := range c {
		number, err1 := r.ReadByte()
		state, err2 := r.ReadByte()
		deleted, err3 := binary.ReadUvarint(r)
		received, err4 := binary.ReadUvarint(r)
		asked, err5 := binary.ReadUvarint(r)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil || State(state) > Withdrawn ||
			i > 0 && c[i-1].Purpose >= number {
			return nil, ErrDamaged
		}
		c[i] = Consent{number, State(state), affinity.Tombstone{DeletedUntil: int64(deleted),
			ReceivedUntil: int64(deleted + received)}, int64(asked)}
	}
	if len(c) == 0 || r.Len() > 0 {
		return nil, ErrDamaged
	}
	return c, nil
}

// Both returns the consents by which an event counts that both users must allow, for one purpose.
func (s Setting) Both(a, b Consents) Consents {
	if len(a)+len(b) == 0 {
		return nil
	}
	var both Consents
	for i := range s.Purposes {
		p := &s.Purposes[i]
		x, _, _ := a.of(p.Number)
		y, _, _ := b.of(p.Number)
		one := Consent{Purpose: p.Number, State: Withdrawn, Since: advanced(x.Since, y.Since), Asked: max(x.Asked, y.Asked)}
		if p.grants(x) && p.grants(y) {
			one.State = Granted
		}
		both = append(both, one)
	}
	slices.SortFunc(both, func(a, b Consent) int { return cmp.Compare(a.Purpose, b.Purpose) })
	return both
}
