// Package checkup finds faults of an app in what an engine answers about it: events that do not
// arrive or do not score, refusals, statistics and histories that nothing has maintained, keys
// that end. The command doctor and the console's overview show them. The package asks nothing
// and keeps nothing.
package checkup

import (
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// State is what a check has found.
type State string

// The states of a check.
const (
	OK      State = "ok"
	Fault   State = "fault"
	Unknown State = "unknown" // the engine did not answer what the check needs
)

// The names of the checks.
const (
	Strategy    = "strategy"
	Events      = "events"
	Refused     = "refused"
	DeadLetters = "dead letters"
	Statistics  = "statistics"
	Folds       = "folds"
	Keys        = "keys"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // of a fault: one command, or what to do in words
}

// Answers are what an engine has answered about an app. Nil: it did not, and a check that needs
// the answer is Unknown.
type Answers struct {
	Now        time.Time
	Usage      *api.Usage // of the last 30 days, the last of which is that of Now
	Versions   *api.StrategyVersions
	Active     *api.Strategy // nil also if no strategy is set
	Seen       *api.SeenEvents
	Crowd      *api.Crowd
	Recomputes *api.Recomputes
	Settings   *api.AppSettings
}

// Limits of what is in order.
const (
	// maintained is how old what the nightly round maintains may be: two nights, so that one
	// that is late is not a fault.
	maintained = 48 * time.Hour
	// failedLately is for how long the failure of a job is a fault, if none has succeeded since.
	failedLately = 7 * 24 * time.Hour
	// keySoon is how long before its end a key is a fault.
	keySoon = 14 * 24 * time.Hour
	// quietHours is from which hour of the day, in UTC, a day without events is a fault if the
	// same day of the week before had some.
	quietHours = 6
	// refusedShare is the share of refused among all events, in percent, from which they are a fault.
	refusedShare = 1
)

// Find makes the checks.
func Find(a Answers) []Check {
	return []Check{
		a.strategy(), a.events(), a.refused(), a.deadLetters(), a.statistics(), a.folds(), a.keys(),
	}
}

// Faults returns the checks that are not OK.
func Faults(checks []Check) (faults []Check) {
	for _, c := range checks {
		if c.State != OK {
			faults = append(faults, c)
		}
	}
	return faults
}

func ok(name, text string) Check { return Check{Name: name, State: OK, Text: text} }

func fault(name, text, remedy string) Check {
	return Check{Name: name, State: Fault, Text: text, Remedy: remedy}
}

func unknown(name string) Check {
	return Check{Name: name, State: Unknown, Text: "the engine did not answer what this check needs"}
}
