package backtest

import (
	"cmp"
	"slices"

	"github.com/affinityengine/affinity/shared/rank/crowd"
)

// maxPairs is how many different pairs are counted before the rare ones are
// dropped. One takes 12 bytes.
const maxPairs = 16 << 20

// pairCounts count the pairs of all objects in bounded memory. Counts are exact
// until there are more different pairs than most. Each object then keeps its
// most frequent ones, and what it drops counts no longer, as in the runs of
// package crowd.
type pairCounts struct {
	of    []pairList // by object A
	total int        // different pairs
	most  int
	kept  int // pairs of an object that are not dropped

	objects []int32 // of the list that is being merged
	counts  []int64
}

// pairList counts the pairs of one object.
type pairList struct {
	objects []int32 // B, sorted
	counts  []int64
	fresh   []uint64 // B << 32 + n of pairs that counts lacks
}

// minFresh is the number of pairs below which a list is not merged.
const minFresh = 16

// newPairCounts returns the counts of so many objects.
func newPairCounts(objects, most int) *pairCounts {
	most = max(most, 2*pairsKept*objects)
	return &pairCounts{
		of: make([]pairList, objects), most: most,
		kept: min(max(most/2/max(objects, 1), pairsKept), crowd.Kept),
	}
}

// add counts a pair n times.
func (p *pairCounts) add(a, b, n uint32) {
	l := &p.of[a]
	l.fresh = append(l.fresh, uint64(b)<<32|uint64(n))
	if len(l.fresh) < max(minFresh, len(l.objects)) {
		return
	}
	if p.merge(l); p.total > p.most {
		p.drop()
	}
}

// merge counts the fresh pairs of a list.
func (p *pairCounts) merge(l *pairList) {
	slices.Sort(l.fresh)
	objects, counts := p.objects[:0], p.counts[:0]
	i := 0
	for start := 0; start < len(l.fresh); {
		b, n, end := int32(l.fresh[start]>>32), int64(0), start
		for ; end < len(l.fresh) && int32(l.fresh[end]>>32) == b; end++ {
			n += int64(uint32(l.fresh[end]))
		}
		for ; i < len(l.objects) && l.objects[i] < b; i++ {
			objects, counts = append(objects, l.objects[i]), append(counts, l.counts[i])
		}
		if i < len(l.objects) && l.objects[i] == b {
			n += l.counts[i]
			i++
		}
		objects, counts = append(objects, b), append(counts, n)
		start = end
	}
	objects, counts = append(objects, l.objects[i:]...), append(counts, l.counts[i:]...)
	p.total += len(objects) - len(l.objects)
	p.objects, p.counts = objects, counts
	l.objects, l.counts, l.fresh = append(l.objects[:0], objects...), append(l.counts[:0], counts...), l.fresh[:0]
}

// drop keeps the most frequent pairs of each object.
func (p *pairCounts) drop() {
	var order []int
	p.total = 0
	for a := range p.of {
		l := &p.of[a]
		p.merge(l)
		l.fresh = nil
		if len(l.objects) > p.kept {
			order = order[:0]
			for i := range l.objects {
				order = append(order, i)
			}
			slices.SortFunc(order, func(i, j int) int {
				return cmp.Or(cmp.Compare(l.counts[j], l.counts[i]),
					cmp.Compare(i, j))
			})
			order = order[:p.kept]
			slices.Sort(order)
			objects, counts := make([]int32, p.kept), make([]int64, p.kept)
			for to, i := range order {
				objects[to], counts[to] = l.objects[i], l.counts[i]
			}
			l.objects, l.counts = objects, counts
		}
	}
	for a := range p.of {
		p.total += len(p.of[a].objects)
	}
}
