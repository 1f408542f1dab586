package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// MaxAttempts is how many deliveries of a message may fail before it is buried
	// with the reason of the last failure. With waits of up to a minute between
	// deliveries, a backend may fail for a quarter of an hour. A delivery that found
	// no room in the process, or came too early, does not count.
	MaxAttempts = 20
	// MaxUnanswered is how many marked deliveries of a message may have ended their
	// processes before the message is buried: each took the deliveries of other messages
	// along, or would have.
	MaxUnanswered = 3
	// MaxWaits is how many deliveries leave the message unapplied before it goes back, or is
	// buried, as one that ends its process. Pub/Sub waits ever longer between them, for
	// minutes in all.
	MaxWaits = 5
	// MaxReturns is how often a message goes back to its topic, as a new one, before it is
	// buried as one that ends its process. Processes may have ended for another reason each
	// time, and nobody has to look for a message that only was unlucky.
	MaxReturns = 1
	// quietTime is how long a process must have run before it applies a message that may
	// have ended two. If processes end for another reason, they do so in this time, too.
	quietTime = 10 * time.Second
	// lastAttempt buries a message, whatever its deliveries found. Soon afterwards
	// Pub/Sub would do that itself: the dead-letter policy of the subscription knows
	// no reasons, and marks no profiles.
	lastAttempt = 95
	// markedBytes is the size of a message whose first delivery is marked, too.
	markedBytes = 256 << 10
	// settleTime is what a delivery leaves of its time to bury its message.
	settleTime = 10 * time.Second
)

// delivery is one delivery of a message.
type delivery struct {
	bus.Push
	name   string // of its mark; empty if it has none
	before store.Deliveries
	// unanswered are the open deliveries of other processes. This process lives, so its own
	// are only slow.
	unanswered int
}

// small reports whether the first delivery of a message has no marks.
//
// Marks are two requests and a read. What a small message costs is bounded, so hardly
// one ends its process, and with marks the delivery of one event takes 2.4 times as much
// CPU, that of Bigtable included (BenchmarkDeliver, 2026-11-22).
func small(p bus.Push) bool { return len(p.Message.Data) < markedBytes }

// attempts returns how many deliveries have failed if this one does. The first one of a
// small message must have failed if there is another.
func (d *delivery) attempts() int {
	n := d.before.Failed + 1
	if d.DeliveryAttempt > 1 && small(d.Push) {
		n++
	}
	return n
}

// early is the error of a delivery that must not apply its message yet. It counts as one
// that found no room.
type early string

func (e early) Error() string { return string(e) }

// Is makes an early delivery one that is to be sent again, as from a full process.
func (early) Is(target error) bool { return target == admission.ErrFull }

// Deliver applies a message. An error means that Pub/Sub must deliver it again.
//
// A message may end its process: with it the deliveries of other messages end, and their
// next deliveries find a mark that began and did not end. So does the next delivery after
// one that is only slow. These rules tell them apart:
//
//   - A process that lives ends its marks, however late: a mark has time of its own behind
//     the deadline of its delivery, the process repeats a write that failed, and it ends all
//     marks before it exits (see marks.go). So a delivery that ran into a deadline, a stop,
//     or an overload has failed. It is one of MaxAttempts.
//   - A mark names its process. A process never counts its own open marks against a message.
//   - A message with an open mark of another process is applied alone in the process. If it
//     ends this one too, it takes no other message along, and no other message has a mark.
//   - Processes also end for other reasons. A message that may have ended two waits until the
//     process has lived quietTime without it, and others are applied before it. So the next
//     such end hits another message.
//   - A message that may have ended MaxUnanswered processes is not applied. Its deliveries
//     only wait, MaxWaits times: a process that was stopped, or could not reach the store,
//     then ends its marks. No clock is compared, so none can be wrong. Then it goes back to
//     its topic, MaxReturns times, and after that it is buried.
func (a *Applier) Deliver(ctx context.Context, p bus.Push) (Result, error) {
	d := &delivery{Push: p}
	if p.DeliveryAttempt == 1 && small(p) {
		leave, err := a.turns.beside(ctx)
		if err != nil {
			return a.settle(ctx, d, Result{}, err)
		}
		defer leave()
		result, err := a.applyInTime(ctx, p)
		return a.settle(ctx, d, result, err)
	}
	ctx, leave, err := a.turn(ctx, d)
	if err != nil {
		return a.settle(ctx, d, Result{}, err)
	}
	defer leave()
	return a.deliverMarked(ctx, d)
}

// applyInTime applies a message, and leaves time to bury it.
func (a *Applier) applyInTime(ctx context.Context, p bus.Push) (Result, error) {
	if end, ok := deadline.End(ctx); ok {
		left := time.Until(end)
		var over context.CancelFunc
		ctx, over = deadline.Begin(ctx, left-min(settleTime, left/4))
		defer over()
	}
	return a.apply(ctx, p)
}

// turn reads the marks of a message and waits for its turn. It always returns a
// context.
func (a *Applier) turn(ctx context.Context, d *delivery) (context.Context, func(), error) {
	if err := a.look(ctx, d); err != nil {
		return ctx, nil, err
	}
	if d.unanswered == 0 {
		leave, err := a.turns.beside(ctx)
		return ctx, leave, err
	}
	turn, leave, err := a.turns.alone(ctx)
	if err != nil {
		return ctx, nil, err
	}
	// Another delivery of the message may have ended, or died, in the meantime.
	if err = a.look(turn, d); err != nil {
		leave()
		return ctx, nil, err
	}
	return turn, leave, nil
}

// look reads the marks of a message, and refuses to apply it too early.
func (a *Applier) look(ctx context.Context, d *delivery) (err error) {
	if d.before, err = a.Store.Users.Deliveries(ctx, d.Message.MessageID); err != nil {
		return err
	}
	d.unanswered = 0
	for _, name := range d.before.Open {
		if !a.marks.own(name) {
			d.unanswered++
		}
	}
	switch {
	case d.unanswered >= MaxUnanswered && d.before.Waited < MaxWaits:
		err := a.Store.Users.EndDelivery(ctx, d.Message.MessageID, a.marks.name(), store.DeliveryWaited)
		return errors.Join(early(fmt.Sprintf("%d deliveries have left no answer yet", d.unanswered)), err)
	case d.unanswered == MaxUnanswered-1 && a.uptime() < quietTime:
		return early("the process has just started, and the message may have ended two")
	}
	return nil
}

// started is when the process started.
var started = time.Now()

func (a *Applier) uptime() time.Duration {
	if a.Uptime != nil {
		return a.Uptime()
	}
	return time.Since(started)
}

// deliverMarked applies a message between the marks of its delivery.
func (a *Applier) deliverMarked(ctx context.Context, d *delivery) (result Result, err error) {
	d.name = a.marks.begin(d.Message.MessageID)
	// Also after a panic, which is answered, and if the answer to the mark of the
	// beginning was lost.
	defer func() { a.end(d.Message.MessageID, d.name, result.Fate, err) }()
	if err := a.Store.Users.BeginDelivery(ctx, d.Message.MessageID, d.name); err != nil {
		return a.settle(ctx, d, Result{}, err)
	}
	if d.unanswered >= MaxUnanswered {
		return a.giveUp(ctx, d)
	}
	result, err = a.applyInTime(ctx, d.Push)
	return a.settle(ctx, d, result, err)
}

// settle decides what an error means for the message.
func (a *Applier) settle(ctx context.Context, d *delivery, result Result, err error) (Result, error) {
	if err == nil {
		err = a.revived(ctx, d, result)
	}
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
