package strategy

import "strings"

// maxPlacements is how many placements a strategy may have.
const maxPlacements = 16

// Placed returns s with the ranking of a placement in place of its own. ok is false if s has no such placement.
func (s Strategy) Placed(placement string) (placed Strategy, ok bool) {
	r, ok := s.Placements[placement]
	if ok {
		s.Ranking = r
	}
	return s, ok
}

// CheckPlacement returns a fault if a request names a placement that s does not have. "" names none.
func (s Strategy) CheckPlacement(placement string) error {
	if _, ok := s.Placements[placement]; ok || placement == "" {
		return nil
	}
	if len(s.Placements) == 0 {
		return invalid("placement %s: the strategy has no placements: name none, or set some in the strategy", quote(placement))
	}
	return invalid("placement %s is not one of the strategy: %s", quote(placement), strings.Join(sortedKeys(s.Placements), ", "))
}

func (s Strategy) checkPlacements(f *faults) {
	if n := len(s.Placements); n > maxPlacements {
		f.add("placements", invalid("placements must have at most %d entries, got %d", maxPlacements, n))
		return
	}
	for _, name := range sortedKeys(s.Placements) {
		path := keyPath("placements", name)
		if f.add(path, checkName("a name in placements", name)) {
			continue
		}
		r := s.Placements[name]
		if r == nil {
			f.add(path, required(path))
			continue
		}
		if r.Popularity != nil && !r.Popularity.HalfLife.IsZero() {
			f.add(path+".popularity.halfLife", invalid("%s.popularity.halfLife must not be given: "+
				"what is popular is counted once, by ranking.popularity.halfLife", path))
		}
		r.check(f, path)
	}
}
