package backtest

import (
	"math"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// walk holds what a user's events up to a place add up to. The next case of the
// user continues it: so a user's cases cost their events once, and not once each.
type walk struct {
	*compiled
	user, next int32 // the first event that is not added
	// sums are the points of each term as of the time ref, in ms. An event after ref
	// counts more than its points.
	sums    []float64
	ref     float64
	known   []int32 // the terms of the events
	isKnown []bool  // by term
	// recent are the newest events that score, places in Log.events: event number i
	// of the scored ones lies at i modulo their number.
	recent [affinity.MaxSessionEvents]int32
	scored int
	past   []int32 // of a person
}

func newWalk(p *compiled) walk {
	return walk{compiled: p, user: -1, sums: make([]float64, len(p.terms)), isKnown: make([]bool, len(p.terms))}
}

// maxAhead is how many half-lives an event may lie after ref. It keeps the sums far
// from overflow and the exponents exact to the last digits.
const maxAhead = 256

// to adds the events before an instant.
func (w *walk) to(in *instant) {
	if in.person != nil { // whose events may differ from case to case
		w.restart(-1, 0)
		w.past = w.cases.log.past(in, w.past)
		for _, at := range w.past {
			w.add(at)
		}
		return
	}
	if in.user != w.user || in.pastEnd < w.next {
		w.restart(in.user, in.pastStart)
	}
	for ; w.next < in.pastEnd; w.next++ {
		w.add(w.next)
	}
}

// add adds an event, a place in Log.events.
func (w *walk) add(at int32) {
	e := &w.cases.log.events[at]
	points := w.points[e.kind]
	if points == 0 {
		return
	}
	if w.scored == 0 {
		w.ref = float64(e.time)
	}
	w.recent[w.scored%len(w.recent)] = at
	w.scored++
	if w.halfLife > 0 {
		points *= math.Exp2(w.ahead(e.time))
	}
	w.addEvent(e, func(t int32) {
		if !w.isKnown[t] {
			w.isKnown[t] = true
			w.known = append(w.known, t)
		}
		w.sums[t] += points * w.terms[t].weight
	})
}

// restart forgets all events. The next one of the user is at a place in Log.events.
func (w *walk) restart(user, next int32) {
	for _, t := range w.known {
		w.sums[t], w.isKnown[t] = 0, false
	}
	w.user, w.next, w.known, w.scored = user, next, w.known[:0], 0
}

// ahead returns how many half-lives a time lies after ref, at most maxAhead: it
// moves ref by whole half-lives, which changes the sums by powers of 2.
func (w *walk) ahead(time int64) float64 {
	ahead := (float64(time) - w.ref) / w.halfLife
	if ahead <= maxAhead {
		return ahead
	}
	whole := math.Floor(ahead)
	w.ref += whole * w.halfLife
	for _, t := range w.known {
		w.sums[t] = math.Ldexp(w.sums[t], -exponent(whole))
	}
	return max(0, (float64(time)-w.ref)/w.halfLife)
}

// exponent returns a whole number as an exponent of 2. Beyond some thousands all
// numbers vanish.
func exponent(whole float64) int { return int(min(whole, 1e6)) }

// profile sets the profile's sums as of a time.
func (w *walk) profile(at int64, to []sums) {
	if w.halfLife == 0 {
		for _, t := range w.known {
			to[t].profile = w.sums[t]
		}
		return
	}
	age := (float64(at) - w.ref) / w.halfLife
	whole := math.Floor(age)
	part, down := math.Exp2(whole-age), -exponent(whole)
	for _, t := range w.known {
		to[t].profile = math.Ldexp(w.sums[t]*part, down) // exact, and may underflow only here
	}
}

// session returns how many of the events are in the session.
func (w *walk) session() int { return min(w.scored, len(w.recent)) }

// newest returns the event of the session that has so many newer ones, as a place
// in Log.events.
func (w *walk) newest(newer int) int32 { return w.recent[(w.scored-1-newer)%len(w.recent)] }

// addEvent calls add with the term of each filter of an event, once for each
// object that carries it and counts.
func (p *compiled) addEvent(e *entry, add func(term int32)) {
	l := p.cases.log
	for _, o := range l.countedOf(e) {
		for _, t := range p.match.at(o) {
			add(t)
		}
	}
	if e.direct < 0 {
		return
	}
	for _, f := range l.direct.at(e.direct) {
		if t := p.termOf[f]; t >= 0 {
			add(t)
		}
	}
}
