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
		parts = w.partsOfLinks()[c.ObjectID][paired]
	case Sequence:
		parts = w.partsOfLinks()[c.ObjectID][followed]
	case Related:
		parts = w.partsOfLinks()[c.ObjectID][related]
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

// partsOfLinks returns what each object of the user's session adds to the features
// of the crowd, by candidate.
func (w *work) partsOfLinks() map[string][kinds][]Part {
	if w.linkParts != nil {
		return w.linkParts
	}
	w.linkParts = make(map[string][kinds][]Part, len(w.q.Candidates))
	for i := range w.q.Candidates {
		w.linkParts[w.q.Candidates[i].ObjectID] = [kinds][]Part{}
	}
	for i := range w.q.Neighbours {
		a := &w.q.Neighbours[i]
		a.each(&w.r.weights, func(kind int, b *Pair, value float64) {
			if known, ok := w.linkParts[b.ObjectID]; ok {
				known[kind] = append(known[kind], Part{Name: a.ObjectID, Value: value})
				w.linkParts[b.ObjectID] = known
			}
		})
	}
	return w.linkParts
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
