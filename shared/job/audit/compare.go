package audit

import (
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// tolerance is the relative difference that another order of addition may cause
// in a score.
const tolerance = 1e-9

// vanishing is the score below which a float64 loses digits, so that the
// tolerance does not hold. The audit ignores smaller scores.
const vanishing = 1e-290

// Difference is one disagreement of a profile or history with the log.
type Difference struct {
	User string `json:"userToken"`
	// Region is where the user is, if each user of the app lives in a region of their own.
	Region string `json:"region,omitempty"`
	// Which names the part that differs: the "stored" profile as clients get
	// it, the profile "computed" from blocks and log, the "history", the "log", or the "links".
	// A fault in the history only makes the user's profile slower to compute. A
	// user with a fault in the log has no profile.
	Which string `json:"which"`
	// What says how it differs. In a profile: "score", "missing" (an affinity
	// is not listed), "surplus" (an affinity should not be listed),
	// "lastEventAt", "known", "total" (the number of values that events score) or
	// "truncated" (it says that it leaves out values, and lists all, or it exceeds
	// its bounds). In any part: "damaged". In a history: a block is "missing". In links: "overlap" (two entries
	// hold the same instant), "unlisted" (an entry names a user, in Value, whose list lacks the token).
	What     string            `json:"what"`
	Facet    string            `json:"facet,omitempty"`
	Value    string            `json:"value,omitempty"`
	HalfLife strategy.HalfLife `json:"halfLife,omitzero"` // of a score
	// Want is the value by the log, Got the value that the audit found: a
	// score, a time or a boolean.
	Want any `json:"want,omitempty"`
	Got  any `json:"got,omitempty"`
}

// String returns the difference as one line.
func (d Difference) String() string {
	what := d.Which + " " + d.What
	if d.Facet != "" {
		what += fmt.Sprintf(" %s:%s", d.Facet, d.Value)
	} else if d.Value != "" {
		what += " " + d.Value
	}
	if !d.HalfLife.IsZero() {
		what += fmt.Sprintf(" (half-life %s)", d.HalfLife)
	}
	return fmt.Sprintf("%s: %s: want %v, got %v", d.User, what, d.Want, d.Got)
}

// compare reports where a profile is not between low and high, which list all
// values. The profile high counts all events of low and possibly more. All three
// are of the same instant.
func compare(got, low, high affinity.Profile, differ func(Difference)) {
	if !slices.Equal(got.HalfLives, high.HalfLives) {
		differ(Difference{What: "damaged", Want: high.HalfLives, Got: got.HalfLives})
		return
	}
	if low.Known && !got.Known || got.Known && !high.Known {
		differ(Difference{What: "known", Want: high.Known, Got: got.Known})
	}
	if got.Known && high.Known && (got.LastEventAt < low.LastEventAt || got.LastEventAt > high.LastEventAt) {
		differ(Difference{
			What: "lastEventAt", Want: event.FormatTime(high.LastEventAt), Got: event.FormatTime(got.LastEventAt),
		})
	}
	report, differs := differ, false
	differ = func(d Difference) {
		differs = true
		report(d)
	}
	leeway := affinity.StandardBounds().Leeway(got, low, high)
	if leeway.Exceeds() || got.Truncated() && len(got.Affinities) == len(high.Affinities) {
		differ(Difference{What: "truncated", Want: len(high.Affinities), Got: len(got.Affinities)})
	}
	lows, highs := byFilter(low), byFilter(high)
	for _, a := range got.Affinities {
		f := filter{a.Facet, a.Value}
		if highs[f] != nil && !leeway.MayList(a.Facet, a.Value) {
			differ(Difference{What: "surplus", Facet: a.Facet, Value: a.Value, Got: a.Scores[0]})
		}
		compareScores(f, a.Scores, lows[f], highs[f], high.HalfLives, differ)
		delete(lows, f)
	}
	for _, a := range low.Affinities {
		f := filter{a.Facet, a.Value}
		if _, unlisted := lows[f]; unlisted && !(got.Truncated() && leeway.MayMiss(a.Facet, a.Value)) {
			compareScores(f, nil, a.Scores, highs[f], high.HalfLives, differ)
		}
	}
	if !differs && (got.Total < len(low.Affinities) || got.Total > high.Total) {
		differ(Difference{What: "total", Want: high.Total, Got: got.Total})
	}
}

type filter struct{ facet, value string }

func byFilter(p affinity.Profile) map[filter][]float64 {
	scores := make(map[filter][]float64, len(p.Affinities))
	for _, a := range p.Affinities {
		scores[filter{a.Facet, a.Value}] = a.Scores
	}
	return scores
}

// compareScores reports the first half-life under which the score of a value is
// out of bounds. A profile that does not list the value has nil, which stands
// for zeros.
func compareScores(f filter, got, low, high []float64, halfLives []strategy.HalfLife, differ func(Difference)) {
	for i := range max(len(got), len(high)) {
		g, l, h := at(got, i), at(low, i), at(high, i)
		if max(g, h) < vanishing {
			continue
		}
		d := Difference{What: "score", Facet: f.facet, Value: f.value, Want: h, Got: g}
		if i < len(halfLives) {
			d.HalfLife = halfLives[i]
		}
		switch {
		case g < l*(1-tolerance):
			d.Want = l
		case g <= h*(1+tolerance):
			continue
		}
		if got == nil {
			d.What, d.Got = "missing", nil
		} else if high == nil {
			d.What, d.Want = "surplus", nil
		}
		differ(d)
		return
	}
}

func at(scores []float64, i int) float64 {
	if i < len(scores) {
		return scores[i]
	}
	return 0
}
