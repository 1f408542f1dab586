package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// MaxAttempts is how many deliveries of a message may fail before it is buried
	// with the reason of the last failure. With waits of up to a minute between
	// deliveries, a backend may fail for a quarter of an hour. A delivery that found
	// no room in the process does not count.
	MaxAttempts = 20
	// MaxUnanswered is how many deliveries of a message may leave no answer before it is
	// buried: each may have ended the process, and with it the deliveries of other
	// messages.
	MaxUnanswered = 3
	// lastAttempt buries a message, whatever its deliveries found. Soon afterwards
	// Pub/Sub would do that itself: the dead-letter policy of the subscription knows
	// no reasons, and marks no profiles.
	lastAttempt = 95
	// markedBytes is the size of a message whose first delivery is marked, too.
	markedBytes = 256 << 10
	// endTimeout limits the write of a mark after the work has ended, firstEndTimeout
	// that of a first delivery without a mark of its beginning. Nothing depends on it
	// but a count.
	endTimeout      = 10 * time.Second
	firstEndTimeout = time.Second
)

// delivery is one delivery of a message.
type delivery struct {
	bus.Push
	name   string // of its mark; empty if it has none
	before store.Deliveries
}

// marked reports whether the beginning and the end of a delivery are written. They
// are two requests and a read.
//
// The first delivery of a small message goes without. What a message costs is
// bounded, so hardly one ends its process, and with marks the delivery of one event
// takes 2.4 times as much CPU, that of Bigtable included (BenchmarkDeliver, 2026-11-22).
// Only if it ends and the message must be delivered again, that end is written.
func marked(p bus.Push) bool {
	return p.DeliveryAttempt != 1 || len(p.Message.Data) >= markedBytes
}

// attempts returns how many deliveries have failed if this one does.
func (d *delivery) attempts() int { return d.before.Failed + 1 }

// unanswered returns how many earlier deliveries left no answer. A first one without
// marks of which no end is written counts as one. It may not have reached a process,
// or its end could not be written in an outage. So it adds one at most and
// makes no message wait to be applied alone, and none is buried before a marked one,
// too, left no answer while it was alone in its process.
func (d *delivery) unanswered() int {
	n := d.before.Open
	if d.DeliveryAttempt > 1 && len(d.Message.Data) < markedBytes && !d.before.FirstEnded {
		n++
	}
	return n
}

// Deliver applies a message. An error means that Pub/Sub must deliver it again.
//
// A message whose earlier delivery left no answer may have ended the process. It is
// applied alone in the process, and marked once its turn has come. So it takes no
// other message along if it ends the process again, and a message that died with it
// gets no second mark.
func (a *Applier) Deliver(ctx context.Context, p bus.Push) (Result, error) {
	d := &delivery{Push: p}
	if !marked(p) {
		return a.deliverFirst(ctx, d)
	}
	ctx, leave, err := a.turn(ctx, d)
	if err != nil {
		return a.settle(ctx, d, Result{}, err)
	}
	defer leave()
	return a.deliverMarked(ctx, d)
}

// deliverFirst applies a message for the first time, without a mark of the beginning.
func (a *Applier) deliverFirst(ctx context.Context, d *delivery) (result Result, err error) {
	defer func() { // also after a panic, which is answered
		if result.Fate == "" || result.Fate == Retried {
			ctx, cancel := deadline.Detach(ctx, firstEndTimeout)
			defer cancel()
			err = errors.Join(err, a.Store.EndDelivery(ctx, d.Message.MessageID, store.FirstDelivery, !errors.Is(err, admission.ErrFull)))
		}
	}()
	leave, err := a.turns.beside(ctx)
	if err != nil {
		return a.settle(ctx, d, Result{}, err)
	}
	defer leave()
	result, err = a.applyInTime(ctx, d.Push)
	return a.settle(ctx, d, result, err)
}

// applyInTime applies a message, and leaves time to write the end of the delivery. Without
// it, a delivery that waits for a slow backend to the end of its request would look like
// one that ended its process, and three of them would bury the message.
func (a *Applier) applyInTime(ctx context.Context, p bus.Push) (Result, error) {
	if end, ok := deadline.End(ctx); ok {
		left := time.Until(end)
		var over context.CancelFunc
		ctx, over = deadline.Begin(ctx, left-min(endTimeout, left/4))
		defer over()
	}
	return a.apply(ctx, p)
}

// turn reads the marks of a message and waits for its turn. It always returns a
// context.
func (a *Applier) turn(ctx context.Context, d *delivery) (context.Context, func(), error) {
	var err error
	if d.before, err = a.Store.Deliveries(ctx, d.Message.MessageID); err != nil {
		return ctx, nil, err
	}
	if d.before.Open == 0 {
		leave, err := a.turns.beside(ctx)
		return ctx, leave, err
	}
	turn, leave, err := a.turns.alone(ctx)
	if err != nil {
		return ctx, nil, err
	}
	// Another delivery of the message may have ended, or died, in the meantime.
	if d.before, err = a.Store.Deliveries(turn, d.Message.MessageID); err != nil {
		leave()
		return ctx, nil, err
	}
	return turn, leave, nil
}

// deliverMarked applies a message between the marks of its delivery.
func (a *Applier) deliverMarked(ctx context.Context, d *delivery) (result Result, err error) {
	d.name = rand.Text()
	// Also after a panic, which is answered, and if the answer to the mark of the
	// beginning was lost.
	defer func() {
		if endErr := a.end(ctx, d, result.Fate, err); endErr != nil {
			result, err = Result{Fate: Retried}, errors.Join(err, endErr)
		}
	}()
	if err := a.Store.BeginDelivery(ctx, d.Message.MessageID, d.name); err != nil {
		return a.settle(ctx, d, Result{}, err)
	}
	if d.unanswered() >= MaxUnanswered {
		return a.giveUp(ctx, d)
	}
	result, err = a.applyInTime(ctx, d.Push)
	return a.settle(ctx, d, result, err)
}

// end writes that a delivery has ended with an answer.
func (a *Applier) end(ctx context.Context, d *delivery, fate Fate, err error) error {
	ctx, cancel := deadline.Detach(ctx, endTimeout)
	defer cancel()
	if fate == "" || fate == Retried {
		return a.Store.EndDelivery(ctx, d.Message.MessageID, d.name, !errors.Is(err, admission.ErrFull))
	}
	return a.Store.ForgetDeliveries(ctx, d.Message.MessageID)
}

// settle decides what an error means for the message.
func (a *Applier) settle(ctx context.Context, d *delivery, result Result, err error) (Result, error) {
	if err == nil {
		return result, nil
	}
	var never permanent
	var gone deleted
	switch {
	case errors.As(err, &gone):
		return Result{Fate: Dropped, App: gone.app}, nil
	case errors.As(err, &never):
		return a.bury(ctx, d, err)
	case d.DeliveryAttempt >= lastAttempt:
	case errors.Is(err, admission.ErrFull), d.attempts() < MaxAttempts:
		return Result{Fate: Retried}, fmt.Errorf("message %s, attempt %d: %w", d.Message.MessageID, d.DeliveryAttempt, err)
	}
	var half halfway
	if !errors.As(err, &half) {
		// An earlier delivery may have written the log. If the app cannot be read, the
		// message is buried all the same.
		placed, placeErr := a.places(ctx, d.Message.Data, err)
		if errors.As(placeErr, &gone) {
			return Result{Fate: Dropped, App: gone.app}, nil
		}
		if placeErr == nil {
			err = placed
		}
	}
	return a.bury(ctx, d, err)
}
