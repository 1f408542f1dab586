package affinity

import (
	"encoding/binary"
	"math"
	"slices"
)

// Hold is what scorers may hold: values, and bytes of their names.
type Hold struct{ Values, Bytes int }

// InPasses scores a user with any number of values, of which it holds so many at a
// time. pass must add all events of
// the user to a scorer. InPasses calls it once if the values fit. Otherwise it
// calls it for each slice of the values, by hash, and keeps the best of all slices
// so far, without their names. Then it calls pass once more for the values that
// the profile lists.
//
// All scores come from that last pass. If events arrive between the passes, the
// profile may list another value in place of one of the best, as before their
// arrival.
func InPasses(c *Compiled, w Window, h Hold, pass func(*Scorer) error) (*Scorer, error) {
	sc := newHolding(c, w, h, nil)
	if err := pass(sc); err != nil || !sc.Full() {
		return sc, err
	}
	g := gathering{c: c, p: Profile{Anchor: w.Now, Until: math.MaxInt64, HalfLives: c.halfLives}}
	rest := []slice{{0, 2}, {1, 2}, {2, 2}, {3, 2}}
	for len(rest) > 0 {
		s := rest[0]
		rest = rest[1:]
		sc := newHolding(c, w, h, &only{slice: s})
		if s.bits == maxBits {
			sc.held = unlimited
		}
		if err := pass(sc); err != nil {
			return nil, err
		}
		if sc.Full() {
			rest = append(rest, slice{2 * s.prefix, s.bits + 1}, slice{2*s.prefix + 1, s.bits + 1})
			continue
		}
		g.add(sc)
	}
	sc = newHolding(c, w, h, g.chosen())
	sc.held = unlimited // the bounds of the profile bound it
	return sc, pass(sc)
}

func newHolding(c *Compiled, w Window, h Hold, o *only) *Scorer {
	sc := NewScorer(c, w)
	sc.held, sc.only = held{values: h.Values, bytes: h.Bytes}, o
	return sc
}

// slice is a part of all values: those whose hashes begin with a prefix.
type slice struct {
	prefix uint64
	bits   int
}

const maxBits = 32

func (s slice) has(hash uint64) bool { return hash>>(64-s.bits) == s.prefix }

// key is a value of a facet, by its hash. Two values may share one: then a pass
// for the chosen values holds both, and the bounds choose again.
type key struct {
	facet int32
	hash  uint64
}

// only are the values that a scorer holds in one of several passes: a slice, or
// the chosen ones.
type only struct {
	slice
	chosen  map[key]bool
	total   int        // of all values, chosen or not
	leftOut []Affinity // of the choice
	until   int64      // of the choice
}

// has reports whether a value, by its hash, or the value that it is an alias of
// belongs to the pass.
func (o *only) has(facet int32, hash uint64, to string, aliased bool) bool {
	if aliased {
		hash = hashOf(to)
	}
	if o.chosen != nil {
		return o.chosen[key{facet, hash}]
	}
	return o.slice.has(hash)
}

func hashOf(value string) uint64 {
	b := []byte(value)
	return hash(readWords(b, 0, len(b)), b)
}

// gathering keeps the best values of slices.
type gathering struct {
	c     *Compiled
	p     Profile // its affinities have keys in place of values
	total int
}

// add adds the values of a slice.
func (g *gathering) add(sc *Scorer) {
	g.total += sc.values
	for _, r := range sc.ranks() {
		name := sc.tables[r.facet].entries[r.slot].name
		b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), hashOf(name))
		b = binary.BigEndian.AppendUint32(b, uint32(r.facet))
		b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
		g.p.Affinities = append(g.p.Affinities, Affinity{
			Facet: g.c.facets[r.facet], Value: string(b), Scores: slices.Clone(sc.sumsAt(r.facet, r.slot)),
		})
	}
	slices.SortFunc(g.p.Affinities, byRank)
	g.c.bounds.boundFacets(&g.p)
}

// chosen returns the values that the profile lists.
func (g *gathering) chosen() *only {
	g.c.bounds.boundWhole(&g.p, func(a Affinity) int {
		return len(a.Facet) + int(binary.BigEndian.Uint32([]byte(a.Value[12:])))
	})
	o := &only{chosen: make(map[key]bool, len(g.p.Affinities)), total: g.total, leftOut: g.p.LeftOut, until: g.p.Until}
	for _, a := range g.p.Affinities {
		b := []byte(a.Value)
		o.chosen[key{int32(binary.BigEndian.Uint32(b[8:])), binary.BigEndian.Uint64(b)}] = true
	}
	return o
}
