package emulator

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

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

func TestPubSubSweepKeepsUnacknowledged(t *testing.T) {
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
	// The handler of the first message acknowledges it only after a publish of
	// its own, which the sweep may hold back.
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
