package apply

import (
	"context"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
)

// batch is the decoded events of a message.
type batch struct {
	n       int
	event   func(i int) *event.Event
	objects bus.Objects
	part    func(from, to int) (bus.Message, error) // a message of some of the events
}

// run returns how many events from one on may be in memory together with the
// filters of their objects, and what these cost.
func (b batch) run(from int) (n, cost int) {
	return enrich.Fit(b.n-from, func(i int) *event.Event { return b.event(from + i) }, b.objects)
}

// admit takes the memory of the rows of all events from the gate of the process.
// It reports whether they may be in memory at once; if not, it takes nothing.
func (b batch) admit(ctx context.Context) (bool, error) {
	// A row is in memory, encoded, and on its way to Bigtable.
	const copies = 3
	n, cost := b.run(0)
	if n < b.n {
		return false, nil
	}
	return true, admission.Take(ctx, int64(cost*copies))
}

// split publishes the events again in messages of consecutive events, each made
// when the one before it is sent. next returns the number of events of the message
// that begins with an event. Each message succeeds or fails on its own, so an event
// that cannot be applied holds up no other, and a redelivery repeats little.
func (a *Applier) split(ctx context.Context, b batch, next func(from int) int) (Result, error) {
	for from := 0; from < b.n; {
		to := min(from+next(from), b.n)
		part, err := b.part(from, to)
		if err == nil {
			err = a.Bus.Publish(ctx, part)
		}
		if err != nil {
			return Result{}, err
		}
		from = to
	}
	return Result{Fate: Split}, nil
}

// splitByCost splits events, with the filters of their objects, so that each
// message may be in memory.
func (a *Applier) splitByCost(ctx context.Context, b batch) (Result, error) {
	return a.split(ctx, b, func(from int) int {
		n, _ := b.run(from)
		return n
	})
}
