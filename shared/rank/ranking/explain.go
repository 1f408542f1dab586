package ranking

import (
	"slices"
	"strings"
)

// explain returns the features of a candidate that are not 0, with their parts.
func (w *work) explain(i int32) []Feature {
	var features []Feature
	for n, value := range w.features(i) {
		if value != 0 {
			features = append(features, Feature{Name: names[n], Value: value, Parts: w.parts(names[n], value, i)})
		}
	}
	return features
}

// parts returns what a feature of this value is made of.
func (w *work) parts(name string, value float64, i int32) []Part {
	c := &w.q.Candidates[i]
	var parts []Part
	switch name {
	case Affinity:
		parts = w.filters(c.Object, func(e *term) float64 { return e.profile })
	case Session:
		parts = w.filters(c.Object, func(e *term) float64 { return e.session })
	case Pairs:
		parts = w.pairsWith(c.ObjectID)
	default:
		return nil
	}
	parts = merge(ofLargest(parts))
	whole := total(parts)
	for n := range parts {
		parts[n].Value = value * (parts[n].Value / whole)
	}
	slices.SortFunc(parts, compareParts)
	return parts
}

// filters returns the score of each filter of an object that is a term.
func (w *work) filters(o *Object, score func(*term) float64) []Part {
	var parts []Part
	for _, f := range o.Filters() {
		facet := w.r.facets.byName(f.Facet)
		if facet < 0 {
			continue
		}
		if k := w.terms.find(hashFilter(hashText(f.Facet), f.Value), facet, f.Value); k != nil {
			if e := &w.terms.terms[k.term]; score(e) > 0 {
				parts = append(parts, Part{Name: f.Facet + ":" + e.value, Value: score(e)})
			}
		}
	}
	return parts
}

// pairsWith returns what each object of the user's last instant adds to the
// pairs of an object.
func (w *work) pairsWith(objectID string) []Part {
	if w.pairParts == nil {
		w.pairParts = w.partsOfPairs()
	}
	return w.pairParts[objectID]
}

// partsOfPairs returns the parts of the pairs of each candidate.
func (w *work) partsOfPairs() map[string][]Part {
	parts := make(map[string][]Part, len(w.q.Candidates))
	for i := range w.q.Candidates {
		parts[w.q.Candidates[i].ObjectID] = nil
	}
	for _, a := range w.q.Neighbours {
		for _, b := range a.Pairs {
			ratio := b.Count / a.Events
			if !positive(b.Count) || !positive(a.Events) || !positive(ratio) {
				continue
			}
			if known, ok := parts[b.ObjectID]; ok {
				parts[b.ObjectID] = append(known, Part{Name: a.ObjectID, Value: ratio})
			}
		}
	}
	return parts
}

// ofLargest returns parts divided by the largest of them, so that their sum stays finite.
func ofLargest(parts []Part) []Part {
	top := 0.0
	for _, p := range parts {
		top = max(top, p.Value)
	}
	scaled := slices.Clone(parts)
	for n := range scaled {
		scaled[n].Value /= top
	}
	return scaled
}

// merge adds up the parts of one name.
func merge(parts []Part) []Part {
	slices.SortFunc(parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	merged := parts[:0]
	for _, p := range parts {
		if n := len(merged); n > 0 && merged[n-1].Name == p.Name {
			merged[n-1].Value += p.Value
			continue
		}
		merged = append(merged, p)
	}
	return merged
}
