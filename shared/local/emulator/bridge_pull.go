package emulator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	vkit "cloud.google.com/go/pubsub/v2/apiv1"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// pullMessages is the largest number of messages of one request. If the
	// process dies, these wait until their leases end.
	pullMessages = 100
	// settleTimeout ends a request that settles a message.
	settleTimeout = 30 * time.Second
)

// leases are the messages that unary requests have taken. The client library does
// not extend their leases.
type leases struct {
	client       *vkit.SubscriptionAdminClient
	subscription string
	mu           sync.Mutex
	ids          map[string]struct{} // ack ids
	room         chan struct{}       // one element for each message held
}

// pull takes messages until ctx ends, by unary requests.
func (b *Bridge) pull(ctx context.Context, client *vkit.SubscriptionAdminClient) {
	l := &leases{
		client: client, subscription: b.cfg.Subscription,
		ids: map[string]struct{}{}, room: make(chan struct{}, unsettledMessages),
	}
	var settling sync.WaitGroup
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { l.keep(keeping) })
	defer close(b.done)
	defer keeper.Wait()
	defer stop()
	defer settling.Wait()
	for ctx.Err() == nil {
		messages, err := l.take(ctx, b.cfg.PullTimeout)
		if err != nil && ctx.Err() == nil && status.Code(err) != codes.DeadlineExceeded {
			b.cfg.Log.Error("pulling failed, trying again", "subscription", b.cfg.Subscription, "error", err)
			_ = gax.Sleep(ctx, b.cfg.MinBackoff)
		}
		for _, m := range messages {
			l.room <- struct{}{}
			settling.Go(func() {
				defer func() { <-l.room }()
				b.settle(ctx, l.hold(m))
			})
		}
	}
}

func (l *leases) take(ctx context.Context, timeout time.Duration) ([]*pb.ReceivedMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := l.client.Pull(ctx, &pb.PullRequest{Subscription: l.subscription, MaxMessages: pullMessages})
	return resp.GetReceivedMessages(), err
}

// hold keeps a message leased until it is settled. If the request that settles
// it fails, Pub/Sub redelivers the message.
func (l *leases) hold(r *pb.ReceivedMessage) held {
	l.mu.Lock()
	l.ids[r.GetAckId()] = struct{}{}
	l.mu.Unlock()
	settle := func(do func(context.Context) error) func() {
		return func() {
			l.mu.Lock()
			delete(l.ids, r.GetAckId())
			l.mu.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
			defer cancel()
			_ = do(ctx)
		}
	}
	ids := []string{r.GetAckId()}
	m := r.GetMessage()
	return held{
		Message: &pubsub.Message{ID: m.GetMessageId(), Data: m.GetData(), Attributes: m.GetAttributes(),
			PublishTime: m.GetPublishTime().AsTime(), OrderingKey: m.GetOrderingKey()},
		ack: settle(func(ctx context.Context) error {
			return l.client.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: l.subscription, AckIds: ids})
		}),
		nack: settle(func(ctx context.Context) error {
			return l.client.ModifyAckDeadline(ctx, &pb.ModifyAckDeadlineRequest{Subscription: l.subscription, AckIds: ids})
		}),
	}
}

// keep extends the leases of all held messages, until ctx ends.
func (l *leases) keep(ctx context.Context) {
	for gax.Sleep(ctx, lease/3) == nil {
		l.mu.Lock()
		ids := slices.Collect(maps.Keys(l.ids))
		l.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		// If this fails, Pub/Sub redelivers the messages.
		_ = l.client.ModifyAckDeadline(ctx, &pb.ModifyAckDeadlineRequest{
			Subscription: l.subscription, AckIds: ids, AckDeadlineSeconds: int32(lease / time.Second),
		})
	}
}
