// Package deadletter reads the dead letters of the events topic and publishes
// them again.
//
// It is separate from the command so that tests can run it against a Pub/Sub
// server of their own. Dead letters stay in their subscription until the topic
// has them again; the package keeps nothing.
package deadletter

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/event/bus"
)

// runAttribute marks the messages that one run has replayed, so that the run
// recognizes a message that failed again.
const runAttribute = "replayRun"

const (
	maxPull       = 100             // messages per pull
	pullTimeout   = 5 * time.Second // how long a pull may wait for a message
	maxEmptyPulls = 2               // Pub/Sub may answer a pull with nothing although it holds messages
	maxPublishing = 16              // messages in flight to the topic
	maxAcks       = 500             // ids per request; Pub/Sub takes 512 KiB
)

// Attributes that a dead letter has beside its own: Pub/Sub adds those that begin
// with pubsubPrefix, process those of processAttributes.
const pubsubPrefix = "CloudPubSubDeadLetter"

var processAttributes = []string{bus.AttrReason, "messageId", "deliveryAttempt"}

// Options name the subscription of the dead letters and the topic that they came
// from.
type Options struct {
	Project, Topic, Subscription string
}

// Queue is a dead-letter subscription with the topic of its messages.
type Queue struct {
	from         *pubsub.SubscriptionAdminClient
	subscription string
	to           *pubsub.TopicAdminClient
	topic        string
	out          io.Writer

	run string // id of this run
	// held maps the id of each message that was pulled, and neither replayed nor
	// released, to its newest ack id.
	held map[string]string
}

// Open connects to Pub/Sub. List and Replay print each message to out.
func Open(ctx context.Context, o Options, out io.Writer, options ...option.ClientOption) (*Queue, error) {
	from, err := pubsub.NewSubscriptionAdminClient(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to Pub/Sub for project %s: %w", o.Project, err)
	}
	to, err := pubsub.NewTopicAdminClient(ctx, options...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to Pub/Sub for project %s: %w", o.Project, err), from.Close())
	}
	return &Queue{
		from: from, subscription: fmt.Sprintf("projects/%s/subscriptions/%s", o.Project, o.Subscription),
		to: to, topic: fmt.Sprintf("projects/%s/topics/%s", o.Project, o.Topic),
		out: out, run: rand.Text(), held: map[string]string{},
	}, nil
}

// Close ends the connections.
func (q *Queue) Close() error { return errors.Join(q.from.Close(), q.to.Close()) }

// List prints every dead letter once and leaves all of them.
func (q *Queue) List(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, q.release(ctx)) }()
	err = q.each(ctx, func(messages []*pubsubpb.ReceivedMessage) (bool, error) {
		fresh := false
		for _, m := range messages {
			if !q.hold(m) {
				continue
			}
			fresh = true
			if err := q.print("", m); err != nil {
				return false, err
			}
		}
		return fresh, nil
	})
	if err != nil {
		return err
	}
	if len(q.held) == 0 {
		return q.printf("no dead letters")
	}
	return q.printf("%s, none was moved", cli.Count(len(q.held), "dead letter"))
}

// Replay prints every dead letter and publishes it again, until no new one comes.
// A message that fails again during the run is printed and stays a dead letter, which is
// an error. One that fails after the run is not noticed.
func (q *Queue) Replay(ctx context.Context) (err error) {
	replayed := map[string]bool{}
	defer func() { err = errors.Join(err, q.release(ctx)) }()
	err = q.each(ctx, func(messages []*pubsubpb.ReceivedMessage) (bool, error) {
		fresh := false
		var back []*pubsubpb.ReceivedMessage
		for _, m := range messages {
			failedAgain := m.Message.Attributes[runAttribute] == q.run
			switch {
			case replayed[m.Message.MessageId]: // its acknowledgement was lost
			case !q.hold(m):
				continue
			case failedAgain:
				fresh = true
				if err := q.print("failed again: ", m); err != nil {
					return false, err
				}
				continue
			default:
				fresh = true
				if err := q.print("", m); err != nil {
					return false, err
				}
			}
			back = append(back, m)
		}
		return fresh, q.putBack(ctx, back, replayed)
	})
	put := cli.Count(len(replayed), "dead letter")
	if err != nil {
		return fmt.Errorf("%w\n%s put back before that; run the same command again for the rest", err, put)
	}
	if len(replayed) == 0 {
		return q.printf("no dead letters")
	}
	if err := q.printf("%s put back", put); err != nil {
		return err
	}
	if len(q.held) > 0 {
		return fmt.Errorf("%s failed again and stayed in the subscription: correct what the reasons above name, then run "+
			"the same command again; a dead letter that is left there goes after 31 days",
			cli.Count(len(q.held), "message"))
	}
	return nil
}

func (q *Queue) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(q.out, format+"\n", args...); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// each pulls until several pulls in a row bring no new message. handle reports
// whether any of its messages is new.
func (q *Queue) each(ctx context.Context, handle func([]*pubsubpb.ReceivedMessage) (bool, error)) error {
	for empty := 0; empty < maxEmptyPulls; {
		messages, err := q.pull(ctx)
		if err != nil {
			return err
		}
		fresh, err := handle(messages)
		if err != nil {
			return err
		}
		empty++
		if fresh {
			empty = 0
		}
	}
	return nil
}

func (q *Queue) pull(ctx context.Context) ([]*pubsubpb.ReceivedMessage, error) {
	short, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	answer, err := q.from.Pull(short, &pubsubpb.PullRequest{Subscription: q.subscription, MaxMessages: maxPull})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case status.Code(err) == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("pull from %s: %w", q.subscription, err)
	}
	return answer.ReceivedMessages, nil
}

// hold keeps a message from other subscribers until release. It returns false for
// a message that is held already and was delivered again after its deadline.
func (q *Queue) hold(m *pubsubpb.ReceivedMessage) bool {
	_, known := q.held[m.Message.MessageId]
	q.held[m.Message.MessageId] = m.AckId
	return !known
}

// putBack publishes the messages and acknowledges those that the topic has.
func (q *Queue) putBack(ctx context.Context, messages []*pubsubpb.ReceivedMessage, replayed map[string]bool) error {
	var group errgroup.Group
	group.SetLimit(maxPublishing)
	done := make([]bool, len(messages))
	for i, m := range messages {
		if replayed[m.Message.MessageId] {
			done[i] = true
			continue
		}
		group.Go(func() error {
			request := &pubsubpb.PublishRequest{Topic: q.topic, Messages: []*pubsubpb.PubsubMessage{original(m.Message, q.run)}}
			if _, err := q.to.Publish(ctx, request); err != nil {
				return fmt.Errorf("publish message %s to %s: %w", m.Message.MessageId, q.topic, err)
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
			replayed[m.Message.MessageId] = true
			delete(q.held, m.Message.MessageId)
		}
	}
	if len(acks) > 0 {
		request := &pubsubpb.AcknowledgeRequest{Subscription: q.subscription, AckIds: acks}
		if err := q.from.Acknowledge(ctx, request); err != nil {
			failed = errors.Join(failed, fmt.Errorf("remove %d messages that were put back from %s: %w", len(acks),
				q.subscription, err))
		}
	}
	return failed
}

// original is the message as it was before it became a dead letter, with the mark
// of the run.
func original(m *pubsubpb.PubsubMessage, run string) *pubsubpb.PubsubMessage {
	attributes := maps.Clone(m.Attributes)
	maps.DeleteFunc(attributes, func(name, _ string) bool {
		return slices.Contains(processAttributes, name) || strings.HasPrefix(name, pubsubPrefix)
	})
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes[runAttribute] = run
	return &pubsubpb.PubsubMessage{Data: m.Data, Attributes: attributes}
}

// release returns held messages to the subscription at once, also after an
// interrupt.
func (q *Queue) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullTimeout)
	defer cancel()
	for acks := range slices.Chunk(slices.Collect(maps.Values(q.held)), maxAcks) {
		request := &pubsubpb.ModifyAckDeadlineRequest{Subscription: q.subscription, AckIds: acks, AckDeadlineSeconds: 0}
		if err := q.from.ModifyAckDeadline(ctx, request); err != nil {
			return fmt.Errorf("return messages to %s: %w", q.subscription, err)
		}
	}
	return nil
}

// print prints one message: id, app, delivery attempts, publish time, size,
// reason.
func (q *Queue) print(mark string, m *pubsubpb.ReceivedMessage) error {
	attributes := m.Message.Attributes
	attempts := cmp.Or(attributes["deliveryAttempt"], attributes[pubsubPrefix+"SourceDeliveryCount"], "-")
	published := cmp.Or(attributes[pubsubPrefix+"SourceTopicPublishTime"],
		m.Message.PublishTime.AsTime().Format(time.RFC3339))
	return q.printf("%s%s  app %s  attempts %s  published %s  %d bytes  %s", mark, m.Message.MessageId,
		cli.Printable(cmp.Or(attributes[bus.AttrApp], "-")), cli.Printable(attempts), cli.Printable(published),
		len(m.Message.Data),
		cli.Printable(cmp.Or(attributes[bus.AttrReason], "no reason given")))
}
