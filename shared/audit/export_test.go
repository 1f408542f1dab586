package audit

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
)

// OnWait replaces the waits between readings.
func (a *Auditor) OnWait(f func(context.Context, time.Duration) error) { a.wait = f }

// TakeByReference sets how many events of a user the reference takes.
func (a *Auditor) TakeByReference(n int) { a.most = n }

// Compare is compare.
func Compare(got, low, high affinity.Profile) (list []Difference) {
	compare(got, low, high, func(d Difference) { list = append(list, d) })
	return list
}

// Readings is how often a user who differs is read.
var Readings = len(pauses) + 1
