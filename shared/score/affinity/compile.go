package affinity

import (
	"slices"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Pair is a kind of event that scores: a type and a name.
type Pair struct{ Type, Name string }

// Compiled is a strategy prepared for scoring. It is immutable: all scorers of
// an app may share it.
type Compiled struct {
	pairs     []Pair // with points, in the strategy's order
	facets    []string
	halfLives []strategy.HalfLife

	points  map[Pair]float64
	indexes map[string]int32 // of facets
	weights []float64        // by facet index
	aliases []map[string]string
	rules   []strategy.Rule
	perMS   []float64 // by half-life: 1/half-life in ms; one 0 for the plain sum
	bounds  Bounds
}

// Within returns c with other bounds.
func (c *Compiled) Within(b Bounds) *Compiled {
	other := *c
	other.bounds = b
	return &other
}

// Compile prepares a valid strategy, with the standard bounds.
func Compile(s strategy.Strategy) *Compiled {
	c := &Compiled{
		bounds:    StandardBounds(),
		halfLives: slices.Clone(s.HalfLives),
		points:    make(map[Pair]float64, len(s.EventsScoring)),
		indexes:   make(map[string]int32, len(s.FacetsScoring)),
	}
	for _, e := range s.EventsScoring {
		if e.Score > 0 {
			pair := Pair{Type: string(e.EventType), Name: e.EventName}
			c.pairs = append(c.pairs, pair)
			c.points[pair] = float64(e.Score)
		}
	}
	for _, f := range s.FacetsScoring {
		if f.Score > 0 {
			c.indexes[f.FacetName] = int32(len(c.facets))
			c.facets = append(c.facets, f.FacetName)
			c.weights = append(c.weights, float64(f.Score))
			c.aliases = append(c.aliases, s.Aliases[f.FacetName])
			c.rules = append(c.rules, s.Rule(f.FacetName))
		}
	}
	for _, h := range s.HalfLives {
		c.perMS = append(c.perMS, 1/h.Millis())
	}
	if len(c.perMS) == 0 {
		c.perMS = []float64{0}
	}
	return c
}

// Pairs returns the kinds of events that score, in the strategy's order. To
// score a user, a reader needs these events with their values of Facets, and
// only the times of the user's other events.
func (c *Compiled) Pairs() []Pair { return slices.Clone(c.pairs) }

// Facets returns the facets that score, in the strategy's order.
func (c *Compiled) Facets() []string { return slices.Clone(c.facets) }
