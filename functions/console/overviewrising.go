package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/rising", section: "overview", template: "rising",
		fragment: "rising", poll: true, // while the engine is busy the link stays
		load: loadRising})
}

// rising is which values gain in people's profiles.
type rising struct {
	Values []riser
	People int    // that were compared
	Recent string // the half-life of the later view
	Why    string // nothing can be said
}

// riser is a value with the mean of its shares in people's profiles.
type riser struct {
	Facet, Value  string
	Before, After float64
}

// Rise is by how much the share rises.
func (r riser) Rise() string { return change(r.ratio() - 1) }

func (r riser) ratio() float64 { return r.After / r.Before }

// Shares says what rises from what.
func (r riser) Shares() string { return fmt.Sprintf("%.1f → %.1f %%", 100*r.Before, 100*r.After) }

const (
	// recently is the half-life of the later view in days, if the active strategy has a longer one or none.
	recently = 7
	// fewDays is the half-life in days from which a profile is no view of the last days.
	fewDays = 14
	// leastRise is the least rise that is shown, of values with a part of leastShare in profiles. The two
	// views are of the same people, so chance moves them less.
	leastRise  = 1.05
	leastShare = 0.01
	mostRises  = 6
	// risingSample is how many people are compared.
	risingSample = 500
	// risingLife is how long what rises is kept: it changes with days, and costs two profiles of each person.
	risingLife = 5 * time.Minute
	keptRising = 1000
)

// trends keeps what rises, by app and key. It is safe for concurrent use.
type trends struct {
	now  func() time.Time
	kept cache.Map[string, keptTrend]
}

type keptTrend struct {
	rising
	at      time.Time
	version int64
}

func newTrends(now func() time.Time) *trends {
	return &trends{now, cache.New[string, keptTrend](keptRising)}
}

func loadRising(v *visit) (any, error) {
	v.title = "What rises"
	if !v.may(auth.Recommendation) {
		return &rising{Why: "The key of this session lacks the permission recommendation."}, nil
	}
	active, _, err := readActive(v)
	if err != nil {
		return nil, err
	}
	if active.Version == 0 {
		return &rising{Why: "Nothing can rise before a strategy is set."}, nil
	}
	t := v.console.trends
	by := v.session.App + "\x00" + v.session.Key // a key may be for some indexes
	if kept, ok := t.kept.Get(by); ok && kept.version == active.Version && t.now().Sub(kept.at) < risingLife {
		return &kept.rising, nil
	}
	r, err := compareDays(v, active.Strategy)
	if err != nil {
		return nil, err
	}
	if r.Why == "" {
		t.kept.Set(by, keptTrend{*r, t.now(), active.Version})
	}
	return r, nil
}

// compareDays compares profiles in which the last days count most with profiles in which all events count
// alike: what has a larger part of the first rises. One of the two is the active strategy's.
func compareDays(v *visit, active strategy.Strategy) (*rising, error) {
	other, later := active, active.HalfLives
	short := len(active.HalfLives) > 0 && active.HalfLives[0].Millis() < strategy.Days(fewDays).Millis()
	other.HalfLives = nil
	if !short {
		other.HalfLives = strategy.InDays(recently)
		later = other.HalfLives
	}
	text, err := json.Marshal(other)
	if err != nil {
		return nil, fmt.Errorf("encode a strategy: %w", err)
	}
	got, _, err := askPreview(v, string(text), risingSample)
	if isRefusal(err) {
		return &rising{Why: refusalText(err) + "."}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &rising{People: got.Known, Recent: span(later[0].String())}
	for _, f := range got.Facets {
		for _, m := range f.Movers {
			one := riser{Facet: f.Facet, Value: m.Value, Before: m.ShareBefore, After: m.ShareAfter}
			if short {
				one.Before, one.After = one.After, one.Before
			}
			if one.After >= leastShare && one.Before > 0 && one.ratio() >= leastRise {
				r.Values = append(r.Values, one)
			}
		}
	}
	slices.SortStableFunc(r.Values, func(a, b riser) int { return cmp.Compare(b.ratio(), a.ratio()) })
	r.Values = r.Values[:min(len(r.Values), mostRises)]
	return r, nil
}
