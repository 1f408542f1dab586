package affinity

import (
	"encoding/binary"
	"math"

	"github.com/affinityengine/affinity/shared/wire"
)

// AppendProfile appends to dst the stored form of the profile of the events so
// far, with this strategy version. The bytes equal those of Profile and
// AppendBinary; AppendProfile only avoids building the Profile, unless it lists
// fewer values than it counts.
func (sc *Scorer) AppendProfile(dst []byte, version int64) []byte {
	ranks := sc.ranks()
	if len(ranks) < sc.values || sc.only != nil || !sc.c.bounds.fit(sc.values, sc.bytes) {
		p := sc.Profile()
		p.StrategyVersion = version
		return p.AppendBinary(dst)
	}
	start := len(dst)
	p := sc.Outline()
	p.StrategyVersion = version
	if bounded(p.format()) {
		p.Total = sc.values // the header holds it
	}
	dst = p.appendHeader(dst)
	dst = sc.appendRanks(dst, ranks)
	sum := wire.Checksum(dst[start+headerSize:])
	binary.LittleEndian.PutUint32(dst[start+1:], sum)
	return dst
}

func (sc *Scorer) appendRanks(dst []byte, ranks []ranked) []byte {
	dst = sc.appendFacets(dst, ranks)
	dst = binary.AppendUvarint(dst, uint64(len(ranks)))
	for _, r := range ranks {
		dst = binary.AppendUvarint(dst, uint64(sc.places[r.facet]))
		dst = wire.AppendText(dst, sc.tables[r.facet].entries[r.slot].name)
		for _, sum := range sc.sumsAt(r.facet, r.slot) {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(sum))
		}
	}
	return dst
}

// appendFacets appends the list of facets in the order of their best filters,
// and stores each facet's index in that list in sc.places.
func (sc *Scorer) appendFacets(dst []byte, ranks []ranked) []byte {
	if sc.places == nil {
		sc.places = make([]int32, len(sc.tables))
	}
	for i := range sc.places {
		sc.places[i] = -1
	}
	first := sc.listed[:0] // by place
	for _, r := range ranks {
		if sc.places[r.facet] < 0 {
			sc.places[r.facet] = int32(len(first))
			if first = append(first, r.facet); len(first) == len(sc.tables) {
				break
			}
		}
	}
	sc.listed = first
	dst = binary.AppendUvarint(dst, uint64(len(first)))
	for _, facet := range first {
		dst = wire.AppendText(dst, sc.c.facets[facet])
	}
	return dst
}
