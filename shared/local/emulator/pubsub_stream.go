package emulator

import (
	"context"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
)

const (
	// pullBatch is the largest number of messages that a stream takes at once.
	pullBatch = 100
	// responseBytes is the size from which a response takes no further message.
	// The client library accepts 20 MB, and a message has at most 10 MB.
	responseBytes = 4 << 20
	// expiryCheck is how often a waiting stream looks for messages whose lease
	// has run out.
	expiryCheck = time.Second
)

// pullServer is the server's end of a stream.
type pullServer = pb.Subscriber_StreamingPullServer

// pullStream is one StreamingPull with its leased messages and their limits. The
// service's lock guards it.
type pullStream struct {
	subscription          string
	maxMessages, maxBytes int64          // 0 or less: no limit
	held                  map[string]int // ack ID: size of its message
	heldBytes             int64
}

// room returns how many messages may be leased now. The limit of bytes is soft:
// a batch that begins below it may exceed it.
func (st *pullStream) room() int32 {
	if st.maxBytes > 0 && st.heldBytes >= st.maxBytes {
		return 0
	}
	if st.maxMessages <= 0 {
		return pullBatch
	}
	return int32(min(pullBatch, max(0, st.maxMessages-int64(len(st.held)))))
}

func (st *pullStream) hold(m *pb.ReceivedMessage) {
	size := len(m.GetMessage().GetData())
	st.held[m.GetAckId()] = size
	st.heldBytes += int64(size)
}

func (st *pullStream) drop(ackID string) {
	if size, ok := st.held[ackID]; ok {
		delete(st.held, ackID)
		st.heldBytes -= int64(size)
	}
}

// StreamingPull delivers a subscription's messages as soon as they exist and
// the client has room for them.
func (s *pubsubService) StreamingPull(gs pullServer) error {
	req, err := gs.Recv()
	if err != nil {
		return err
	}
	sub, err := s.GServer.GetSubscription(gs.Context(), &pb.GetSubscriptionRequest{Subscription: req.GetSubscription()})
	if err != nil {
		return err
	}
	st := &pullStream{
		subscription: sub.GetName(),
		maxMessages:  req.GetMaxOutstandingMessages(),
		maxBytes:     req.GetMaxOutstandingBytes(),
		held:         map[string]int{},
	}
	s.attach(st)
	defer s.detach(st)

	ctx, cancel := context.WithCancel(gs.Context())
	defer cancel()
	pings := make(chan struct{}, 1)
	go func() {
		defer cancel()
		s.receive(ctx, gs, st, pings)
	}()
	return s.deliver(ctx, gs, st, pings)
}

// receive handles the client's requests until the stream ends.
func (s *pubsubService) receive(ctx context.Context, gs pullServer, st *pullStream, pings chan<- struct{}) {
	for {
		req, err := gs.Recv()
		if err != nil {
			return // the stream has ended
		}
		if len(req.GetAckIds()) == 0 && len(req.GetModifyDeadlineAckIds()) == 0 {
			select {
			case pings <- struct{}{}:
			default:
			}
			continue
		}
		ack := &pb.AcknowledgeRequest{Subscription: st.subscription, AckIds: req.GetAckIds()}
		if _, err := s.Acknowledge(ctx, ack); err != nil {
			return
		}
		for i, id := range req.GetModifyDeadlineAckIds() {
			_, err := s.ModifyAckDeadline(ctx, &pb.ModifyAckDeadlineRequest{
				Subscription:       st.subscription,
				AckIds:             []string{id},
				AckDeadlineSeconds: req.GetModifyDeadlineSeconds()[i],
			})
			if err != nil {
				return
			}
		}
	}
}

// deliver sends messages, and an empty response to each ping, which shows the
// client that the server is alive.
func (s *pubsubService) deliver(ctx context.Context, gs pullServer, st *pullStream, pings <-chan struct{}) error {
	expired := time.NewTicker(expiryCheck)
	defer expired.Stop()
	for {
		changed := s.changed.next()
		msgs, err := s.take(ctx, st)
		if err != nil {
			return err
		}
		if len(msgs) > 0 {
			if err := sendAll(gs, msgs); err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case <-expired.C:
		case <-pings:
			if err := gs.Send(&pb.StreamingPullResponse{}); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// take leases as many messages as the stream has room for.
func (s *pubsubService) take(ctx context.Context, st *pullStream) ([]*pb.ReceivedMessage, error) {
	s.mu.Lock()
	room := st.room()
	s.mu.Unlock()
	if room == 0 || ctx.Err() != nil {
		return nil, nil
	}
	resp, err := s.Pull(ctx, &pb.PullRequest{
		Subscription: st.subscription,
		MaxMessages:  room,
		//lint:ignore SA1019 pstest would otherwise wait half a second for a message
		ReturnImmediately: true,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range resp.GetReceivedMessages() {
		st.hold(m)
	}
	return resp.GetReceivedMessages(), nil
}

// sendAll sends messages in responses of bounded size.
func sendAll(gs pullServer, msgs []*pb.ReceivedMessage) error {
	for len(msgs) > 0 {
		n, size := 0, 0
		for n < len(msgs) && size < responseBytes {
			size += proto.Size(msgs[n])
			n++
		}
		if err := gs.Send(&pb.StreamingPullResponse{ReceivedMessages: msgs[:n]}); err != nil {
			return err
		}
		msgs = msgs[n:]
	}
	return nil
}

func (s *pubsubService) attach(st *pullStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[st.subscription] == nil {
		s.streams[st.subscription] = map[*pullStream]struct{}{}
	}
	s.streams[st.subscription][st] = struct{}{}
}

// detach returns the messages that the stream still holds, so that another
// stream gets them at once.
func (s *pubsubService) detach(st *pullStream) {
	s.mu.Lock()
	delete(s.streams[st.subscription], st)
	var ids []string
	for id := range st.held {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	if len(ids) > 0 {
		// It fails only if the subscription was deleted, with its messages.
		_, _ = s.GServer.ModifyAckDeadline(context.Background(), &pb.ModifyAckDeadlineRequest{
			Subscription: st.subscription, AckIds: ids, AckDeadlineSeconds: 0,
		})
	}
	s.changed.broadcast()
}
