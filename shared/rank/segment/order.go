package segment

import (
	"math"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Order is the place of a score among all scores under one half-life: the higher
// score at one instant has the higher Order, whatever the instants at which the two
// were computed. NoOrder is that of a score that counts as none.
//
// It is the logarithm to base 2 of the score as of 1970, of which the part behind the
// point is that of a float64: exponent, then 36 bits of mantissa. Scores within 1.5e-11
// of each other (relative) may have the same Order.
type Order int64

// NoOrder is the Order of a score of Least or less.
const NoOrder Order = math.MinInt64

const (
	mantissaBits = 36
	octave       = 1 << mantissaBits // Orders from a score to its double
	dropped      = 52 - mantissaBits
	// edge is how far the Order of a score computed in another way can lie from that of
	// a threshold while no one knows which is higher: 5.8e-11 of the score or more.
	edge = 8
)

// Decay converts scores under one half-life to Orders. The zero value is that of plain
// sums, which do not decay.
type Decay struct{ halfLife float64 } // ms

// DecayOf returns the Decay of a half-life, or of plain sums for zero.
func DecayOf(h strategy.HalfLife) Decay { return Decay{h.Millis()} }

// decaysOf returns one Decay for each score of a profile.
func decaysOf(halfLives []strategy.HalfLife) []Decay {
	if len(halfLives) == 0 {
		return []Decay{{}}
	}
	decays := make([]Decay, len(halfLives))
	for i, h := range halfLives {
		decays[i] = DecayOf(h)
	}
	return decays
}

// halvings splits the half-lives from 1970 to an instant (ms) into whole ones and a rest
// in [0, 1).
func (d Decay) halvings(at int64) (whole int64, rest float64) {
	if d.halfLife == 0 {
		return 0, 0
	}
	h := int64(d.halfLife) // whole, like the instant: the rest keeps all of its digits
	whole, ms := at/h, at%h
	if ms < 0 {
		whole, ms = whole-1, ms+h
	}
	return whole, float64(ms) / d.halfLife
}

// Order returns the Order of a score as of an instant (ms).
func (d Decay) Order(score float64, at int64) Order {
	if !(score > Least) {
		return NoOrder
	}
	return d.orderOf(score, at)
}

func (d Decay) orderOf(score float64, at int64) Order {
	whole, rest := d.halvings(at)
	return keyOf(score*math.Exp2(rest)) + Order(whole)*octave
}

// Score returns the score of an Order as of an instant (ms), 0 if it counts as none.
func (d Decay) Score(o Order, at int64) float64 {
	if o == NoOrder {
		return 0
	}
	whole, rest := d.halvings(at)
	k := o - Order(whole)*octave
	if k <= 0 {
		return 0
	}
	if k >= maxKey {
		return math.MaxFloat64
	}
	score := scoreOf(k) / math.Exp2(rest)
	if !(score > Least) {
		return 0
	}
	return score
}

const maxKey = Order(0x7ff) << mantissaBits

// keyOf returns the upper 48 bits of a positive float64, rounded.
func keyOf(f float64) Order {
	return min(Order((math.Float64bits(f)+1<<(dropped-1))>>dropped), maxKey-1)
}

func scoreOf(k Order) float64 { return math.Float64frombits(uint64(k) << dropped) }
