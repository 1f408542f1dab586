package emulator

import (
	"context"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/affinityengine/affinity/shared/local/must"
)

func TestPubSubTakesBackFromAnEndedStream(t *testing.T) {
	ctx, _, client := testPubSub(t, sweepEvery, newTurnedClock().now) // no lease ever runs out
	publish(ctx, t, client, "x")
	for range 3 {
		streaming, end := context.WithCancel(ctx)
		stream, err := client.SubscriptionAdminClient.StreamingPull(streaming)
		must.Succeed(t, err)
		open := &pb.StreamingPullRequest{Subscription: testSubscription, StreamAckDeadlineSeconds: 60}
		must.Succeed(t, stream.Send(open))
		resp, err := stream.Recv()
		must.Succeed(t, err)
		if msgs := resp.GetReceivedMessages(); len(msgs) != 1 {
			t.Fatalf("received %v, want the message", msgs)
		}
		end()
	}
}

func TestPubSubStreamTakesRequests(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	stream, err := client.SubscriptionAdminClient.StreamingPull(ctx)
	must.Succeed(t, err)
	send := func(req *pb.StreamingPullRequest) {
		t.Helper()
		must.Succeed(t, stream.Send(req))
	}
	receive := func() []*pb.ReceivedMessage {
		t.Helper()
		resp, err := stream.Recv()
		must.Succeed(t, err)
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
	// One acknowledged and one returned message make room for two. The returned
	// one is redelivered.
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
	must.Succeed(t, err)
	requests := []*pb.StreamingPullRequest{
		{Subscription: testSubscription, StreamAckDeadlineSeconds: 60, MaxOutstandingBytes: 4}, {},
	}
	// The first message fills the stream, so that the ping is answered before
	// the second comes.
	for i, want := range []int{1, 0} {
		publish(ctx, t, client, "large")
		must.Succeed(t, stream.Send(requests[i]))
		resp, err := stream.Recv()
		must.Succeed(t, err)
		if got := len(resp.GetReceivedMessages()); got != want {
			t.Errorf("response %d has %d messages, want %d", i, got, want)
		}
	}
}
