package crowd

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// minTrend is the least trend of an object that is listed as rising.
const minTrend = 2

// Scored is an object with what it is listed by.
type Scored struct {
	ObjectID string
	Score    float64
}

// Better orders objects by score, the highest first, and then by id.
func Better(a, b Scored) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ObjectID, b.ObjectID))
}

// Trend returns by how many standard deviations the recent count of an object exceeds what its
// count makes one expect. halfLife (ms) is that of the count; the trend is 0 if that is not above
// Recently, or math.Inf(1), because then nothing tells now from before.
//
// At a constant rate of l events a ms, a count with a half-life h is expected to be l h / ln 2.
// So the rate is estimated as l = count ln 2 / h, and the recent count is expected to be
// count r / h. The difference of the two is a sum over events of 2^-(age/r) - r/h 2^-(age/h). In a
// Poisson process (events independent of each other) its variance is l times the integral of
// the square of this weight over all ages, which is
// (r/2 - 2 r^2 / (r + h) + r^2 / (2 h)) / ln 2. One is added to the variance, so that
// one event of a new object is no trend.
func Trend(count, halfLife, recent float64) float64 {
	if count <= 0 || halfLife <= Recently || math.IsInf(halfLife, 1) {
		return 0
	}
	const r = Recently
	h := halfLife
	variance := count / h * (r/2 - 2*r*r/(r+h) + r*r/(2*h))
	return (recent - count*r/h) / math.Sqrt(variance+1)
}

// rise keeps an object in mind whose trend is high enough.
func (x *Index) rise(id string, trend float64) {
	if trend < minTrend {
		return
	}
	if x.Risen = append(x.Risen, Scored{id, trend}); len(x.Risen) == 2*MaxRising {
		x.Risen = x.Rising()
	}
}

// Rising returns the objects with the highest trends, the highest first, at most MaxRising, as
// far as the counts have been added.
func (x *Index) Rising() []Scored {
	sorted := slices.Clone(x.Risen)
	slices.SortFunc(sorted, Better)
	return sorted[:min(len(sorted), MaxRising)]
}
