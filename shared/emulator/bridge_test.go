package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/emulator"
	"github.com/affinityengine/affinity/shared/emulator/gcloudtest"
)

// The Bridge must do the same over every Pub/Sub server, so each of its tests runs over ours and over Google's.
func TestBridge(t *testing.T) {
	cases := map[string]func(*testing.T, *pubsubWorld){
		"pushes what Pub/Sub pushes":                    testPushShape,
		"acknowledges only what Pub/Sub takes for it":   testStatuses,
		"retries until delivered":                       testRetry,
		"moves what cannot be delivered to dead letter": testDeadLetter,
		"pushes for ever without a dead-letter topic":   testNoDeadLetterTopic,
		"bounds the pushes under way":                   testConcurrency,
		"goes on while a message waits":                 testPoison,
		"lets a push under way end at Close":            testCloseWaits,
		"gives back at Close what is not delivered":     testCloseGivesBack,
		"cuts off pushes when its context ends":         testContext,
		"loses nothing when closed and opened again":    testReopen,
		"carries large messages":                        testLarge,
		"outlives its subscription":                     testOutlives,
		"refuses a wrong configuration":                 testBridgeConfig,
	}
	servers := map[string]func(*testing.T) string{
		"in process": func(t *testing.T) string {
			server, err := emulator.StartPubSub()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			return server.Addr
		},
		"Google's emulator": func(t *testing.T) string { return gcloudtest.PubSub(t) },
	}
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			addr := start(t)
			for name, test := range cases {
				t.Run(name, func(t *testing.T) { test(t, newPubSubWorld(t, addr)) })
			}
		})
	}
}

// pubsubWorld is a topic with a subscription, and a dead-letter topic with one, on some server.
type pubsubWorld struct {
	ctx          context.Context
	client       *pubsub.Client
	topic        *pubsub.Publisher
	subscription string
	deadTopic    string
	deadLetters  string // the dead-letter topic's subscription
}

var worlds atomic.Int64

func newPubSubWorld(t *testing.T, addr string) *pubsubWorld {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	client := pubsubClient(t, addr)
	n := worlds.Add(1)
	w := &pubsubWorld{
		ctx:          ctx,
		client:       client,
		subscription: fmt.Sprintf("projects/shop/subscriptions/events-%d", n),
		deadTopic:    fmt.Sprintf("projects/shop/topics/dead-%d", n),
		deadLetters:  fmt.Sprintf("projects/shop/subscriptions/dead-%d", n),
	}
	topic := fmt.Sprintf("projects/shop/topics/events-%d", n)
	createSubscription(t, client, topic, w.subscription)
	createSubscription(t, client, w.deadTopic, w.deadLetters)
	w.topic = client.Publisher(topic)
	w.topic.PublishSettings.DelayThreshold = time.Millisecond
	t.Cleanup(w.topic.Stop)
	return w
}

func pubsubClient(t testing.TB, addr string) *pubsub.Client {
	t.Helper()
	client, err := pubsub.NewClient(context.Background(), "shop", option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func createSubscription(t testing.TB, client *pubsub.Client, topic, subscription string) {
	t.Helper()
	ctx := context.Background()
	if _, err := client.TopicAdminClient.CreateTopic(ctx, &pb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	sub := &pb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 10}
	if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, sub); err != nil {
		t.Fatal(err)
	}
}

func (w *pubsubWorld) publish(t *testing.T, m *pubsub.Message) string {
	t.Helper()
	id, err := w.topic.Publish(w.ctx, m).Get(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// bridge starts a Bridge with waits that suit a test where the configuration names none. It is closed with the test, if
// not before.
func (w *pubsubWorld) bridge(t *testing.T, cfg emulator.BridgeConfig) *emulator.Bridge {
	t.Helper()
	cfg.Subscription = w.subscription
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = time.Millisecond
	}
	b, err := emulator.StartBridge(w.ctx, w.client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// received is one push as an endpoint sees it.
type received struct {
	method      string
	header      http.Header
	body        []byte
	id, data    string
	publishTime time.Time
	attempt     int
}

// endpoint starts a server that answers pushes; its URL is the result.
func endpoint(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, p received)) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read push: %v", err)
		}
		var p struct {
			Message struct {
				Data        []byte
				MessageID   string    `json:"messageId"`
				PublishTime time.Time `json:"publishTime"`
			}
			DeliveryAttempt int `json:"deliveryAttempt"`
		}
		if err := json.Unmarshal(body, &p); err != nil {
			t.Errorf("decode push %.300s: %v", body, err)
		}
		answer(w, r, received{
			r.Method, r.Header, body, p.Message.MessageID, string(p.Message.Data), p.Message.PublishTime, p.DeliveryAttempt,
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// next takes the next element, or fails the test when none comes.
func next[T any](t *testing.T, ctx context.Context, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("waited in vain: %v", context.Cause(ctx))
		panic("unreachable")
	}
}

func testPushShape(t *testing.T, w *pubsubWorld) {
	pushes := make(chan received, 1)
	url := endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) { pushes <- p })
	w.bridge(t, emulator.BridgeConfig{Endpoint: url + "/push?x=1", Header: http.Header{"X-Local-Token": {"secret"}}})
	before := time.Now().Add(-time.Second)
	id := w.publish(t, &pubsub.Message{Data: []byte("<h\x00i>"), Attributes: map[string]string{"app": "shöp"}})

	got := next(t, w.ctx, pushes)
	if got.method != http.MethodPost {
		t.Errorf("method %s, want POST", got.method)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "X-Local-Token": "secret"} {
		if v := got.header.Get(name); v != want {
			t.Errorf("header %s is %q, want %q", name, v, want)
		}
	}
	var body map[string]any
	if err := json.Unmarshal(got.body, &body); err != nil {
		t.Fatal(err)
	}
	published := got.publishTime.Format("2006-01-02T15:04:05.999Z07:00")
	if diff := cmp.Diff(map[string]any{
		"message": map[string]any{
			"data": "PGgAaT4=", "attributes": map[string]any{"app": "shöp"}, "messageId": id, "message_id": id,
			"publishTime": published, "publish_time": published,
		},
		"subscription":    w.subscription,
		"deliveryAttempt": 1.0,
	}, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got.publishTime.Before(before) || got.publishTime.After(time.Now().Add(time.Second)) {
		t.Errorf("publish time %v is not that of the publish, about %v", got.publishTime, before)
	}
}

func testStatuses(t *testing.T, w *pubsubWorld) {
	// Each message names the status of its first answer; a second push is what shows that it was no acknowledgement.
	want := map[string]int{"200": 1, "201": 1, "202": 1, "204": 1, "203": 2, "206": 2, "302": 2, "400": 2, "404": 2, "500": 2}
	var mu sync.Mutex
	got := map[string]int{}
	done := make(chan struct{}, 2*len(want))
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, p received) {
		mu.Lock()
		got[p.data]++
		mu.Unlock()
		done <- struct{}{}
		if p.attempt > 1 {
			return
		}
		var status int
		fmt.Sscan(p.data, &status)
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(status)
	})
	b := w.bridge(t, emulator.BridgeConfig{Endpoint: url})
	pushes := 0
	for status, n := range want {
		w.publish(t, &pubsub.Message{Data: []byte(status)})
		pushes += n
	}
	for range pushes {
		next(t, w.ctx, done)
	}
	if err := b.Idle(w.ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pushes by status (-want +got):\n%s", diff)
	}
}

func testRetry(t *testing.T, w *pubsubWorld) {
	attempts := make(chan int, 10)
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, p received) {
		attempts <- p.attempt
		switch p.attempt {
		case 1:
			rw.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		}
	})
	b := w.bridge(t, emulator.BridgeConfig{Endpoint: url, DeadLetterTopic: w.deadTopic})
	w.publish(t, &pubsub.Message{Data: []byte("x")})
	for want := 1; want <= 3; want++ {
		if got := next(t, w.ctx, attempts); got != want {
			t.Errorf("deliveryAttempt %d, want %d", got, want)
		}
	}
	if err := b.Idle(w.ctx); err != nil {
		t.Fatal(err)
	}
	if len(attempts) > 0 {
		t.Error("pushed again after it was delivered")
	}
}

func testDeadLetter(t *testing.T, w *pubsubWorld) {
	var pushes atomic.Int64
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, _ received) {
		pushes.Add(1)
		http.Error(rw, "cannot read this", http.StatusBadRequest)
	})
	var log strings.Builder
	b := w.bridge(t, emulator.BridgeConfig{
		Endpoint: url, DeadLetterTopic: w.deadTopic, MaxAttempts: 3,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	id := w.publish(t, &pubsub.Message{Data: []byte("poison"), Attributes: map[string]string{"app": "shop"}})

	dead := w.receive(t, w.deadLetters)
	if string(dead.Data) != "poison" {
		t.Errorf("data %q, want the original", dead.Data)
	}
	attrs := maps.Clone(dead.Attributes)
	published := attrs["CloudPubSubDeadLetterSourceTopicPublishTime"]
	delete(attrs, "CloudPubSubDeadLetterSourceTopicPublishTime")
	if at, err := time.Parse(time.RFC3339, published); err != nil || at.After(dead.PublishTime) {
		t.Errorf("original publish time %q: %v; want RFC 3339, not after %v", published, err, dead.PublishTime)
	}
	if diff := cmp.Diff(map[string]string{
		"app": "shop",
		"CloudPubSubDeadLetterSourceDeliveryCount":       "3",
		"CloudPubSubDeadLetterSourceSubscription":        w.subscription[len("projects/shop/subscriptions/"):],
		"CloudPubSubDeadLetterSourceSubscriptionProject": "shop",
	}, attrs); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	b.Close()
	if n := pushes.Load(); n != 3 {
		t.Errorf("%d pushes, want 3", n)
	}
	if !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "cannot read this") {
		t.Errorf("the log names neither the message nor the endpoint's words:\n%s", &log)
	}
}

// receive takes one message from a subscription and acknowledges it.
func (w *pubsubWorld) receive(t *testing.T, subscription string) *pubsub.Message {
	t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	first := make(chan *pubsub.Message, 1)
	err := w.client.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		m.Ack()
		select {
		case first <- m:
		default:
		}
		cancel()
	})
	if err != nil {
		t.Fatal(err)
	}
	return next(t, w.ctx, first)
}

func testNoDeadLetterTopic(t *testing.T, w *pubsubWorld) {
	delivered := make(chan int, 1)
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, p received) {
		if p.attempt < 9 {
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		delivered <- p.attempt
	})
	w.bridge(t, emulator.BridgeConfig{Endpoint: url, MaxAttempts: 3, MaxBackoff: 2 * time.Millisecond})
	w.publish(t, &pubsub.Message{Data: []byte("x")})
	if got := next(t, w.ctx, delivered); got != 9 {
		t.Errorf("delivered at attempt %d, want 9", got)
	}
}

func testConcurrency(t *testing.T, w *pubsubWorld) {
	const limit, messages = 3, 12
	var running, most atomic.Int64
	entered, leave := make(chan struct{}, messages), make(chan struct{})
	url := endpoint(t, func(http.ResponseWriter, *http.Request, received) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		entered <- struct{}{}
		<-leave
		running.Add(-1)
	})
	b := w.bridge(t, emulator.BridgeConfig{Endpoint: url, Concurrency: limit})
	for i := range messages {
		w.publish(t, &pubsub.Message{Data: []byte{byte(i)}})
	}
	for range limit {
		next(t, w.ctx, entered) // as many as allowed run side by side
	}
	close(leave)
	for range messages - limit {
		next(t, w.ctx, entered)
	}
	if err := b.Idle(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got != limit {
		t.Errorf("%d pushes at one time, want %d", got, limit)
	}
}

func testPoison(t *testing.T, w *pubsubWorld) {
	pushes := make(chan string, 10)
	url := endpoint(t, func(rw http.ResponseWriter, _ *http.Request, p received) {
		if p.data == "poison" {
			rw.WriteHeader(http.StatusInternalServerError)
		}
		pushes <- p.data
	})
	w.bridge(t, emulator.BridgeConfig{Endpoint: url, Concurrency: 1, MinBackoff: time.Hour, MaxBackoff: time.Hour})
	for _, data := range []string{"poison", "food"} {
		w.publish(t, &pubsub.Message{Data: []byte(data)})
	}
	got := []string{next(t, w.ctx, pushes), next(t, w.ctx, pushes)}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"food", "poison"}, got); diff != "" {
		t.Errorf("pushed (-want +got):\n%s", diff)
	}
}

func testCloseWaits(t *testing.T, w *pubsubWorld) {
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
		t.Errorf("pushed %q, want only what was not delivered before", got.data)
	}
}

func testCloseGivesBack(t *testing.T, w *pubsubWorld) {
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

func testContext(t *testing.T, w *pubsubWorld) {
	entered, cut := make(chan struct{}), make(chan struct{})
	url := endpoint(t, func(_ http.ResponseWriter, r *http.Request, _ received) {
		close(entered)
		<-r.Context().Done()
		close(cut)
	})
	ctx, cancel := context.WithCancel(w.ctx)
	b, err := emulator.StartBridge(ctx, w.client, emulator.BridgeConfig{Subscription: w.subscription, Endpoint: url})
	if err != nil {
		t.Fatal(err)
	}
	w.publish(t, &pubsub.Message{Data: []byte("x")})
	next(t, w.ctx, entered)
	cancel()
	next(t, w.ctx, cut)
	b.Close()
	if got := w.receive(t, w.subscription); string(got.Data) != "x" {
		t.Errorf("received %q, want the message given back", got.Data)
	}
}

func testReopen(t *testing.T, w *pubsubWorld) {
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
		if err := b.Idle(w.ctx); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		count = len(got)
		mu.Unlock()
	}
}

func testOutlives(t *testing.T, w *pubsubWorld) {
	pushes := make(chan received, 4)
	url := endpoint(t, func(_ http.ResponseWriter, _ *http.Request, p received) { pushes <- p })
	w.bridge(t, emulator.BridgeConfig{Endpoint: url, MaxBackoff: 10 * time.Millisecond})
	deletion := &pb.DeleteSubscriptionRequest{Subscription: w.subscription}
	if err := w.client.SubscriptionAdminClient.DeleteSubscription(w.ctx, deletion); err != nil {
		t.Fatal(err)
	}
	again := &pb.Subscription{Name: w.subscription, Topic: w.topic.String()}
	if _, err := w.client.SubscriptionAdminClient.CreateSubscription(w.ctx, again); err != nil {
		t.Fatal(err)
	}
	w.publish(t, &pubsub.Message{Data: []byte("x")})
	if got := next(t, w.ctx, pushes); got.data != "x" {
		t.Errorf("pushed %q, want x", got.data)
	}
}

func testLarge(t *testing.T, w *pubsubWorld) {
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

func testBridgeConfig(t *testing.T, w *pubsubWorld) {
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

// BenchmarkBridge pushes messages of 500 bytes from publish to endpoint: one at a time, which shows the delay, and as
// many as fit, which shows the rate.
func BenchmarkBridge(b *testing.B) {
	for name, waiting := range map[string]int{"one at a time": 1, "many": 1000} {
		b.Run(name, func(b *testing.B) {
			server, err := emulator.StartPubSub()
			if err != nil {
				b.Fatal(err)
			}
			defer server.Close()
			client := pubsubClient(b, server.Addr)
			const topic, subscription = "projects/shop/topics/events", "projects/shop/subscriptions/events"
			createSubscription(b, client, topic, subscription)
			slots := make(chan struct{}, waiting)
			url := endpoint(b, func(http.ResponseWriter, *http.Request, received) { <-slots })
			ctx := context.Background()
			bridge, err := emulator.StartBridge(ctx, client, emulator.BridgeConfig{Subscription: subscription, Endpoint: url})
			if err != nil {
				b.Fatal(err)
			}
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
