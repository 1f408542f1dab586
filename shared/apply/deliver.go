package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/enrich"
)

const (
	// MaxAttempts is how many deliveries a message gets before it is buried with
	// the reason of its last failure. With waits of up to a minute between
	// deliveries, a backend may fail for a quarter of an hour. The dead-letter
	// policy of the subscription knows no reasons, so it must allow more attempts.
	MaxAttempts = 20
	// MaxUnanswered is how many marked deliveries of a message may leave no answer
	// before it is buried: each may have ended the process, and with it the
	// deliveries of other messages.
	MaxUnanswered = 3
	// markedBytes is the size of a message whose first delivery is marked, too.
	markedBytes = 256 << 10
	// endTimeout limits the write of a mark after the work has ended.
	endTimeout = 5 * time.Second
)

// marked reports whether the begin and the end of a delivery are written. They are
// two requests and a read, so the first delivery of a small message goes without.
func marked(p bus.Push) bool {
	return p.DeliveryAttempt > 1 || len(p.Message.Data) >= markedBytes
}

// Deliver applies a message. An error means that Pub/Sub must deliver it again.
//
// A message whose earlier delivery left no answer may have ended the process. It is
// applied alone among such messages, and marked once its turn has come. So a message
// that ends the process again leaves no second mark on those that died with it.
func (a *Applier) Deliver(ctx context.Context, p bus.Push) (result Result, err error) {
	if !marked(p) {
		result, err = a.apply(ctx, p.Message.Data)
		return a.settle(ctx, p, result, err)
	}
	id := p.Message.MessageID
	open, err := a.Store.OpenDeliveries(ctx, id)
	if err != nil {
		return a.settle(ctx, p, Result{}, err)
	}
	if open > 0 {
		a.alone.Lock()
		defer a.alone.Unlock()
		// Another delivery of the message may have ended, or died, in the meantime.
		if open, err = a.Store.OpenDeliveries(ctx, id); err != nil {
			return a.settle(ctx, p, Result{}, err)
		}
	}
	if err := a.Store.BeginDelivery(ctx, id); err != nil {
		return a.settle(ctx, p, Result{}, err)
	}
	// Also after a panic, which is answered.
	defer func() { err = errors.Join(err, a.end(ctx, id, result.Fate)) }()
	if open >= MaxUnanswered {
		return a.giveUp(ctx, p, open)
	}
	result, err = a.apply(ctx, p.Message.Data)
	return a.settle(ctx, p, result, err)
}

// end writes that a delivery has ended with an answer.
func (a *Applier) end(ctx context.Context, message string, fate Fate) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if fate == "" || fate == Retried {
		return a.Store.EndDelivery(ctx, message)
	}
	return a.Store.ForgetDeliveries(ctx, message)
}

// settle decides what an error means for the message.
func (a *Applier) settle(ctx context.Context, p bus.Push, result Result, err error) (Result, error) {
	if err == nil {
		return result, nil
	}
	// A full instance says nothing about the message.
	busy := errors.Is(err, admission.ErrFull)
	var never permanent
	if busy || !errors.As(err, &never) && p.DeliveryAttempt < MaxAttempts {
		return Result{Fate: Retried}, fmt.Errorf("message %s, attempt %d: %w", p.Message.MessageID, p.DeliveryAttempt, err)
	}
	if err := a.bury(ctx, p, err); err != nil {
		return Result{}, err
	}
	return Result{Fate: Dead, Reason: err}, nil
}

// giveUp buries a message whose deliveries left no answer. Its events may be in the
// log. To mark the profiles of their users, giveUp decodes the message. If that ends
// the process as well, the next delivery buries the message without it; reads then
// count its events from the next refresh of their users on.
func (a *Applier) giveUp(ctx context.Context, p bus.Push, open int64) (Result, error) {
	var cause error = fmt.Errorf("%d deliveries left no answer: the process may have ended because of this message", open)
	if open == MaxUnanswered {
		var err error
		if cause, err = a.places(ctx, p.Message.Data, cause); err != nil {
			return a.settle(ctx, p, Result{}, err)
		}
	}
	if err := a.bury(ctx, p, cause); err != nil {
		return Result{}, err
	}
	return Result{Fate: Dead, Reason: cause}, nil
}

// places adds the places of a message's events to the reason why it is buried. A
// message that can never be applied has not been in the log.
func (a *Applier) places(ctx context.Context, data []byte, cause error) (error, error) {
	m, err := bus.DecodeMessage(data)
	if err != nil {
		return cause, nil
	}
	app, err := a.app(ctx, m.App)
	var never permanent
	if errors.As(err, &never) {
		return cause, nil
	} else if err != nil {
		return nil, err
	}
	if m.Kind == bus.Reenriched {
		logged, err := m.Logged()
		if err != nil {
			return cause, nil
		}
		return halfway{cause, app, enrich.Relogged(logged, nil)}, nil
	}
	events, err := m.Events()
	if err != nil {
		return cause, nil
	}
	return halfway{cause, app, enrich.LogEvents(events, nil, m.ReceivedAt)}, nil
}

// bury moves a message to the dead-letter topic. If its events may be in the
// log, it first marks the profiles of their users, so that reads compute them
// from the log.
func (a *Applier) bury(ctx context.Context, p bus.Push, cause error) error {
	var half halfway
	if errors.As(cause, &half) {
		if err := a.Profiles.Abandon(ctx, half.app, half.events); err != nil {
			return fmt.Errorf("give up message %s: %w", p.Message.MessageID, errors.Join(cause, err))
		}
	}
	return a.Bus.Bury(ctx, p, cause.Error())
}
