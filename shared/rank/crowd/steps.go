package crowd

import "slices"

const (
	reach    = 10  // steps from the first object of a sequence to the second, at most
	maxStep  = 20  // objects of a step that sequences hold
	maxMoves = 500 // sequences of one user, a day
	maxSet   = 50  // objects of a set

	maxBaskets = 50 // baskets of one user, a day
)

// moves are what a sequence counts by its steps: the least number that makes the parts of
// 1 whole, divided by the steps.
const moves = 2520

// units is what a sequence counts over a number of steps. Within one it counts as over one.
func units(steps int) uint32 { return uint32(moves / max(steps, 1)) }

// wholeSet is what a set counts, shared out among its objects, and damped what the weights of
// an object hold beside its sets: that of one more set of five.
const (
	wholeSet = 10_080
	damped   = wholeSet / 5
)

// stepper counts the sequences and sets of a user.
type stepper struct {
	sink Sink

	steps [reach + 1][]uint32 // the newest, in a ring
	at    int                 // in steps, the newest
	n     int                 // steps of the user, up to those that the ring holds
	time  int64
	day   int64
	left  int // sequences that remain of the day

	set []uint32

	basket  []uint32
	baskets int // that remain of the day
}

// add adds the objects for which an event counts.
func (s *stepper) add(time int64, bought bool, objects []uint32) {
	if s.n == 0 || time != s.time {
		s.endBasket()
		if d := dayOf(time); s.n == 0 || d != s.day {
			s.day, s.left, s.baskets = d, maxMoves, maxBaskets
		}
		s.time, s.at, s.n = time, (s.at+1)%len(s.steps), min(s.n+1, len(s.steps))
		s.steps[s.at] = s.steps[s.at][:0]
	}
	for _, b := range objects {
		if step := &s.steps[s.at]; len(*step) < maxStep && !slices.Contains(*step, b) {
			s.follow(b)
			*step = append(*step, b)
		}
		if bought && len(s.basket) < maxStep && !slices.Contains(s.basket, b) {
			s.basket = append(s.basket, b)
		}
		if !slices.Contains(s.set, b) {
			if s.set = append(s.set, b); len(s.set) == maxSet {
				s.endSet()
			}
		}
	}
}

// follow counts the sequences that end with an object of the newest step.
func (s *stepper) follow(b uint32) {
	for back := range s.n {
		for _, a := range s.steps[(s.at-back+len(s.steps))%len(s.steps)] {
			if a == b {
				continue
			}
			if s.left == 0 {
				return
			}
			s.left--
			s.sink.Link(Sequence, a, b, units(back))
			if back == 0 {
				s.sink.Link(Sequence, b, a, units(back))
			}
		}
	}
}

// endSet counts what the set holds, and begins the next.
func (s *stepper) endSet() {
	if len(s.set) == 0 {
		return
	}
	n := uint32(wholeSet / len(s.set))
	for _, a := range s.set {
		s.sink.Own(a, n)
		for _, b := range s.set {
			if a != b {
				s.sink.Link(Together, a, b, n)
			}
		}
	}
	s.set = s.set[:0]
}

// endBasket counts what the basket holds.
func (s *stepper) endBasket() {
	if len(s.basket) == 0 {
		return
	}
	if s.baskets > 0 {
		for _, a := range s.basket {
			for _, b := range s.basket {
				if a != b {
					s.sink.Link(Bought, a, b, 1)
				}
			}
		}
	}
	s.baskets--
	s.basket = s.basket[:0]
}

// end ends the user.
func (s *stepper) end() {
	s.endBasket()
	s.endSet()
	s.n = 0
}
