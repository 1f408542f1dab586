package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// The Bridge must do the same over every Pub/Sub server, so each of its tests
// runs over ours and over Google's.
func TestBridge(t *testing.T) {
	cases := map[string]func(*testing.T, *pubsubFixture){
		"pushes what Pub/Sub pushes":                    testPushShape,
		"acknowledges only what Pub/Sub takes for it":   testStatuses,
		"retries until delivered":                       testRetry,
		"moves what cannot be delivered to dead letter": testDeadLetter,
		"pushes forever without a dead-letter topic":    testNoDeadLetterTopic,
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
			server, err := emulator.StartPubSub(storetest.Disk(t).Records('m'))
			must.Succeed(t, err)
			t.Cleanup(server.Close)
			return server.Addr
		},
		"Google's emulator": func(t *testing.T) string { return gcloudtest.PubSub(t) },
	}
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			addr := start(t)
			for name, test := range cases {
				t.Run(name, func(t *testing.T) {
					t.Parallel() // each has topics of its own, and some wait for a lease to end
					w := newPubSubFixture(t, addr)
					w.unary = server != "in process"
					test(t, w)
				})
			}
		})
	}
}

// pubsubFixture is a topic with a subscription, and a dead-letter topic with one,
// on some server.
type pubsubFixture struct {
	ctx          context.Context
	client       *pubsub.Client
	topic        *pubsub.Publisher
	unary        bool // Google's emulator does not see streams end
	subscription string
	deadTopic    string
	deadLetters  string // the dead-letter topic's subscription
}

var fixtures atomic.Int64

func newPubSubFixture(t *testing.T, addr string) *pubsubFixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	client := pubsubClient(t, addr)
	n := fixtures.Add(1)
	w := &pubsubFixture{
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
	must.Succeed(t, err)
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

func (w *pubsubFixture) publish(t *testing.T, m *pubsub.Message) string {
	t.Helper()
	id, err := w.topic.Publish(w.ctx, m).Get(w.ctx)
	must.Succeed(t, err)
	return id
}

// bridge starts a Bridge with waits that suit a test where the configuration
// names none. It is closed with the test, if not before.
func (w *pubsubFixture) bridge(t *testing.T, cfg emulator.BridgeConfig) *emulator.Bridge {
	t.Helper()
	cfg.Subscription, cfg.Unary = w.subscription, w.unary
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = time.Millisecond
	}
	b, err := emulator.StartBridge(w.ctx, w.client, cfg)
	must.Succeed(t, err)
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
		t.Fatalf("waited without a result: %v", context.Cause(ctx))
		panic("unreachable")
	}
}

func testPushShape(t *testing.T, w *pubsubFixture) {
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
	must.Succeed(t, json.Unmarshal(got.body, &body))
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

// receive takes one message from a subscription and acknowledges it.
func (w *pubsubFixture) receive(t *testing.T, subscription string) *pubsub.Message {
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
	must.Succeed(t, err)
	return next(t, w.ctx, first)
}

func testConcurrency(t *testing.T, w *pubsubFixture) {
	const limit, messages = 3, 12
	var running, maxRunning atomic.Int64
	entered, leave := make(chan struct{}, messages), make(chan struct{})
	url := endpoint(t, func(http.ResponseWriter, *http.Request, received) {
		n := running.Add(1)
		for m := maxRunning.Load(); n > m && !maxRunning.CompareAndSwap(m, n); m = maxRunning.Load() {
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
	must.Succeed(t, b.Idle(w.ctx))
	if got := maxRunning.Load(); got != limit {
		t.Errorf("%d pushes at one time, want %d", got, limit)
	}
}
