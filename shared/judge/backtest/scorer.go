package backtest

import (
	"cmp"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// scorer ranks candidates by a strategy. It computes what ranking.Reference
// defines, on numbers in place of names. Its cases must come user by user, each
// user's in the order of their times.
type scorer struct {
	*compiled
	walk    walk
	sums    []sums                  // by term; all 0 between cases
	matched []sums                  // by place in the candidates
	past    []past                  // in the order of IDs
	inPast  []bool                  // by object; all false between cases
	linked  [crowd.Ranked][]float64 // by object; all 0 between cases
}

// past is an object of the user's session, as ranking.Past says.
type past struct {
	object int32
	last   bool
	age    int
}

// sums are the profile's and the session's parts of a number.
type sums struct{ profile, session float64 }

func (p *compiled) ranker() *scorer {
	n := len(p.cases.log.objects)
	s := &scorer{compiled: p, walk: newWalk(p), sums: make([]sums, len(p.terms)), matched: make([]sums, n),
		inPast: make([]bool, n)}
	for kind := range s.linked {
		s.linked[kind] = make([]float64, n)
	}
	return s
}

func (*scorer) ties() []int32 { return nil }

func (s *scorer) rank(in *instant, candidates []int32, scores []float64) {
	s.walk.to(in)
	s.walk.profile(in.time, s.sums)
	s.addSession(in)
	s.scale()
	top := s.enlarge(candidates, s.matchAll(candidates))
	// What is divided by the highest among the candidates gets a factor.
	profile := inverse(top.profile)
	session := percent(s.ranking.Session.Weight) * inverse(top.session)
	matched, popularity := s.matched, s.popularity
	for _, o := range candidates {
		scores[o] = matched[o].profile*profile + matched[o].session*session + popularity[o]
	}
	for kind, weight := range s.weights {
		if weight == 0 {
			continue
		}
		factor, linked := percent(weight)*inverse(s.addLinks(kind, candidates)), s.linked[kind]
		for _, o := range candidates {
			scores[o] += linked[o] * factor
		}
	}
	if s.published != nil {
		for _, o := range candidates {
			scores[o] += s.freshness(o, in.time)
		}
	}
	for _, o := range candidates {
		scores[o] = affinity.Rounded(scores[o])
	}
	s.clear()
}

// inverse returns 1/x, or 0 if x is 0.
func inverse(x float64) float64 {
	if x == 0 {
		return 0
	}
	return 1 / x
}

// tiny is a sum below which its inverse may overflow. Only filters that a user
// turned to a thousand half-lives before others have such sums.
const tiny = 1e-300

// enlarge divides sums by the highest if that is tiny. It returns the new
// highest.
func (s *scorer) enlarge(candidates []int32, top sums) sums {
	if top.profile > 0 && top.profile < tiny {
		for _, o := range candidates {
			s.matched[o].profile /= top.profile
		}
		top.profile = 1
	}
	if top.session > 0 && top.session < tiny {
		for _, o := range candidates {
			s.matched[o].session /= top.session
		}
		top.session = 1
	}
	return top
}

// share returns value as a fraction of the highest value, or 0 if that is 0.
func share(value, highest float64) float64 {
	if highest == 0 {
		return 0
	}
	return value / highest
}

func (s *scorer) freshness(o int32, now int64) float64 {
	if !s.published.dated[o] {
		return 0
	}
	f := &s.ranking.Freshness
	return percent(f.Weight) * ranking.FreshnessOf(now, s.published.at[o], f.HalfLife.Millis())
}

// addSession adds up the newest events before the instant that the strategy
// scores, and lists the objects of the user's history.
func (s *scorer) addSession(in *instant) {
	l := s.cases.log
	s.past = s.past[:0]
	var last ranking.LastInstant
	var recent ranking.Recent
	for newer := range s.walk.session() {
		e := &l.events[s.walk.newest(newer)]
		isLast := last.Holds(e.time, e.objects > 0)
		if isLast || s.weights[crowd.Together] > 0 {
			s.addPast(&recent, e, isLast)
		}
		if s.ranking.Session.Weight > 0 {
			if points := s.points[e.kind] * s.sessionDecay(newer, in.time-e.time); points > 0 {
				s.addEvent(e, func(t int32) { s.sums[t].session += points * s.terms[t].weight })
			}
		} else if s.weights[crowd.Together] == 0 && last.Over(e.time) {
			break
		}
	}
	slices.SortFunc(s.past, func(a, b past) int { return cmp.Compare(a.object, b.object) })
	for _, p := range s.past {
		s.inPast[p.object] = false
	}
}

// addPast adds the objects of an event, as ranking.History does.
func (s *scorer) addPast(recent *ranking.Recent, e *entry, last bool) {
	objects := s.cases.log.objectsOf(e)
	counted := func(o int32) bool { return len(s.cases.crowd.times[o]) > 0 }
	if !slices.ContainsFunc(objects, counted) {
		return
	}
	age, ok := recent.Adds(e.time)
	if !ok {
		return
	}
	for _, o := range objects {
		if counted(o) && !s.inPast[o] {
			s.inPast[o] = true
			recent.Added()
			s.past = append(s.past, past{o, last, age})
		}
	}
}

// sessionDecay returns the factor of an event of the session with so many newer
// ones and this age in ms.
func (s *scorer) sessionDecay(newer int, age int64) float64 {
	if n, ok := s.ranking.Session.HalfLife.Events(); ok {
		return math.Exp2(-float64(newer) / n)
	}
	return math.Exp2(-float64(age) / s.ranking.Session.HalfLife.Millis())
}

// scale divides the sums by the highest and multiplies them by the contrasts.
func (s *scorer) scale() {
	var top sums
	for _, t := range s.walk.known {
		top.profile, top.session = max(top.profile, s.sums[t].profile), max(top.session, s.sums[t].session)
	}
	for _, t := range s.walk.known {
		x := &s.sums[t]
		x.profile = share(x.profile, top.profile) * s.terms[t].contrast
		x.session = share(x.session, top.session) * s.terms[t].contrast
	}
}

// matchAll computes affinity and session of the candidates, and returns the
// highest of each.
func (s *scorer) matchAll(candidates []int32) (top sums) {
	if s.ranking.Session.Weight == 0 {
		return sums{profile: s.matchProfile(candidates)}
	}
	offsets, items, all, matched := s.match.offsets, s.match.items, s.sums, s.matched
	for _, o := range candidates {
		profile, session := 0.0, 0.0
		for _, t := range items[offsets[o]:offsets[o+1]] {
			profile += all[t].profile
			session += all[t].session
		}
		if root := s.roots[o]; root > 0 {
			profile /= root
			session /= root
		}
		matched[o] = sums{profile, session}
		top.profile, top.session = max(top.profile, profile), max(top.session, session)
	}
	return top
}

// matchProfile is matchAll for a ranking that gives the session no weight.
func (s *scorer) matchProfile(candidates []int32) (top float64) {
	offsets, items, all, matched := s.match.offsets, s.match.items, s.sums, s.matched
	for _, o := range candidates {
		profile := 0.0
		for _, t := range items[offsets[o]:offsets[o+1]] {
			profile += all[t].profile
		}
		if profile > 0 {
			profile /= s.roots[o]
			top = max(top, profile)
		}
		matched[o].profile = profile
	}
	return top
}

// addLinks adds up what the objects of the history link to. It returns the highest sum
// among the candidates.
func (s *scorer) addLinks(kind int, candidates []int32) (top float64) {
	sums := s.linked[kind]
	for _, a := range s.past {
		factor := a.factor(kind, len(s.cases.crowd.times[a.object]))
		if factor == 0 {
			continue
		}
		links := &s.cases.crowd.links[kind][a.object]
		for i, b := range links.objects {
			sums[b] += float64(links.counts[i]) * factor
		}
	}
	for _, o := range candidates {
		top = max(top, sums[o])
	}
	return top
}

// factor is what the links of an object of the history count.
func (p past) factor(kind, events int) float64 {
	switch {
	case kind == int(crowd.Together):
		return ranking.Aged(p.age)
	case p.last:
		return 1 / float64(events)
	}
	return 0
}

// clear forgets the case.
func (s *scorer) clear() {
	for _, t := range s.walk.known {
		s.sums[t] = sums{}
	}
	for _, a := range s.past {
		for kind := range s.linked {
			mark(s.linked[kind], s.cases.crowd.links[kind][a.object].objects, 0)
		}
	}
}
