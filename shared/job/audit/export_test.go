package audit

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// OnSleep replaces the pauses between readings.
func (a *Auditor) OnSleep(f func(context.Context, time.Duration) error) { a.sleep = f }

// SetMaxEvents sets how many events of a user are compared with the reference.
func (a *Auditor) SetMaxEvents(n int) { a.maxEvents = n }

// SetHeld sets how many values of a user the audit holds.
func (a *Auditor) SetHeld(n int) { a.held.Values = n }

// Compare returns what compare reports.
func Compare(got, low, high affinity.Profile) (list []Difference) {
	compare(got, low, high, func(d Difference) { list = append(list, d) })
	return list
}

// Readings is how often a user who differs is read at most.
var Readings = len(pauses) + 1
