package emulator

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// These tests sit inside the package for the sake of a clock that can be turned and of sweeps at chosen moments.

const (
	testTopic        = "projects/p/topics/t"
	testSubscription = "projects/p/subscriptions/s"
)

// testPubSub starts a server with a topic and a subscription.
func testPubSub(t *testing.T, sweepEvery int, now func() time.Time) (context.Context, *PubSub, *pubsub.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	server, err := startPubSub(sweepEvery, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, err := pubsub.NewClient(ctx, "p", option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetReceivedMessages()
}

func ack(ctx context.Context, t *testing.T, client *pubsub.Client, subscription string, msgs ...*pb.ReceivedMessage) {
	t.Helper()
	req := &pb.AcknowledgeRequest{Subscription: subscription}
	for _, m := range msgs {
		req.AckIds = append(req.AckIds, m.GetAckId())
	}
	if err := client.SubscriptionAdminClient.Acknowledge(ctx, req); err != nil {
		t.Fatal(err)
	}
}

// records counts what pstest remembers of messages.
func records(server *PubSub) int { return len(server.fake.Messages()) }

func TestPubSubSweepsUnderLoad(t *testing.T) {
	const publishers, each, sweepEvery = 4, 500, 400
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	addSubscription(ctx, t, client, testSubscription+"-2")

	type delivery struct{ subscription, data string }
	var got sync.Map
	receiving, stop := context.WithCancel(ctx)
	var receivers sync.WaitGroup
	for _, name := range []string{testSubscription, testSubscription + "-2"} {
		receivers.Go(func() {
			err := client.Subscriber(name).Receive(receiving, func(_ context.Context, m *pubsub.Message) {
				got.Store(delivery{name, string(m.Data)}, true)
				m.Ack()
			})
			if err != nil {
				t.Errorf("receive: %v", err)
			}
		})
	}
	var publishing sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				m := &pb.PubsubMessage{Data: fmt.Appendf(nil, "%d-%d", p, i)}
				req := &pb.PublishRequest{Topic: testTopic, Messages: []*pb.PubsubMessage{m}}
				if _, err := client.TopicAdminClient.Publish(ctx, req); err != nil {
					t.Errorf("publish: %v", err)
				}
			}
		})
	}
	publishing.Wait()
	if err := server.Idle(ctx, testSubscription, testSubscription+"-2"); err != nil {
		t.Fatal(err)
	}
	stop()
	receivers.Wait()

	n := 0
	got.Range(func(any, any) bool { n++; return true })
	if n != 2*publishers*each {
		t.Errorf("%d messages delivered, want %d", n, 2*publishers*each)
	}
	if n := records(server); n >= publishers*each {
		t.Errorf("%d records of %d messages remain: nothing was swept", n, publishers*each)
	}
}

func TestPubSubSweepsOnlyWhatIsAcknowledged(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	other := testSubscription + "-2"
	addSubscription(ctx, t, client, other)
	publish(ctx, t, client, "x")

	steps := []struct {
		name string
		do   func()
		want int // records after the sweep
	}{
		{"undelivered", func() {}, 1},
		{"leased", func() { pull(ctx, t, client, testSubscription) }, 1},
		{"acknowledged by one of two, twice", func() {
			msgs := pull(ctx, t, client, other)
			ack(ctx, t, client, other, msgs[0], msgs[0])
		}, 1},
		{"acknowledged under an ID that is no longer good", func() {
			old := &pb.ReceivedMessage{AckId: "m0:9"}
			ack(ctx, t, client, testSubscription, old)
		}, 1},
		{"acknowledged by all", func() {
			ack(ctx, t, client, testSubscription, &pb.ReceivedMessage{AckId: "m0:1"})
		}, 0},
		{"acknowledged once more after it is swept", func() {
			ack(ctx, t, client, testSubscription, &pb.ReceivedMessage{AckId: "m0:1"})
		}, 0},
	}
	for _, step := range steps {
		step.do()
		server.service.sweep()
		if got := records(server); got != step.want {
			t.Fatalf("%s: %d records after a sweep, want %d", step.name, got, step.want)
		}
	}
	// What comes after a sweep is delivered like all else.
	publish(ctx, t, client, "y")
	if msgs := pull(ctx, t, client, testSubscription); len(msgs) != 1 || string(msgs[0].GetMessage().GetData()) != "y" {
		t.Errorf("pulled %v, want y", msgs)
	}
}

func TestPubSubSweepLetsHandlersPublish(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	publish(ctx, t, client, "first")
	first := pull(ctx, t, client, testSubscription)
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		server.service.sweep()
	}()
	// The handler of the first message acknowledges it only after a publish of its own, which the sweep may hold back.
	publish(ctx, t, client, "second")
	ack(ctx, t, client, testSubscription, first...)
	<-swept
	if msgs := pull(ctx, t, client, testSubscription); len(msgs) != 1 || string(msgs[0].GetMessage().GetData()) != "second" {
		t.Errorf("pulled %v, want the second message", msgs)
	}
}

func TestPubSubForgetsContents(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	publish(ctx, t, client, "large")
	for _, m := range server.fake.Messages() {
		if m.Data != nil || m.Attributes != nil {
			t.Errorf("the record of a message still holds its content %q", m.Data)
		}
	}
	if msgs := pull(ctx, t, client, testSubscription); len(msgs) != 1 || string(msgs[0].GetMessage().GetData()) != "large" {
		t.Errorf("pulled %v, want the message with its content", msgs)
	}
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
		t.Errorf("publish to a topic that is not there: %v, want NotFound", err)
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

func TestPubSubTakesBackFromAnEndedStream(t *testing.T) {
	ctx, _, client := testPubSub(t, sweepEvery, newTurnedClock().now) // no lease ever runs out
	publish(ctx, t, client, "x")
	for range 3 {
		streaming, end := context.WithCancel(ctx)
		stream, err := client.SubscriptionAdminClient.StreamingPull(streaming)
		if err != nil {
			t.Fatal(err)
		}
		open := &pb.StreamingPullRequest{Subscription: testSubscription, StreamAckDeadlineSeconds: 60}
		if err := stream.Send(open); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if msgs := resp.GetReceivedMessages(); len(msgs) != 1 {
			t.Fatalf("received %v, want the message", msgs)
		}
		end()
	}
}

func TestPubSubStreamTakesRequests(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	stream, err := client.SubscriptionAdminClient.StreamingPull(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(req *pb.StreamingPullRequest) {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() []*pb.ReceivedMessage {
		t.Helper()
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetReceivedMessages()
	}
	send(&pb.StreamingPullRequest{Subscription: testSubscription, StreamAckDeadlineSeconds: 60, MaxOutstandingMessages: 2})
	send(&pb.StreamingPullRequest{})
	if msgs := receive(); len(msgs) != 0 {
		t.Fatalf("a ping was answered with %v", msgs)
	}
	for _, data := range []string{"a", "b", "c", "d"} {
		publish(ctx, t, client, data)
	}
	var held []*pb.ReceivedMessage
	for len(held) < 2 {
		held = append(held, receive()...)
	}
	// Two are as many as it may hold: an answer to a ping comes before a third.
	send(&pb.StreamingPullRequest{})
	if msgs := receive(); len(msgs) != 0 {
		t.Fatalf("more than 2 messages are outstanding: %v", msgs)
	}
	// One acknowledged and one given back make room for two; what was given back comes again.
	send(&pb.StreamingPullRequest{
		AckIds:                []string{held[0].GetAckId()},
		ModifyDeadlineAckIds:  []string{held[1].GetAckId()},
		ModifyDeadlineSeconds: []int32{0},
	})
	seen := map[string]bool{string(held[0].GetMessage().GetData()): true}
	for len(seen) < 4 {
		for _, m := range receive() {
			seen[string(m.GetMessage().GetData())] = true
			send(&pb.StreamingPullRequest{AckIds: []string{m.GetAckId()}})
		}
	}
	if err := server.Idle(ctx, testSubscription); err != nil {
		t.Error(err)
	}
}

func TestPubSubStreamLimitsBytes(t *testing.T) {
	ctx, _, client := testPubSub(t, sweepEvery, time.Now)
	stream, err := client.SubscriptionAdminClient.StreamingPull(ctx)
	if err != nil {
		t.Fatal(err)
	}
	requests := []*pb.StreamingPullRequest{
		{Subscription: testSubscription, StreamAckDeadlineSeconds: 60, MaxOutstandingBytes: 4}, {},
	}
	// The first message fills the stream, so that the ping is answered before the second comes.
	for i, want := range []int{1, 0} {
		publish(ctx, t, client, "large")
		if err := stream.Send(requests[i]); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got := len(resp.GetReceivedMessages()); got != want {
			t.Errorf("response %d has %d messages, want %d", i, got, want)
		}
	}
}

// A dead letter that cannot be published is kept until it can.
func TestBridgeWaitsForTheDeadLetterTopic(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	const dead = testTopic + "-dead"
	create := func() {
		t.Helper()
		if _, err := client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: dead}); err != nil {
			t.Fatal(err)
		}
	}
	create()
	failed, logged := io.Pipe()
	bridge, err := StartBridge(ctx, client, BridgeConfig{
		Subscription: testSubscription, Endpoint: "http://" + server.Addr, // which does not answer HTTP
		DeadLetterTopic: dead, MaxAttempts: 1, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	// The server itself refuses to delete a topic.
	if _, err := server.fake.GServer.DeleteTopic(ctx, &pb.DeleteTopicRequest{Topic: dead}); err != nil {
		t.Fatal(err)
	}
	publish(ctx, t, client, "x")
	lines := bufio.NewScanner(failed)
	for range 3 {
		if !lines.Scan() || !strings.Contains(lines.Text(), "publishing a dead letter failed") {
			t.Fatalf("log line %q, want a failed publish", lines.Text())
		}
	}
	if n := server.service.unacknowledged(testSubscription); n != 1 {
		t.Errorf("%d messages are kept, want 1", n)
	}
	create()
	go func() { _, _ = io.Copy(io.Discard, failed) }()
	if err := server.Idle(ctx, testSubscription); err != nil {
		t.Fatal(err)
	}
	if n := records(server); n != 2 {
		t.Errorf("%d messages were published, want the one and its dead letter", n)
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
		t.Error("idle with a message that nobody has pulled")
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
	if err := client.SubscriptionAdminClient.DeleteSubscription(ctx, deletion); err != nil {
		t.Fatal(err)
	}
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
