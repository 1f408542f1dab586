package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/profile"
)

// giveUp takes a message whose deliveries left no answer. It publishes the message again,
// or buries it. Its events may be in the log, so giveUp decodes a message that it buries to
// mark the profiles of their users. If that ends the process as well, the next delivery
// buries the message without it; reads then count its events from the next refresh of
// their users on.
func (a *Applier) giveUp(ctx context.Context, d *delivery) (Result, error) {
	var cause error = fmt.Errorf("%d deliveries left no answer: the process may have ended because of this message", d.unanswered)
	if d.Returns() < MaxReturns {
		if err := a.Bus.Return(ctx, d.Push); err != nil {
			return a.settle(ctx, d, Result{}, err)
		}
		return Result{Fate: Back, Reason: cause}, nil
	}
	if d.unanswered == MaxUnanswered {
		var err error
		if cause, err = a.places(ctx, d.Message.Data, cause); err != nil {
			return a.settle(ctx, d, Result{}, err)
		}
	}
	return a.bury(ctx, d, cause)
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
	if errors.As(err, &never) || err == nil && m.Kind == bus.SignedIn { // of sign-ins, the nightly round marks
		return cause, nil
	} else if err != nil {
		return nil, err
	}
	if m.Kind == bus.Reenriched {
		logged, err := m.Logged()
		if err != nil {
			return cause, nil
		}
		return halfway{cause, app, enrich.Relogged(logged, bus.Resolution{})}, nil
	}
	events, err := m.Events()
	if err != nil {
		return cause, nil
	}
	if m.Calls {
		if err := a.Profiles.Remember(ctx, app, events); err != nil {
			return nil, err
		}
	}
	return halfway{cause, app, enrich.LogEvents(events, bus.Resolution{}, m.ReceivedAt)}, nil
}

// bury moves a message to the dead-letter topic. If its events may be in the
// log, it first marks the profiles of their users, so that reads compute them
// from the log.
func (a *Applier) bury(ctx context.Context, d *delivery, cause error) (Result, error) {
	var half halfway
	if errors.As(cause, &half) {
		err := a.Profiles.Abandon(ctx, half.app, half.events)
		// All of their users are marked. That some are faulty holds up no message.
		var faulty profile.Faulty
		if errors.As(err, &faulty) {
			cause = fmt.Errorf("%w; replay it once every instance runs the newest release: %w", cause, faulty)
		} else if err != nil {
			return Result{}, fmt.Errorf("give up message %s: %w", d.Message.MessageID, errors.Join(cause, err))
		}
	}
	if err := a.Bus.Bury(ctx, d.Push, cause.Error()); err != nil {
		return Result{}, err
	}
	if app := d.Message.Attributes[bus.AttrApp]; app != "" {
		// The dead letter itself is what counts: without the row it only is in no number.
		if err := a.Store.Usage.PutDeadLetter(ctx, app, d.BuriedAs()); err != nil {
			cause = fmt.Errorf("%w; the app's number of dead letters lacks it: %w", cause, err)
		}
	}
	return Result{Fate: Dead, Reason: cause}, nil
}

// revived counts a message no longer as a dead letter if it was one.
func (a *Applier) revived(ctx context.Context, d *delivery, result Result) error {
	id := d.Message.Attributes[bus.AttrBuried]
	if id == "" || result.App == "" || result.Fate != Applied {
		return nil
	}
	return a.Store.Usage.ForgetDeadLetter(ctx, result.App, id)
}
