package emulator

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/rows"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// These tests sit inside the package for the sake of a clock that can be turned
// and of sweeps at chosen moments.

const (
	testTopic        = "projects/p/topics/t"
	testSubscription = "projects/p/subscriptions/s"
)

// testPubSub starts a server with a topic and a subscription.
func testPubSub(t *testing.T, sweepEvery int, now func() time.Time) (context.Context, *PubSub, *pubsub.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	d, err := disk.InMemory(rows.Join, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	t.Cleanup(func() { d.Close() })
	server, err := startPubSub(d.Records('m'), sweepEvery, now)
	must.Succeed(t, err)
	t.Cleanup(server.Close)
	client, err := pubsub.NewClient(ctx, "p", option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	must.Succeed(t, err)
	t.Cleanup(func() { client.Close() })
	if _, err := client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: testTopic}); err != nil {
		t.Fatal(err)
	}
	addSubscription(ctx, t, client, testSubscription)
	return ctx, server, client
}

func addSubscription(ctx context.Context, t *testing.T, client *pubsub.Client, name string) {
	t.Helper()
	sub := &pb.Subscription{Name: name, Topic: testTopic, AckDeadlineSeconds: 10}
	if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, sub); err != nil {
		t.Fatal(err)
	}
}

func publish(ctx context.Context, t *testing.T, client *pubsub.Client, data string) {
	t.Helper()
	req := &pb.PublishRequest{Topic: testTopic, Messages: []*pb.PubsubMessage{{Data: []byte(data)}}}
	if _, err := client.TopicAdminClient.Publish(ctx, req); err != nil {
		t.Fatal(err)
	}
}

// pull leases what a subscription has to deliver.
func pull(ctx context.Context, t *testing.T, client *pubsub.Client, subscription string) []*pb.ReceivedMessage {
	t.Helper()
	resp, err := client.SubscriptionAdminClient.Pull(ctx, &pb.PullRequest{Subscription: subscription, MaxMessages: 100})
	must.Succeed(t, err)
	return resp.GetReceivedMessages()
}

func ack(ctx context.Context, t *testing.T, client *pubsub.Client, subscription string, msgs ...*pb.ReceivedMessage) {
	t.Helper()
	req := &pb.AcknowledgeRequest{Subscription: subscription}
	for _, m := range msgs {
		req.AckIds = append(req.AckIds, m.GetAckId())
	}
	must.Succeed(t, client.SubscriptionAdminClient.Acknowledge(ctx, req))
}

// turnedClock is a clock that stands until it is turned.
type turnedClock struct{ ms atomic.Int64 }

func newTurnedClock() *turnedClock {
	c := new(turnedClock)
	c.turn(20_000 * 24 * time.Hour)
	return c
}

func (c *turnedClock) now() time.Time       { return time.UnixMilli(c.ms.Load()) }
func (c *turnedClock) turn(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func TestPubSubKeepsUndeliveredMessages(t *testing.T) {
	clock := newTurnedClock()
	ctx, _, client := testPubSub(t, sweepEvery, clock.now)
	published := clock.now()
	publish(ctx, t, client, "x")
	clock.turn(30 * 24 * time.Hour)
	// Refused publishes must not disturb the clock either.
	refused := &pb.PublishRequest{Topic: "projects/p/topics/none", Messages: []*pb.PubsubMessage{{Data: []byte("x")}}}
	if _, err := client.TopicAdminClient.Publish(ctx, refused); status.Code(err) != codes.NotFound {
		t.Errorf("publish to a missing topic: %v, want NotFound", err)
	}
	msgs := pull(ctx, t, client, testSubscription)
	if len(msgs) != 1 {
		t.Fatalf("%d messages after 30 days, want 1", len(msgs))
	}
	if got := msgs[0].GetMessage().GetPublishTime().AsTime(); !got.Equal(published) {
		t.Errorf("publish time %v, want %v", got, published)
	}
	ack(ctx, t, client, testSubscription, msgs...)
}

func TestPubSubRedeliversWhenALeaseEnds(t *testing.T) {
	clock := newTurnedClock()
	ctx, server, client := testPubSub(t, sweepEvery, clock.now)
	publish(ctx, t, client, "x")
	first := pull(ctx, t, client, testSubscription)
	if again := pull(ctx, t, client, testSubscription); len(first) != 1 || len(again) != 0 {
		t.Fatalf("pulled %v, then %v; want the message once", first, again)
	}
	clock.turn(11 * time.Second)
	second := pull(ctx, t, client, testSubscription)
	if len(second) != 1 {
		t.Fatal("not delivered again after its ack deadline")
	}
	ack(ctx, t, client, testSubscription, first...) // too late
	if n := server.service.unacknowledged(testSubscription); n != 1 {
		t.Errorf("%d messages unacknowledged after a late acknowledgement, want 1", n)
	}
	ack(ctx, t, client, testSubscription, second...)
	if err := server.Idle(ctx, testSubscription); err != nil {
		t.Error(err)
	}
}

func TestPubSubIdle(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	if err := server.Idle(ctx, testSubscription); err != nil {
		t.Fatalf("idle before anything was published: %v", err)
	}
	publish(ctx, t, client, "x")
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := server.Idle(over, testSubscription); err == nil {
		t.Error("idle although a message waits to be pulled")
	}
	msgs := pull(ctx, t, client, testSubscription)
	if err := server.Idle(over, testSubscription); err == nil {
		t.Error("idle with a message that is leased")
	}
	idle := make(chan error, 1)
	go func() { idle <- server.Idle(ctx, testSubscription) }()
	ack(ctx, t, client, testSubscription, msgs...)
	if err := <-idle; err != nil {
		t.Error(err)
	}
	publish(ctx, t, client, "y")
	deletion := &pb.DeleteSubscriptionRequest{Subscription: testSubscription}
	must.Succeed(t, client.SubscriptionAdminClient.DeleteSubscription(ctx, deletion))
	if err := server.Idle(ctx, testSubscription); err != nil {
		t.Errorf("idle after the subscription is deleted: %v", err)
	}
}

func TestPubSubRefuses(t *testing.T) {
	ctx, _, client := testPubSub(t, sweepEvery, time.Now)
	create := func(change func(*pb.Subscription)) func() error {
		return func() error {
			sub := &pb.Subscription{Name: "projects/p/subscriptions/new", Topic: testTopic, AckDeadlineSeconds: 10}
			change(sub)
			_, err := client.SubscriptionAdminClient.CreateSubscription(ctx, sub)
			return err
		}
	}
	send := func(m *pb.PubsubMessage) func() error {
		return func() error {
			_, err := client.TopicAdminClient.Publish(ctx, &pb.PublishRequest{Topic: testTopic, Messages: []*pb.PubsubMessage{m}})
			return err
		}
	}
	cases := map[string]struct {
		call func() error
		want codes.Code
	}{
		"a filter": {create(func(s *pb.Subscription) { s.Filter = `attributes:x` }), codes.Unimplemented},
		"a dead-letter policy": {create(func(s *pb.Subscription) {
			s.DeadLetterPolicy = &pb.DeadLetterPolicy{DeadLetterTopic: testTopic}
		}), codes.Unimplemented},
		"ordering":          {create(func(s *pb.Subscription) { s.EnableMessageOrdering = true }), codes.Unimplemented},
		"exactly once":      {create(func(s *pb.Subscription) { s.EnableExactlyOnceDelivery = true }), codes.Unimplemented},
		"the same name":     {create(func(s *pb.Subscription) { s.Name = testSubscription }), codes.AlreadyExists},
		"an empty message":  {send(&pb.PubsubMessage{}), codes.InvalidArgument},
		"a message too big": {send(&pb.PubsubMessage{Data: make([]byte, maxPublish)}), codes.InvalidArgument},
		"a subscription's update": {func() error {
			_, err := client.SubscriptionAdminClient.UpdateSubscription(ctx, &pb.UpdateSubscriptionRequest{
				Subscription: &pb.Subscription{Name: testSubscription, Topic: testTopic, Filter: "attributes:x"},
				UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"filter"}},
			})
			return err
		}, codes.Unimplemented},
		"a subscription's detachment": {func() error {
			_, err := client.TopicAdminClient.DetachSubscription(ctx, &pb.DetachSubscriptionRequest{Subscription: testSubscription})
			return err
		}, codes.Unimplemented},
		"a seek": {func() error {
			_, err := client.SubscriptionAdminClient.Seek(ctx, &pb.SeekRequest{
				Subscription: testSubscription, Target: &pb.SeekRequest_Time{Time: timestamppb.Now()},
			})
			return err
		}, codes.Unimplemented},
		"the end of a topic": {func() error {
			return client.TopicAdminClient.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: testTopic})
		}, codes.Unimplemented},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := c.call(); status.Code(err) != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// pstest serves without the interceptors of PubSub, so its own port is closed.
func TestPubSubHasOnePort(t *testing.T) {
	_, server, _ := testPubSub(t, sweepEvery, time.Now)
	if conn, err := net.Dial("tcp", server.fake.Addr); err == nil {
		conn.Close()
		t.Errorf("pstest listens at %s beside the server at %s", server.fake.Addr, server.Addr)
	}
}
