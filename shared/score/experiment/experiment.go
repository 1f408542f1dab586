package experiment

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/fault"
)

// Experiment gives each of some users one of several strategies of an app, so that these can be compared. The zero
// Experiment is none.
type Experiment struct {
	Name string `json:"name"`
	// Arms are what the users are divided among. The first is the control.
	Arms []Arm `json:"arms"`
	// Coverage is the share of the users who take part, 0 to 1: of each arm the same share. The others get the active
	// strategy, and are in no arm.
	Coverage float64 `json:"coverage"`
	// Seed decides which arm each user is in.
	Seed string `json:"seed"`
	// StartAt is when it begins, and EndAt when it ends by itself; zero: it does not.
	StartAt time.Time `json:"startAt"`
	EndAt   time.Time `json:"endAt,omitzero"`
	// StoppedAt is when a request stopped it; zero: none has.
	StoppedAt time.Time `json:"stoppedAt,omitzero"`
	// Promoted is the arm whose strategy was made the active one; "" if none was.
	Promoted string `json:"promoted,omitempty"`
	// Metric is what decides, per user: conversions, revenue or clicks. Hypothesis is what its authors expect, in their
	// words.
	Metric     string `json:"metric"`
	Hypothesis string `json:"hypothesis,omitempty"`
}

// Arm is one of the strategies of an experiment.
type Arm struct {
	Name string `json:"name"`
	// Strategy is the version of the strategy that its users get.
	Strategy int64 `json:"strategy"`
	// Weight is the share of those who take part. The weights of all arms add up to 1.
	Weight float64 `json:"weight"`
}

var metrics = []string{"conversions", "revenue", "clicks"}

// Assignment is the arm of an experiment that a user is in; zero: none.
type Assignment struct{ Experiment, Arm string }

// OfHoldout is the name under which the holdout of an app is reported: no experiment has it. HeldOut and Personalized
// are its arms.
const (
	OfHoldout    = "holdout"
	HeldOut      = "holdout"
	Personalized = "personalized"
)

const (
	maxArms       = 10
	maxHypothesis = 1_000 // bytes
	// slack is by how much the sum of the weights may differ from 1: three arms may have 0.333 each.
	slack = 0.001
	// exact is what the ends of ranges are rounded to: 0.1 + 0.2 ends where 0.3 does, and a hash, which is a multiple of
	// 1/10,000, is on the side of an end on which its decimal number is.
	exact = 1e9
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// On reports whether there is an experiment.
func (e Experiment) On() bool { return e.Name != "" }

// Runs reports whether users are in its arms at an instant.
func (e Experiment) Runs(now time.Time) bool {
	return e.On() && !now.Before(e.StartAt) && !e.Ended(now)
}

// Ended reports whether it has ended at an instant, by itself or by a request. It never goes on then.
func (e Experiment) Ended(now time.Time) bool {
	return !e.StoppedAt.IsZero() || !e.EndAt.IsZero() && !now.Before(e.EndAt)
}

// Arm returns which of the arms the user of a unit is in, false if in none. The arms have the ranges of GrowthBook:
// from the sum of the weights before them, as long as the share of their weight that takes part. So a larger coverage
// moves nobody from one arm to another.
func (e Experiment) Arm(unit string) (int, bool) {
	n, start := hash(e.Seed, unit), 0.
	for i, a := range e.Arms {
		if rounded(start) <= n && n < rounded(start+e.Coverage*a.Weight) {
			return i, true
		}
		start += a.Weight
	}
	return 0, false
}

func rounded(end float64) float64 { return math.Round(end*exact) / exact }

// Armed returns the arm of a name, false if there is none.
func (e Experiment) Armed(name string) (Arm, bool) {
	i := slices.IndexFunc(e.Arms, func(a Arm) bool { return a.Name == name })
	if i < 0 {
		return Arm{}, false
	}
	return e.Arms[i], true
}

// Refuse returns an error of kind fault.Invalid that names the experiment.
func (e Experiment) Refuse(format string, args ...any) error {
	return fault.New(fault.Invalid, "experiment %.70q: "+format, append([]any{e.Name}, args...)...)
}

// CheckChange returns what a change of a definition that runs may not change, of kind fault.Invalid: what was measured
// before would be of something else.
func (e Experiment) CheckChange(from Experiment) error {
	kept := func(what string, from any) error {
		return e.Refuse("%s must stay %v while it runs: only weights, coverage, endAt and hypothesis may change", what, from)
	}
	switch {
	case len(e.Arms) != len(from.Arms):
		return kept("the number of arms", len(from.Arms))
	case e.Seed != from.Seed:
		return kept("the seed", from.Seed)
	case !e.StartAt.Equal(from.StartAt):
		return kept("startAt", from.StartAt.Format(time.RFC3339))
	case e.Metric != from.Metric:
		return kept("the metric", from.Metric)
	}
	for i, was := range from.Arms {
		switch is := e.Arms[i]; {
		case is.Name != was.Name:
			return kept(fmt.Sprintf("the name of arms[%d]", i), was.Name)
		case is.Strategy != was.Strategy:
			return kept(fmt.Sprintf("the strategy of arm %q", was.Name), was.Strategy)
		}
	}
	return nil
}

// Check returns what is wrong with the definition, of kind fault.Invalid.
func (e Experiment) Check() error {
	refuse := e.Refuse
	switch {
	case !nameForm.MatchString(e.Name):
		return refuse("the name must be 1 to 64 letters, digits, _ or -")
	case e.Name == OfHoldout:
		return refuse("this is the name under which the users are reported who are held out: choose another one")
	case len(e.Arms) < 2 || len(e.Arms) > maxArms:
		return refuse("%d arms: must be 2 to %d", len(e.Arms), maxArms)
	case !(e.Coverage >= 0 && e.Coverage <= 1):
		return refuse("coverage %g: must be from 0 to 1", e.Coverage)
	case !validSeed(e.Seed):
		return refuse("seed %.70q: want 1 to %d bytes of printable text", e.Seed, maxSeed)
	case e.StartAt.IsZero():
		return refuse("startAt is missing")
	case !e.EndAt.IsZero() && !e.EndAt.After(e.StartAt):
		return refuse("endAt %s: must be after startAt, %s", e.EndAt.Format(time.RFC3339), e.StartAt.Format(time.RFC3339))
	case !slices.Contains(metrics, e.Metric):
		return refuse("metric %.70q: must be one of %s", e.Metric, strings.Join(metrics, ", "))
	case len(e.Hypothesis) > maxHypothesis || !utf8.ValidString(e.Hypothesis):
		return refuse("the hypothesis must be at most %d bytes of valid UTF-8", maxHypothesis)
	}
	sum := 0.
	for i, a := range e.Arms {
		first := slices.IndexFunc(e.Arms, func(other Arm) bool { return other.Name == a.Name })
		switch {
		case !nameForm.MatchString(a.Name):
			return refuse("arms[%d]: name %.70q: must be 1 to 64 letters, digits, _ or -", i, a.Name)
		case first < i:
			return refuse("arms[%d] and arms[%d] both have the name %q", first, i, a.Name)
		case a.Strategy < 1:
			return refuse("arm %q: strategy %d: must be a version, 1 or more", a.Name, a.Strategy)
		case !(a.Weight >= 1./steps && a.Weight <= 1):
			return refuse("arm %q: weight %g: must be from %g to 1", a.Name, a.Weight, 1./steps)
		}
		sum += a.Weight
	}
	if math.Abs(sum-1) > slack+1/exact {
		return refuse("the weights add up to %g: must add up to 1", rounded(sum))
	}
	return nil
}
