package emulator_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
)

func testStatuses(t *testing.T, w *pubsubFixture) {
	// Each message names the status of its first answer; a second push is what
	// shows that it was no acknowledgement.
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
	must.Succeed(t, b.Idle(w.ctx))
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pushes by status (-want +got):\n%s", diff)
	}
}

func testRetry(t *testing.T, w *pubsubFixture) {
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
	must.Succeed(t, b.Idle(w.ctx))
	if len(attempts) > 0 {
		t.Error("pushed again after it was delivered")
	}
}

func testDeadLetter(t *testing.T, w *pubsubFixture) {
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

func testNoDeadLetterTopic(t *testing.T, w *pubsubFixture) {
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

func testPoison(t *testing.T, w *pubsubFixture) {
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
