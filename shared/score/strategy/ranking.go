package strategy

import "encoding/json"

// Contrast is how much a filter's rarity in the catalog adds to its weight.
type Contrast string

// The contrasts of a ranking.
const (
	ContrastNone Contrast = "none" // every filter weighs what its affinity says
	ContrastIDF  Contrast = "idf"  // rare filters weigh more: inverse document frequency
)

// MaxWeight is the highest weight of a ranking feature, and MaxCrowdWeight that of one that
// comes from what all users do: the best of these are worth several times the affinities.
const (
	MaxWeight      = 100
	MaxCrowdWeight = 500
)

// Ranking defines how a profile becomes an order of objects: the features
// beside the affinities, and their weights. It holds what the client gave.
// Absent keys (nil or zero) have the values of DefaultRanking.
type Ranking struct {
	Contrast   Contrast           `json:"contrast,omitempty"`
	Session    *SessionRanking    `json:"session,omitempty"`
	Popularity *PopularityRanking `json:"popularity,omitempty"`
	Pairs      *PairsRanking      `json:"pairs,omitempty"`
	Sequence   *PairsRanking      `json:"sequence,omitempty"`
	Neighbours *PairsRanking      `json:"neighbours,omitempty"`
	Freshness  *FreshnessRanking  `json:"freshness,omitempty"`
}

// SessionRanking weighs the filters of the user's newest events.
type SessionRanking struct {
	HalfLife HalfLife `json:"halfLife,omitzero"` // events or time
	Weight   *int     `json:"weight,omitempty"`  // 0 to MaxWeight
}

// PopularityRanking weighs how often an index's users chose an object.
type PopularityRanking struct {
	HalfLife HalfLife `json:"halfLife,omitzero"`
	Weight   *int     `json:"weight,omitempty"` // 0 to MaxCrowdWeight
}

// PairsRanking weighs what all users did with objects that the user chose: pairs,
// how often they chose an object soon after those that the user chose last;
// sequence, how often and how few steps after these; neighbours, how many of
// those who chose the objects of the user's session chose it too.
type PairsRanking struct {
	Weight *int `json:"weight,omitempty"` // 0 to MaxCrowdWeight
}

// FreshnessRanking weighs how new an object is by an attribute of its record
// that holds a date.
type FreshnessRanking struct {
	Attribute string   `json:"attribute,omitempty"`
	HalfLife  HalfLife `json:"halfLife,omitzero"`
	Weight    *int     `json:"weight,omitempty"` // 0 to MaxWeight
}

// FullRanking is a Ranking with a value for every key. The weight 100 makes a
// feature count as much as the affinities.
type FullRanking struct {
	Contrast   Contrast
	Session    FullSession
	Popularity FullPopularity
	Pairs      FullPairs
	Sequence   FullPairs
	Neighbours FullPairs
	Freshness  FullFreshness
}

// FullSession is a SessionRanking with a value for every key.
type FullSession struct {
	HalfLife HalfLife
	Weight   int
}

// FullPopularity is a PopularityRanking with a value for every key.
type FullPopularity struct {
	HalfLife HalfLife
	Weight   int
}

// FullPairs is a PairsRanking with a value for every key.
type FullPairs struct{ Weight int }

// FullFreshness is a FreshnessRanking with a value for every key.
type FullFreshness struct {
	Attribute string
	HalfLife  HalfLife
	Weight    int
}

// DefaultRanking returns the ranking of a strategy without the key ranking.
// The numbers were chosen by measurement: the README of package ranking holds
// the measurements and the reasons.
func DefaultRanking() FullRanking {
	return FullRanking{
		Contrast:   ContrastIDF,
		Session:    FullSession{HalfLife: Events(1), Weight: 20},
		Popularity: FullPopularity{HalfLife: Days(7), Weight: 100},
		Pairs:      FullPairs{Weight: 100},
		Freshness:  FullFreshness{Attribute: "publishedAt", HalfLife: Days(14), Weight: 0},
	}
}

// SuggestedRanking returns the ranking of a strategy that is suggested: the default one with
// sequences and neighbours, which rank better on all data sets that have been measured. A
// strategy that does not name them keeps its order.
func SuggestedRanking() *Ranking {
	sequence, neighbours := 100, 300
	return &Ranking{Sequence: &PairsRanking{Weight: &sequence}, Neighbours: &PairsRanking{Weight: &neighbours}}
}

// PlainRanking returns the order by affinities alone: no contrast, and every
// weight 0. Judgements of other rankings compare with it.
func PlainRanking() *Ranking {
	full := DefaultRanking()
	full.Contrast = ContrastNone
	full.Session.Weight, full.Popularity.Weight, full.Freshness.Weight = 0, 0, 0
	full.Pairs, full.Sequence, full.Neighbours = FullPairs{}, FullPairs{}, FullPairs{}
	return full.Ranking()
}

// Links returns the weights of what links objects: pairs, sequence and neighbours.
func (r FullRanking) Links() [3]int {
	return [3]int{r.Pairs.Weight, r.Sequence.Weight, r.Neighbours.Weight}
}

// Ranking returns r with every key given.
func (r FullRanking) Ranking() *Ranking {
	return &Ranking{
		Contrast:   r.Contrast,
		Session:    &SessionRanking{HalfLife: r.Session.HalfLife, Weight: &r.Session.Weight},
		Popularity: &PopularityRanking{HalfLife: r.Popularity.HalfLife, Weight: &r.Popularity.Weight},
		Pairs:      &PairsRanking{Weight: &r.Pairs.Weight},
		Sequence:   &PairsRanking{Weight: &r.Sequence.Weight},
		Neighbours: &PairsRanking{Weight: &r.Neighbours.Weight},
		Freshness: &FreshnessRanking{Attribute: r.Freshness.Attribute, HalfLife: r.Freshness.HalfLife,
			Weight: &r.Freshness.Weight},
	}
}

// RankingOrDefault returns the ranking of s, with the default of every key
// that it does not give.
func (s Strategy) RankingOrDefault() FullRanking {
	full := DefaultRanking()
	r := s.Ranking
	if r == nil {
		return full
	}
	if r.Contrast != "" {
		full.Contrast = r.Contrast
	}
	if g := r.Session; g != nil {
		fill(&full.Session.HalfLife, &full.Session.Weight, g.HalfLife, g.Weight)
	}
	if g := r.Popularity; g != nil {
		fill(&full.Popularity.HalfLife, &full.Popularity.Weight, g.HalfLife, g.Weight)
	}
	for _, p := range []struct {
		of *PairsRanking
		to *FullPairs
	}{{r.Pairs, &full.Pairs}, {r.Sequence, &full.Sequence}, {r.Neighbours, &full.Neighbours}} {
		if p.of != nil {
			fill(new(HalfLife), &p.to.Weight, HalfLife{}, p.of.Weight)
		}
	}
	if g := r.Freshness; g != nil {
		fill(&full.Freshness.HalfLife, &full.Freshness.Weight, g.HalfLife, g.Weight)
		if g.Attribute != "" {
			full.Freshness.Attribute = g.Attribute
		}
	}
	return full
}

func fill(halfLife *HalfLife, weight *int, givenHalfLife HalfLife, givenWeight *int) {
	if !givenHalfLife.IsZero() {
		*halfLife = givenHalfLife
	}
	if givenWeight != nil {
		*weight = *givenWeight
	}
}

// withoutEmpty returns r without groups that give nothing, and nil if nothing
// is left.
func (r *Ranking) withoutEmpty() *Ranking {
	if r == nil {
		return nil
	}
	c := *r
	if c.Session != nil && *c.Session == (SessionRanking{}) {
		c.Session = nil
	}
	if c.Popularity != nil && *c.Popularity == (PopularityRanking{}) {
		c.Popularity = nil
	}
	for _, p := range []**PairsRanking{&c.Pairs, &c.Sequence, &c.Neighbours} {
		if *p != nil && **p == (PairsRanking{}) {
			*p = nil
		}
	}
	if c.Freshness != nil && *c.Freshness == (FreshnessRanking{}) {
		c.Freshness = nil
	}
	if c == (Ranking{}) {
		return nil
	}
	return &c
}

// Equal reports whether r and o encode to the same JSON.
func (r *Ranking) Equal(o *Ranking) bool {
	a, errA := json.Marshal(r.withoutEmpty())
	b, errB := json.Marshal(o.withoutEmpty())
	return errA == nil && errB == nil && string(a) == string(b)
}

// check adds what is wrong with the ranking at path.
func (r *Ranking) check(f *faults, path string) {
	if r = r.withoutEmpty(); r == nil {
		return
	}
	if r.Contrast != "" && r.Contrast != ContrastNone && r.Contrast != ContrastIDF {
		f.add(path+".contrast", invalid(`%s.contrast must be one of "none" or "idf", got %s`, path,
			quote(string(r.Contrast))))
	}
	if g := r.Session; g != nil {
		checkFeature(f, path+".session", g.HalfLife, true, g.Weight, MaxWeight)
	}
	if g := r.Popularity; g != nil {
		checkFeature(f, path+".popularity", g.HalfLife, false, g.Weight, MaxCrowdWeight)
	}
	for _, p := range []struct {
		key string
		of  *PairsRanking
	}{{".pairs", r.Pairs}, {".sequence", r.Sequence}, {".neighbours", r.Neighbours}} {
		if p.of != nil {
			checkFeature(f, path+p.key, HalfLife{}, false, p.of.Weight, MaxCrowdWeight)
		}
	}
	if g := r.Freshness; g != nil {
		if g.Attribute != "" {
			f.add(path+".freshness.attribute", checkName(path+".freshness.attribute", g.Attribute))
		}
		checkFeature(f, path+".freshness", g.HalfLife, false, g.Weight, MaxWeight)
	}
}

// checkFeature checks a feature's half-life and weight, where it gives them.
func checkFeature(f *faults, path string, halfLife HalfLife, events bool, weight *int, most int) {
	if !halfLife.IsZero() {
		f.add(path+".halfLife", checkHalfLife(path+".halfLife", halfLife, events))
	}
	if weight != nil {
		f.add(path+".weight", checkRange(path+".weight", *weight, 0, most))
	}
}

// checkHalfLife checks the limits of the half-life at path. events reports
// whether it may count events.
func checkHalfLife(path string, h HalfLife, events bool) error {
	if fault := h.fault(); fault != "" {
		return invalid("%s %s", path, fault)
	}
	if _, counts := h.Events(); counts && !events {
		return invalid("%s must be a time, got %s: only ranking.session.halfLife counts events", path, quote(h.text))
	}
	return nil
}
