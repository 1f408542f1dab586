package strategy

import "github.com/go-json-experiment/json/jsontext"

// wireRanking is a ranking as clients send it.
type wireRanking struct {
	Contrast   *string      `json:"contrast"`
	Session    *wireFeature `json:"session"`
	Popularity *wireFeature `json:"popularity"`
	Pairs      *struct {
		Weight *int `json:"weight"`
	} `json:"pairs"`
	Freshness *struct {
		Attribute *string        `json:"attribute"`
		HalfLife  jsontext.Value `json:"halfLife"`
		Weight    *int           `json:"weight"`
	} `json:"freshness"`
}

type wireFeature struct {
	HalfLife jsontext.Value `json:"halfLife"`
	Weight   *int           `json:"weight"`
}

// ranking checks the forms of w. Validate checks the limits.
func (w *wireRanking) ranking() (*Ranking, error) {
	if w == nil {
		return nil, nil
	}
	var r Ranking
	var err error
	if w.Contrast != nil {
		if r.Contrast = Contrast(*w.Contrast); r.Contrast == "" {
			return nil, invalid("ranking.contrast must not be empty")
		}
	}
	if g := w.Session; g != nil {
		r.Session = &SessionRanking{Weight: g.Weight}
		if r.Session.HalfLife, err = optionalHalfLife("ranking.session.halfLife", g.HalfLife); err != nil {
			return nil, err
		}
	}
	if g := w.Popularity; g != nil {
		r.Popularity = &PopularityRanking{Weight: g.Weight}
		if r.Popularity.HalfLife, err = optionalHalfLife("ranking.popularity.halfLife", g.HalfLife); err != nil {
			return nil, err
		}
	}
	if g := w.Pairs; g != nil {
		r.Pairs = &PairsRanking{Weight: g.Weight}
	}
	if g := w.Freshness; g != nil {
		r.Freshness = &FreshnessRanking{Weight: g.Weight}
		if g.Attribute != nil {
			if r.Freshness.Attribute = *g.Attribute; *g.Attribute == "" {
				return nil, invalid("ranking.freshness.attribute must not be empty")
			}
		}
		if r.Freshness.HalfLife, err = optionalHalfLife("ranking.freshness.halfLife", g.HalfLife); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// optionalHalfLife returns the zero HalfLife for an absent key or null.
func optionalHalfLife(path string, v jsontext.Value) (HalfLife, error) {
	if len(v) == 0 || v.Kind() == 'n' {
		return HalfLife{}, nil
	}
	return decodeHalfLife(path, v)
}
