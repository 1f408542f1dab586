package reports

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/score/experiment"
)

// definition says which arm each user of an app is in. Users who are held out are in no arm of an experiment.
type definition struct {
	Holdout experiment.Holdout `json:"holdout,omitzero"`
	// Experiment has the name, the arms, the coverage and the seed; nil: the holdout itself is reported.
	Experiment *experiment.Experiment `json:"experiment,omitempty"`
}

// defined is an experiment of an app with the time in which it ran.
type defined struct {
	definition
	name       string
	since      time.Time // as exposures name it
	start, end time.Time // as days are counted; end is zero until it has ended
	metric     lift.Metric
}

// ErrUnknown means that an app has no experiment of a name now, or holds nobody out.
var ErrUnknown = errors.New("the app does not have it now")

// definedBy returns the experiment of an app that has a name: the holdout, or the experiment that the app has. The
// error is ErrUnknown, or of kind fault.Invalid before the experiment begins.
func definedBy(app config.App, name string, now time.Time) (defined, error) {
	d := defined{definition: definition{Holdout: app.Holdout}, name: name}
	switch e := app.Experiment; {
	case name == experiment.OfHoldout && app.Holdout.On():
		d.since = app.HoldoutSince
		if d.start = d.since; d.start.After(now) { // the clock of the store is ahead
			d.start = now
		}
	case name == experiment.OfHoldout || !e.On() || e.Name != name:
		return d, fmt.Errorf("experiment %q of app %q: %w", name, app.ID, ErrUnknown)
	case now.Before(e.StartAt):
		return d, fault.New(fault.Invalid, "experiment %q begins at %s: there is nothing to report yet", name,
			e.StartAt.UTC().Format(time.RFC3339))
	default:
		d.Experiment = &experiment.Experiment{Name: name, Arms: e.Arms, Coverage: e.Coverage, Seed: e.Seed}
		d.since, d.start, d.metric = e.StartAt, e.StartAt, lift.Metric(e.Metric)
		if d.end = e.EndAt; !e.StoppedAt.IsZero() {
			d.end = e.StoppedAt
		}
		if d.end.After(now) {
			d.end = time.Time{}
		}
	}
	return d, nil
}

// allOf returns what a night reports of an app.
func allOf(app config.App, now time.Time) (all []defined) {
	for _, name := range []string{experiment.OfHoldout, app.Experiment.Name} {
		if d, err := definedBy(app, name, now); err == nil {
			all = append(all, d)
		}
	}
	return all
}

// arms returns the arms with their weights, the control first.
func (d definition) arms() (arms []lift.Arm) {
	if d.Experiment == nil {
		share := d.Holdout.Share
		return []lift.Arm{{Name: experiment.HeldOut, Weight: share}, {Name: experiment.Personalized, Weight: 1 - share}}
	}
	for _, a := range d.Experiment.Arms {
		arms = append(arms, lift.Arm{Name: a.Name, Weight: a.Weight})
	}
	return arms
}

// arm returns the arm of the user of a unit, "" if they are in none.
func (d definition) arm(unit string) string {
	heldOut := d.Holdout.Has(unit)
	switch {
	case d.Experiment == nil && heldOut:
		return experiment.HeldOut
	case d.Experiment == nil:
		return experiment.Personalized
	case heldOut:
		return ""
	}
	if i, ok := d.Experiment.Arm(unit); ok {
		return d.Experiment.Arms[i].Name
	}
	return ""
}

// text returns the definition as JSON, and its hash.
func (d definition) text() (text, hash string, err error) {
	b, err := json.Marshal(d)
	if err != nil {
		return "", "", fmt.Errorf("encode the definition of an experiment: %w", err)
	}
	sum := sha256.Sum256(b)
	return string(b), fmt.Sprintf("%x", sum[:8]), nil
}
