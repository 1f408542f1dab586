package segment

import (
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Lookup finds the filters of queries in stored profiles. It is not safe for concurrent use.
type Lookup struct{ stored affinity.Stored }

// Find returns a stored profile as of an instant (ms), with no other filters than
// those of the query unless the profile leaves some out: then all decide which. The error means
// that the profile is damaged.
func (l *Lookup) Find(q *Query, stored []byte, at int64) (affinity.Profile, error) {
	if err := l.stored.Begin(stored); err != nil {
		return affinity.Profile{}, err
	}
	if l.stored.LeavesOut {
		p, err := affinity.ParseProfile(stored, 0)
		return asOf(p, at), err
	}
	p, facets := l.stored.Outline, l.stored.Facets()
	for {
		facet, value, scores, ok := l.stored.Next()
		if !ok {
			return asOf(p, at), l.stored.End()
		}
		for _, t := range q.Terms {
			if t.Value == string(value) && t.Facet == string(facets[facet]) {
				p.Affinities = append(p.Affinities, affinity.Affinity{Facet: t.Facet, Value: t.Value, Scores: slices.Clone(scores)})
				break
			}
		}
	}
}

// asOf returns a profile as of an instant (ms), or of the newest event that it counts if
// that is later. Another reader may have computed the profile some milliseconds after the
// instant: its scores have decayed by too much then.
func asOf(p affinity.Profile, at int64) affinity.Profile {
	p = p.At(at)
	early := p.Anchor - max(at, p.LastEventAt)
	if early <= 0 || !p.Known {
		return p
	}
	p.Anchor -= early
	p.Affinities = slices.Clone(p.Affinities)
	for i, a := range p.Affinities {
		a.Scores = slices.Clone(a.Scores)
		for k, h := range p.HalfLives {
			a.Scores[k] *= math.Exp2(float64(early) / h.Millis())
		}
		p.Affinities[i] = a
	}
	return p
}
