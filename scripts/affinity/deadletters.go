package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/bus"
)

// runAttribute marks what one run of replay has put back, so that it can tell a message that failed again.
const runAttribute = "replayRun"

const (
	pullMost     = 100             // messages a pull
	pullWait     = 5 * time.Second // how long a pull may wait for one
	pullsInVain  = 2               // Pub/Sub may answer a pull with nothing while it holds something
	publishAbout = 16              // messages published at once
	ackMost      = 500             // ids a request; Pub/Sub takes 512 KiB
)

// What a dead letter carries of its own: Pub/Sub adds attributes that begin with deadLetterPrefix, process those of deadLetterNames.
const deadLetterPrefix = "CloudPubSubDeadLetter"

var deadLetterNames = []string{bus.AttrReason, "messageId", "deliveryAttempt"}

// deadLetters is a dead-letter subscription with the topic its messages came from.
type deadLetters struct {
	from         *pubsub.SubscriptionAdminClient
	subscription string
	to           *pubsub.TopicAdminClient
	topic        string
	out          io.Writer

	run  string            // the id of this run
	held map[string]string // message id -> newest ack id: messages taken but neither put back nor released
}

func (d *deadLetters) close() error { return errors.Join(d.from.Close(), d.to.Close()) }

// list prints every message once and leaves all of them.
func (d *deadLetters) list(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.release(ctx)) }()
	err = d.each(ctx, func(messages []*pubsubpb.ReceivedMessage) (bool, error) {
		fresh := false
		for _, m := range messages {
			if !d.hold(m) {
				continue
			}
			fresh = true
			if err := d.print("", m); err != nil {
				return false, err
			}
		}
		return fresh, nil
	})
	if err != nil {
		return err
	}
	if len(d.held) == 0 {
		return d.say("no dead letters")
	}
	return d.say("%d dead letters, none was moved", len(d.held))
}

// replay prints every message and puts it back, until nothing new comes. What fails again during the run is told, not tried again, and is
// no failure of the run: later ones it would not see either.
func (d *deadLetters) replay(ctx context.Context) (err error) {
	moved := map[string]bool{}
	defer func() { err = errors.Join(err, d.release(ctx)) }()
	err = d.each(ctx, func(messages []*pubsubpb.ReceivedMessage) (bool, error) {
		fresh := false
		var back []*pubsubpb.ReceivedMessage
		for _, m := range messages {
			again := m.Message.Attributes[runAttribute] == d.run
			switch {
			case moved[m.Message.MessageId]: // its acknowledgement was lost
			case !d.hold(m):
				continue
			case again:
				fresh = true
				if err := d.print("failed again: ", m); err != nil {
					return false, err
				}
				continue
			default:
				fresh = true
				if err := d.print("", m); err != nil {
					return false, err
				}
			}
			back = append(back, m)
		}
		return fresh, d.putBack(ctx, back, moved)
	})
	if err != nil {
		return fmt.Errorf("%w\n%d dead letters were put back before that; run the same command again for the rest", err, len(moved))
	}
	if len(moved) == 0 {
		return d.say("no dead letters")
	}
	if err := d.say("%d dead letters put back", len(moved)); err != nil {
		return err
	}
	if len(d.held) > 0 {
		return d.say("%d of them failed again and stay dead letters: the reason is above", len(d.held))
	}
	return nil
}

func (d *deadLetters) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(d.out, format+"\n", args...); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// each pulls until several pulls in a row bring nothing new; handle tells whether its messages were.
func (d *deadLetters) each(ctx context.Context, handle func([]*pubsubpb.ReceivedMessage) (bool, error)) error {
	for vain := 0; vain < pullsInVain; {
		messages, err := d.pull(ctx)
		if err != nil {
			return err
		}
		fresh, err := handle(messages)
		if err != nil {
			return err
		}
		vain++
		if fresh {
			vain = 0
		}
	}
	return nil
}

func (d *deadLetters) pull(ctx context.Context) ([]*pubsubpb.ReceivedMessage, error) {
	short, cancel := context.WithTimeout(ctx, pullWait)
	defer cancel()
	answer, err := d.from.Pull(short, &pubsubpb.PullRequest{Subscription: d.subscription, MaxMessages: pullMost})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case status.Code(err) == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("pull from %s: %w", d.subscription, err)
	}
	return answer.ReceivedMessages, nil
}

// hold keeps a message from others until release; false when it is held already and came again because its time ran out.
func (d *deadLetters) hold(m *pubsubpb.ReceivedMessage) bool {
	_, known := d.held[m.Message.MessageId]
	d.held[m.Message.MessageId] = m.AckId
	return !known
}

// putBack publishes the messages and acknowledges those that the topic has.
func (d *deadLetters) putBack(ctx context.Context, messages []*pubsubpb.ReceivedMessage, moved map[string]bool) error {
	var group errgroup.Group
	group.SetLimit(publishAbout)
	done := make([]bool, len(messages))
	for i, m := range messages {
		if moved[m.Message.MessageId] {
			done[i] = true
			continue
		}
		group.Go(func() error {
			request := &pubsubpb.PublishRequest{Topic: d.topic, Messages: []*pubsubpb.PubsubMessage{original(m.Message, d.run)}}
			if _, err := d.to.Publish(ctx, request); err != nil {
				return fmt.Errorf("publish message %s to %s: %w", m.Message.MessageId, d.topic, err)
			}
			done[i] = true
			return nil
		})
	}
	failed := group.Wait()
	var acks []string
	for i, m := range messages {
		if done[i] {
			acks = append(acks, m.AckId)
			moved[m.Message.MessageId] = true
			delete(d.held, m.Message.MessageId)
		}
	}
	if len(acks) > 0 {
		request := &pubsubpb.AcknowledgeRequest{Subscription: d.subscription, AckIds: acks}
		if err := d.from.Acknowledge(ctx, request); err != nil {
			failed = errors.Join(failed, fmt.Errorf("take %d messages that were put back off %s: %w", len(acks), d.subscription, err))
		}
	}
	return failed
}

// original is the message as it was before it became a dead letter, marked with the run.
func original(m *pubsubpb.PubsubMessage, run string) *pubsubpb.PubsubMessage {
	attributes := maps.Clone(m.Attributes)
	maps.DeleteFunc(attributes, func(name, _ string) bool {
		return slices.Contains(deadLetterNames, name) || strings.HasPrefix(name, deadLetterPrefix)
	})
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes[runAttribute] = run
	return &pubsubpb.PubsubMessage{Data: m.Data, Attributes: attributes}
}

// release gives held messages back to the subscription at once, also when the run was interrupted.
func (d *deadLetters) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullWait)
	defer cancel()
	for acks := range slices.Chunk(slices.Collect(maps.Values(d.held)), ackMost) {
		request := &pubsubpb.ModifyAckDeadlineRequest{Subscription: d.subscription, AckIds: acks, AckDeadlineSeconds: 0}
		if err := d.from.ModifyAckDeadline(ctx, request); err != nil {
			return fmt.Errorf("give messages back to %s: %w", d.subscription, err)
		}
	}
	return nil
}

// print tells one message: id, app, deliveries before it was set aside, publish time, size, reason.
func (d *deadLetters) print(mark string, m *pubsubpb.ReceivedMessage) error {
	attributes := m.Message.Attributes
	attempts := cmp.Or(attributes["deliveryAttempt"], attributes[deadLetterPrefix+"SourceDeliveryCount"], "-")
	published := cmp.Or(attributes[deadLetterPrefix+"SourceTopicPublishTime"], m.Message.PublishTime.AsTime().Format(time.RFC3339))
	return d.say("%s%s  app %s  attempts %s  published %s  %d bytes  %s", mark, m.Message.MessageId,
		cli.Printable(cmp.Or(attributes[bus.AttrApp], "-")), cli.Printable(attempts), cli.Printable(published), len(m.Message.Data),
		cli.Printable(cmp.Or(attributes[bus.AttrReason], "no reason given")))
}
