package lift

import (
	"fmt"
	"slices"
)

// Point is the lift of an arm as of the end of a day.
type Point struct {
	Day Day    `json:"day"`
	Arm string `json:"arm"`
	// Relative, Low and High are as in Lift.
	Relative *float64 `json:"relative"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
}

// points returns the lifts of a report as those of its last day.
func (r Report) points() []Point {
	points := make([]Point, len(r.Lift))
	for i, l := range r.Lift {
		points[i] = Point{r.To, l.Arm, l.Relative, l.Low, l.High}
	}
	return points
}

// Series adds up people for the lift over days: what a report would have said at the end of some of them. The weeks
// before do not adjust it, which keeps it small. Series of parts merge as tallies do.
type Series struct {
	Tallies []*Tally `json:"tallies"` // by day
}

// NewSeries returns an empty series of a question, of at most so many days before its last one, evenly spread. The
// error says what is wrong with the question.
func NewSeries(q Question, most int) (*Series, error) {
	s := &Series{}
	days := int(q.To - q.From)
	for i := range min(most, max(days, 0)) {
		at := q
		at.To, at.Plain = q.From+Day(days*i/min(most, days)), true
		t, err := NewTally(at)
		if err != nil {
			return nil, err
		}
		s.Tallies = append(s.Tallies, t)
	}
	return s, nil
}

// Add counts a person.
func (s *Series) Add(p Person) {
	for _, t := range s.Tallies {
		t.Add(p)
	}
}

// Merge adds a series of other people. The error says that it is one of another question.
func (s *Series) Merge(other *Series) error {
	if len(s.Tallies) != len(other.Tallies) {
		return fmt.Errorf("merge series of %d and %d days: the questions differ", len(s.Tallies), len(other.Tallies))
	}
	for i, t := range s.Tallies {
		if err := t.Merge(other.Tallies[i]); err != nil {
			return err
		}
	}
	return nil
}

// Into sets the series of a report of the same question.
func (s *Series) Into(r *Report) {
	var points []Point
	for _, t := range s.Tallies {
		t.Question.Currency = r.Currency
		points = append(points, t.Report().points()...)
	}
	r.Series = slices.Concat(points, r.points())
}
