package emulator_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

func testCloseWaits(t *testing.T, w *pubsubFixture) {
	entered, leave := make(chan struct{}), make(chan struct{})
	url := endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) {
		if p.data == "slow" {
			close(entered)
			<-leave
		}
	})
	b := w.bridge(t, emulator.BridgeConfig{Endpoint: url})
	w.publish(t, &pubsub.Message{Data: []byte("slow")})
	next(t, w.ctx, entered)
	closed := make(chan struct{})
	go func() {
		b.Close()
		close(closed)
	}()
	close(leave)
	next(t, w.ctx, closed)

	// It was acknowledged: the next Bridge gets only what comes later.
	pushes := make(chan received, 10)
	url = endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) { pushes <- p })
	w.bridge(t, emulator.BridgeConfig{Endpoint: url})
	w.publish(t, &pubsub.Message{Data: []byte("later")})
	if got := next(t, w.ctx, pushes); got.data != "later" {
		t.Errorf("pushed %q, want only the messages that were not delivered", got.data)
	}
}

func testCloseGivesBack(t *testing.T, w *pubsubFixture) {
	failed := make(chan struct{}, 1)
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, _ received) {
		rw.WriteHeader(http.StatusInternalServerError)
		failed <- struct{}{}
	})
	b := w.bridge(t, emulator.BridgeConfig{Endpoint: url, MinBackoff: time.Hour, MaxBackoff: time.Hour})
	id := w.publish(t, &pubsub.Message{Data: []byte("x")})
	next(t, w.ctx, failed)
	b.Close()

	pushes := make(chan received, 10)
	url = endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) { pushes <- p })
	w.bridge(t, emulator.BridgeConfig{Endpoint: url})
	if got := next(t, w.ctx, pushes); got.id != id || got.attempt != 1 {
		t.Errorf("pushed %s, attempt %d; want %s, attempt 1", got.id, got.attempt, id)
	}
}

func testContext(t *testing.T, w *pubsubFixture) {
	entered, cut := make(chan struct{}), make(chan struct{})
	url := endpoint(t, func(_ http.ResponseWriter, r *http.Request, _ received) {
		close(entered)
		<-r.Context().Done()
		close(cut)
	})
	ctx, cancel := context.WithCancel(w.ctx)
	b, err := emulator.StartBridge(ctx, w.client, emulator.BridgeConfig{Subscription: w.subscription, Endpoint: url, Unary: w.unary})
	must.Succeed(t, err)
	w.publish(t, &pubsub.Message{Data: []byte("x")})
	next(t, w.ctx, entered)
	cancel()
	next(t, w.ctx, cut)
	b.Close()
	if got := w.receive(t, w.subscription); string(got.Data) != "x" {
		t.Errorf("received %q, want the message given back", got.Data)
	}
}

func testReopen(t *testing.T, w *pubsubFixture) {
	const messages, bridges = 400, 6
	var mu sync.Mutex
	got := map[string]bool{}
	progress := make(chan struct{}, 10*messages)
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, p received) {
		progress <- struct{}{}
		if len(p.data)%7 == 0 && p.attempt == 1 {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		mu.Lock()
		got[p.data] = true
		mu.Unlock()
	})
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range messages {
			m := &pubsub.Message{Data: []byte(strings.Repeat("x", i+1))}
			if _, err := w.topic.Publish(w.ctx, m).Get(w.ctx); err != nil {
				t.Errorf("publish: %v", err)
			}
		}
	}()
	for range bridges {
		b := w.bridge(t, emulator.BridgeConfig{Endpoint: url})
		for range 10 {
			next(t, w.ctx, progress)
		}
		b.Close() // in the middle of things
	}
	b := w.bridge(t, emulator.BridgeConfig{Endpoint: url})
	next(t, w.ctx, published)
	for count := 0; count < messages; {
		next(t, w.ctx, progress)
		must.Succeed(t, b.Idle(w.ctx))
		mu.Lock()
		count = len(got)
		mu.Unlock()
	}
}

func testOutlives(t *testing.T, w *pubsubFixture) {
	pushes := make(chan received, 4)
	url := endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) { pushes <- p })
	w.bridge(t, emulator.BridgeConfig{Endpoint: url, MaxBackoff: 10 * time.Millisecond, PullTimeout: time.Second})
	deletion := &pb.DeleteSubscriptionRequest{Subscription: w.subscription}
	must.Succeed(t, w.client.SubscriptionAdminClient.DeleteSubscription(w.ctx, deletion))
	again := &pb.Subscription{Name: w.subscription, Topic: w.topic.String()}
	if _, err := w.client.SubscriptionAdminClient.CreateSubscription(w.ctx, again); err != nil {
		t.Fatal(err)
	}
	w.publish(t, &pubsub.Message{Data: []byte("x")})
	if got := next(t, w.ctx, pushes); got.data != "x" {
		t.Errorf("pushed %q, want x", got.data)
	}
}

func testLarge(t *testing.T, w *pubsubFixture) {
	pushes := make(chan received, 4)
	url := endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) { pushes <- p })
	w.bridge(t, emulator.BridgeConfig{Endpoint: url})
	want := map[int]bool{}
	for _, size := range []int{1 << 20, 9 << 20} {
		w.publish(t, &pubsub.Message{Data: []byte(strings.Repeat("y", size))})
		want[size] = true
	}
	for range 2 {
		got := next(t, w.ctx, pushes)
		if !want[len(got.data)] || strings.Trim(got.data, "y") != "" {
			t.Errorf("pushed %d bytes, want one of %v, unchanged", len(got.data), want)
		}
		delete(want, len(got.data))
	}
}

func testBridgeConfig(t *testing.T, w *pubsubFixture) {
	good := emulator.BridgeConfig{Subscription: w.subscription, Endpoint: "http://127.0.0.1:1/"}
	cases := map[string]struct {
		change func(*emulator.BridgeConfig)
		want   string
	}{
		"no subscription":       {func(c *emulator.BridgeConfig) { c.Subscription = "" }, `subscription ""`},
		"a short name":          {func(c *emulator.BridgeConfig) { c.Subscription = "events" }, `subscription "events"`},
		"unknown subscription":  {func(c *emulator.BridgeConfig) { c.Subscription += "x" }, w.subscription + "x"},
		"no endpoint":           {func(c *emulator.BridgeConfig) { c.Endpoint = "" }, `endpoint ""`},
		"endpoint not http":     {func(c *emulator.BridgeConfig) { c.Endpoint = "ftp://x/" }, `endpoint "ftp://x/"`},
		"a topic's short name":  {func(c *emulator.BridgeConfig) { c.DeadLetterTopic = "dead" }, `topic "dead"`},
		"unknown dead letters":  {func(c *emulator.BridgeConfig) { c.DeadLetterTopic = w.deadTopic + "x" }, w.deadTopic + "x"},
		"subscription as topic": {func(c *emulator.BridgeConfig) { c.DeadLetterTopic = w.deadLetters }, w.deadLetters},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			b, err := emulator.StartBridge(w.ctx, w.client, cfg)
			if err == nil {
				b.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not name %q", err, c.want)
			}
		})
	}
}

// BenchmarkBridge pushes messages of 500 bytes from publish to endpoint: one at
// a time, which shows the delay, and as many as fit, which shows the rate.
func BenchmarkBridge(b *testing.B) {
	for name, waiting := range map[string]int{"one at a time": 1, "many": 1000} {
		b.Run(name, func(b *testing.B) {
			server, err := emulator.StartPubSub(storetest.Disk(b).Records('m'))
			must.Succeed(b, err)
			defer server.Close()
			client := pubsubClient(b, server.Addr)
			const topic, subscription = "projects/shop/topics/events", "projects/shop/subscriptions/events"
			createSubscription(b, client, topic, subscription)
			slots := make(chan struct{}, waiting)
			url := endpoint(b, func(http.ResponseWriter, *http.Request, received) { <-slots })
			ctx := context.Background()
			bridge, err := emulator.StartBridge(ctx, client, emulator.BridgeConfig{Subscription: subscription, Endpoint: url})
			must.Succeed(b, err)
			defer bridge.Close()
			publisher := client.Publisher(topic)
			defer publisher.Stop()
			publisher.PublishSettings.DelayThreshold = time.Millisecond
			m := &pubsub.Message{Data: make([]byte, 500)}
			for b.Loop() {
				slots <- struct{}{}
				publisher.Publish(ctx, m)
			}
			for range waiting {
				slots <- struct{}{} // the last ones have arrived
			}
		})
	}
}
