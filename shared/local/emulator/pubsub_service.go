package emulator

import (
	"context"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// sweepPatience is how long a sweep blocks publishers while it waits for the
// last acknowledgements: more than the 100 ms by which a client library may
// delay them. It must end, because a handler that publishes acknowledges its
// message only after the publish.
const sweepPatience = 250 * time.Millisecond

// maxPublish is the size of the largest publish request that Pub/Sub accepts, in
// bytes.
const maxPublish = 10_000_000

// pubsubService answers the Publisher and Subscriber services from pstest, and
// counts unacknowledged messages.
type pubsubService struct {
	*pstest.GServer
	fake       *pstest.Server
	journal    *journal
	sweepEvery int
	sweepDue   chan struct{}
	// changed is broadcast when a message can be delivered or has been
	// acknowledged.
	changed signal

	// gate is held for reading by publishes, and for writing by a sweep or a
	// change of topics or subscriptions.
	gate sync.RWMutex

	mu        sync.Mutex                          // guards the fields below; take it before pstest's lock
	unacked   map[string]int                      // subscription: messages published to it and not acknowledged
	streams   map[string]map[*pullStream]struct{} // subscription: its open streams
	published int                                 // messages since the last sweep
	sweepAt   int                                 // published at which the next sweep is due
}

func newPubSubService(fake *pstest.Server, j *journal, sweepEvery int) *pubsubService {
	return &pubsubService{
		GServer:    &fake.GServer,
		fake:       fake,
		journal:    j,
		sweepEvery: sweepEvery,
		sweepAt:    sweepEvery,
		sweepDue:   make(chan struct{}, 1),
		unacked:    map[string]int{},
		streams:    map[string]map[*pullStream]struct{}{},
	}
}

// Publish adds messages to all subscriptions of a topic.
func (s *pubsubService) Publish(ctx context.Context, req *pb.PublishRequest) (*pb.PublishResponse, error) {
	if err := validatePublish(req); err != nil {
		return nil, err
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if _, err := s.GServer.GetTopic(ctx, &pb.GetTopicRequest{Topic: req.GetTopic()}); err != nil {
		return nil, err
	}
	subs, err := s.GServer.ListTopicSubscriptions(ctx, &pb.ListTopicSubscriptionsRequest{Topic: req.GetTopic()})
	if err != nil {
		return nil, err
	}
	kept, err := s.journal.keep(subs.GetSubscriptions(), req.GetMessages())
	if err != nil {
		return nil, err
	}
	return s.publish(ctx, req, subs.GetSubscriptions(), kept)
}

// publish adds messages that are kept to the subscriptions of a topic. The gate must be
// held.
func (s *pubsubService) publish(ctx context.Context, req *pb.PublishRequest, subscriptions []string,
	kept []*journaled) (*pb.PublishResponse, error) {
	// Count first, so that the count is never too low.
	s.addUnacked(subscriptions, len(req.GetMessages()))
	ids, resp, err := s.journal.enter(kept, func() (*pb.PublishResponse, error) { return s.GServer.Publish(ctx, req) })
	if err != nil {
		s.addUnacked(subscriptions, -len(req.GetMessages()))
		return nil, err
	}
	s.record(ids)
	s.changed.broadcast()
	return resp, nil
}

// validatePublish refuses requests that Pub/Sub refuses and pstest accepts.
func validatePublish(req *pb.PublishRequest) error {
	for _, m := range req.GetMessages() {
		if len(m.GetData()) == 0 && len(m.GetAttributes()) == 0 {
			return status.Error(codes.InvalidArgument, "a message has neither data nor attributes")
		}
	}
	if size := proto.Size(req); size > maxPublish {
		return status.Errorf(codes.InvalidArgument, "the request has %d bytes, at most %d are allowed", size, maxPublish)
	}
	return nil
}

func (s *pubsubService) addUnacked(subscriptions []string, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range subscriptions {
		s.unacked[name] += messages
	}
}

// record counts published messages towards the next sweep, and empties pstest's
// records of them. Nothing reads these records: subscriptions hold the
// messages.
func (s *pubsubService) record(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if m := s.fake.Message(id); m != nil {
			m.Data, m.Attributes = nil, nil
		}
	}
	s.published += len(ids)
	if s.published >= s.sweepAt {
		select {
		case s.sweepDue <- struct{}{}:
		default:
		}
	}
}

// Acknowledge acknowledges messages. As in pstest, an acknowledgement has no
// effect if the message has since been leased again.
func (s *pubsubService) Acknowledge(ctx context.Context, req *pb.AcknowledgeRequest) (*emptypb.Empty, error) {
	for _, id := range req.GetAckIds() {
		if err := s.acknowledge(ctx, req.GetSubscription(), id); err != nil {
			return nil, err
		}
	}
	s.release(req.GetSubscription(), req.GetAckIds())
	return &emptypb.Empty{}, nil
}

func (s *pubsubService) acknowledge(ctx context.Context, subscription, ackID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.acks(ackID)
	req := &pb.AcknowledgeRequest{Subscription: subscription, AckIds: []string{ackID}}
	if _, err := s.GServer.Acknowledge(ctx, req); err != nil {
		return err
	}
	if acks := s.acks(ackID) - before; acks > 0 {
		s.unacked[subscription] -= acks
		s.journal.acknowledged(subscription, ackID)
	}
	return nil
}

// Pull leases messages to a client.
func (s *pubsubService) Pull(ctx context.Context, req *pb.PullRequest) (*pb.PullResponse, error) {
	for {
		resp, err := s.GServer.Pull(ctx, req)
		if err != nil {
			return nil, err
		}
		own, others := s.journal.deliver(req.GetSubscription(), resp.GetReceivedMessages())
		if len(others) == 0 {
			return &pb.PullResponse{ReceivedMessages: own}, nil
		}
		// An earlier process has delivered these. Ask again rather than answer nothing.
		if _, err := s.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: req.GetSubscription(),
			AckIds: others}); err != nil {
			return nil, err
		}
		if len(own) > 0 {
			return &pb.PullResponse{ReceivedMessages: own}, nil
		}
	}
}

// acks returns how many subscriptions have acknowledged the message of an ack
// ID, which is the message's ID, a colon and the number of the delivery.
func (s *pubsubService) acks(ackID string) int {
	m := s.fake.Message(ackID[:max(0, strings.LastIndex(ackID, ":"))])
	if m == nil {
		return 0
	}
	return m.Acks
}

// ModifyAckDeadline extends leases. A deadline of 0 returns messages to the
// subscription.
func (s *pubsubService) ModifyAckDeadline(
	ctx context.Context, req *pb.ModifyAckDeadlineRequest,
) (*emptypb.Empty, error) {
	resp, err := s.GServer.ModifyAckDeadline(ctx, req)
	if err == nil && req.GetAckDeadlineSeconds() == 0 {
		s.release(req.GetSubscription(), req.GetAckIds())
	}
	return resp, err
}

// release makes room in the stream that held the messages.
func (s *pubsubService) release(subscription string, ackIDs []string) {
	s.mu.Lock()
	for st := range s.streams[subscription] {
		for _, id := range ackIDs {
			st.drop(id)
		}
	}
	s.mu.Unlock()
	s.changed.broadcast()
}

func (s *pubsubService) unacknowledged(subscription string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unacked[subscription]
}

func (s *pubsubService) allAcknowledged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.unacked {
		if n > 0 {
			return false
		}
	}
	return true
}

func (s *pubsubService) sweepLoop(end <-chan struct{}) {
	for {
		select {
		case <-s.sweepDue:
			s.sweep()
		case <-end:
			return
		}
	}
}

// sweep drops the records of all messages if all are acknowledged. It blocks
// publishes. If an acknowledgement is missing for too long (a dead letter
// waits, say), the next sweep is due at twice as many records.
func (s *pubsubService) sweep() {
	s.gate.Lock()
	defer s.gate.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), sweepPatience)
	defer cancel()
	err := s.changed.await(ctx, "all messages are acknowledged", s.allAcknowledged)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.sweepAt = 2 * s.published
		return
	}
	s.fake.ClearMessages()
	s.published, s.sweepAt = 0, s.sweepEvery
}

// CreateSubscription adds a subscription. It refuses features that pstest does
// not have, or implements by dropping unacknowledged messages.
func (s *pubsubService) CreateSubscription(ctx context.Context, req *pb.Subscription) (*pb.Subscription, error) {
	if req.GetDeadLetterPolicy() != nil || req.GetFilter() != "" ||
		req.GetEnableMessageOrdering() || req.GetEnableExactlyOnceDelivery() {
		return nil, status.Errorf(codes.Unimplemented,
			"subscription %s: the emulator has no dead-letter policy, filter, ordering or exactly-once delivery", req.GetName())
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	created, err := s.GServer.CreateSubscription(ctx, req)
	if err != nil {
		return nil, err
	}
	return created, s.restore(ctx, created)
}

// restore publishes again what an earlier process has left to a subscription. The topic's
// other subscriptions get it too, and acknowledge it by themselves.
func (s *pubsubService) restore(ctx context.Context, sub *pb.Subscription) error {
	kept, messages, err := s.journal.waiting(sub.GetName())
	if err != nil || len(kept) == 0 {
		return err
	}
	subs, err := s.GServer.ListTopicSubscriptions(ctx, &pb.ListTopicSubscriptionsRequest{Topic: sub.GetTopic()})
	if err != nil {
		return err
	}
	_, err = s.publish(ctx, &pb.PublishRequest{Topic: sub.GetTopic(), Messages: messages}, subs.GetSubscriptions(), kept)
	return err
}

// DeleteSubscription deletes a subscription and its messages.
func (s *pubsubService) DeleteSubscription(ctx context.Context,
	req *pb.DeleteSubscriptionRequest) (*emptypb.Empty, error) {
	s.gate.Lock()
	defer s.gate.Unlock()
	resp, err := s.GServer.DeleteSubscription(ctx, req)
	if err == nil {
		err = s.journal.forget(req.GetSubscription())
	}
	if err == nil {
		s.mu.Lock()
		delete(s.unacked, req.GetSubscription())
		s.mu.Unlock()
		s.changed.broadcast()
	}
	return resp, err
}

// UpdateSubscription refuses every request, because it could add a feature that
// CreateSubscription refuses.
func (s *pubsubService) UpdateSubscription(context.Context, *pb.UpdateSubscriptionRequest) (*pb.Subscription, error) {
	return nil, status.Error(codes.Unimplemented, "the emulator cannot update a subscription")
}

// DetachSubscription refuses every request: pstest would still list the
// subscription, and its messages would count.
func (s *pubsubService) DetachSubscription(
	context.Context, *pb.DetachSubscriptionRequest,
) (*pb.DetachSubscriptionResponse, error) {
	return nil, status.Error(codes.Unimplemented, "the emulator cannot detach a subscription")
}

// DeleteTopic refuses every request: pstest would list the topic's subscriptions
// under a new topic of the same name.
func (s *pubsubService) DeleteTopic(context.Context, *pb.DeleteTopicRequest) (*emptypb.Empty, error) {
	return nil, status.Error(codes.Unimplemented, "the emulator cannot delete a topic")
}

// Seek refuses every request: pstest would redeliver acknowledged messages without
// their content.
func (s *pubsubService) Seek(context.Context, *pb.SeekRequest) (*pb.SeekResponse, error) {
	return nil, status.Error(codes.Unimplemented, "the emulator cannot seek")
}
