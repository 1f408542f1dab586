package segment

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Histogram counts the scores of one filter over many parts. It takes 8 bytes of
// memory for each holder of the filter.
type Histogram struct {
	term   Term
	at     int64
	none   Order
	bands  map[Order][]Order // Orders by their band: all but their lowest bits
	users  int
	sum    float64
	memory []uint16
}

// NewHistogram returns a histogram of a term, whose Above it ignores, as of an instant
// (ms).
func NewHistogram(t Term, at int64) *Histogram {
	return &Histogram{term: t, at: at, none: t.Decay.orderOf(Least, at), bands: map[Order][]Order{}}
}

// AddPart adds the users in a part's list of the term's filter: all bands, or the small
// list. Users in out do not count.
func (h *Histogram) AddPart(p Part, list []Cell, out *Set) error {
	d := h.term.Decay
	whole, _ := d.halvings(p.Instant)
	base := Order(whole) * octave
	now, rest := d.halvings(h.at)
	factor, sum := math.Exp2(float64(whole-now)-rest), 0.0
	err := eachBand(list, h.term.HalfLife, &h.memory, func(b *band) bool {
		orders := h.bands[(base+Order(b.low))>>lowBits]
		for i, o := range b.ordinals {
			k := Order(b.key(i))
			if k == 0 || base+k <= h.none || out.Has(o) {
				continue
			}
			h.users++
			sum += scoreOf(k)
			if b.width == lowBytes {
				orders = append(orders, base+k)
			} else {
				h.put(base + k)
			}
		}
		if b.width == lowBytes && len(orders) > 0 {
			h.bands[(base+Order(b.low))>>lowBits] = orders
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("add part %s to a histogram: %w", p.ID, err)
	}
	h.sum += sum * factor
	return nil
}

func (h *Histogram) put(o Order) { h.bands[o>>lowBits] = append(h.bands[o>>lowBits], o) }

// Users is how many users the histogram has counted.
func (h *Histogram) Users() int { return h.users }

// AddScore adds the score of a user as of the histogram's instant, if it counts.
func (h *Histogram) AddScore(score float64) {
	if o := h.term.Decay.Order(score, h.at); o > h.none {
		h.put(o)
		h.users++
		h.sum += score
	}
}

// Summary is what a histogram says. Quantiles are scores of users: P10 is the lowest
// score that at least a tenth of the users do not exceed.
type Summary struct {
	Users              int
	Mean               float64
	P10, P50, P90, P99 float64
	Buckets            []HistogramBucket // ascending, without gaps
}

// HistogramBucket counts the scores from From up to, but not including, To.
type HistogramBucket struct {
	From, To float64
	Users    int
}

// maxBuckets is how many buckets a summary has: the lowest takes all lower scores.
const maxBuckets = 24

// Summary returns the counts of what was added.
func (h *Histogram) Summary() Summary {
	s := Summary{Users: h.users}
	if h.users == 0 {
		return s
	}
	s.Mean = h.sum / float64(h.users)
	bands := make([]Order, 0, len(h.bands))
	for band := range h.bands {
		bands = append(bands, band)
	}
	slices.Sort(bands)
	for _, q := range []struct {
		share int // in hundredths
		score *float64
	}{{10, &s.P10}, {50, &s.P50}, {90, &s.P90}, {99, &s.P99}} {
		*q.score = h.quantile(bands, (h.users*q.share+99)/100)
	}
	s.Buckets = h.buckets(bands)
	return s
}

// quantile returns the nth lowest score, n from 1. It sorts the band that holds it.
func (h *Histogram) quantile(bands []Order, n int) float64 {
	for _, band := range bands {
		orders := h.bands[band]
		if n <= len(orders) {
			slices.Sort(orders)
			return h.term.Decay.Score(orders[n-1], h.at)
		}
		n -= len(orders)
	}
	return 0
}

// buckets counts scores between the numbers 1, 2 and 5 and their decimal multiples. It
// compares Orders alone: a score that comes back from its Order can lie on the other side
// of an edge.
func (h *Histogram) buckets(bands []Order) []HistogramBucket {
	lowest := slices.Min(h.bands[bands[0]])
	highest := slices.Max(h.bands[bands[len(bands)-1]])
	first, last := h.bucketOf(lowest), h.bucketOf(highest)
	if last-first >= maxBuckets {
		first = last - maxBuckets + 1
	}
	buckets, starts := make([]HistogramBucket, last-first+1), make([]Order, last-first+1)
	for i := range buckets {
		buckets[i].From, buckets[i].To = edgeAt(first+i), edgeAt(first+i+1)
		starts[i] = h.term.Decay.orderOf(buckets[i].From, h.at)
	}
	if lowest < starts[0] {
		buckets[0].From = 0
	}
	starts[0] = NoOrder
	i := 0
	for _, band := range bands { // ascending, so that i does not fall from band to band
		for i+1 < len(starts) && starts[i+1] <= band<<lowBits {
			i++
		}
		for _, o := range h.bands[band] {
			in := i
			for in+1 < len(starts) && starts[in+1] <= o {
				in++
			}
			buckets[in].Users++
		}
	}
	return buckets
}

// bucketOf returns the n of the edge at which the bucket of an Order begins: of the
// last edge that is not above it.
func (h *Histogram) bucketOf(o Order) int {
	above := sort.Search(lastEdge-firstEdge, func(i int) bool {
		return h.term.Decay.orderOf(edgeAt(firstEdge+i), h.at) > o
	})
	return firstEdge + above - 1
}

// firstEdge and lastEdge are the n of edges below Least and above every float64: each
// score lies in between.
const (
	firstEdge = 3 * -251
	lastEdge  = 3 * 308
)

// edgeAt returns the nth of the numbers ... 0.5, 1, 2, 5, 10 ..., 1 being the 0th.
func edgeAt(n int) float64 {
	decade, step := n/3, n%3
	if step < 0 {
		decade, step = decade-1, step+3
	}
	return []float64{1, 2, 5}[step] * math.Pow10(decade)
}
