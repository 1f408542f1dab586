package strategy

import "github.com/go-json-experiment/json/jsontext"

// wireRanking is a ranking as clients send it.
type wireRanking struct {
	Contrast   *string      `json:"contrast"`
	Session    *wireFeature `json:"session"`
	Popularity *wireFeature `json:"popularity"`
	Pairs      *wireWeight  `json:"pairs"`
	Sequence   *wireWeight  `json:"sequence"`
	Neighbours *wireWeight  `json:"neighbours"`
	Freshness  *struct {
		Attribute *string        `json:"attribute"`
		HalfLife  jsontext.Value `json:"halfLife"`
		Weight    *int           `json:"weight"`
	} `json:"freshness"`
}

type wireWeight struct {
	Weight *int `json:"weight"`
}

type wireFeature struct {
	HalfLife jsontext.Value `json:"halfLife"`
	Weight   *int           `json:"weight"`
}

// ranking returns the ranking at path, and adds the faults of its form. Validate checks the limits.
func (w *wireRanking) ranking(f *faults, path string) *Ranking {
	if w == nil {
		return nil
	}
	halfLife := func(of string, v jsontext.Value) HalfLife {
		h, err := optionalHalfLife(path+of, v)
		f.add(path+of, err)
		return h
	}
	var r Ranking
	if w.Contrast != nil {
		if r.Contrast = Contrast(*w.Contrast); r.Contrast == "" {
			f.add(path+".contrast", invalid("%s.contrast must not be empty", path))
		}
	}
	if g := w.Session; g != nil {
		r.Session = &SessionRanking{Weight: g.Weight, HalfLife: halfLife(".session.halfLife", g.HalfLife)}
	}
	if g := w.Popularity; g != nil {
		r.Popularity = &PopularityRanking{Weight: g.Weight, HalfLife: halfLife(".popularity.halfLife", g.HalfLife)}
	}
	for _, p := range []struct {
		of *wireWeight
		to **PairsRanking
	}{{w.Pairs, &r.Pairs}, {w.Sequence, &r.Sequence}, {w.Neighbours, &r.Neighbours}} {
		if p.of != nil {
			*p.to = &PairsRanking{Weight: p.of.Weight}
		}
	}
	if g := w.Freshness; g != nil {
		r.Freshness = &FreshnessRanking{Weight: g.Weight}
		if g.Attribute != nil {
			if r.Freshness.Attribute = *g.Attribute; *g.Attribute == "" {
				f.add(path+".freshness.attribute", invalid("%s.freshness.attribute must not be empty", path))
			}
		}
		r.Freshness.HalfLife = halfLife(".freshness.halfLife", g.HalfLife)
	}
	return &r
}

// optionalHalfLife returns the zero HalfLife for an absent key or null.
func optionalHalfLife(path string, v jsontext.Value) (HalfLife, error) {
	if len(v) == 0 || v.Kind() == 'n' {
		return HalfLife{}, nil
	}
	return decodeHalfLife(path, v)
}
