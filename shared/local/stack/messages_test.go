package stack_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

const seenStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
	"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`

// messaging is a client of the engine's Pub/Sub.
func messaging(t *testing.T, s *stack.Stack) *pubsub.Client {
	t.Helper()
	at := place(t, s)
	client, err := pubsub.NewClient(t.Context(), at.Project, option.WithEndpoint(at.PubSub), option.WithoutAuthentication(),
		option.WithGRPCDialOption(emulator.WithToken(at.Token)), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	must.Succeed(t, err)
	must.CloseAtEnd(t, client)
	return client
}

func publish(t *testing.T, client *pubsub.Client, data string) {
	t.Helper()
	topic := client.Publisher(stack.EventsTopic)
	defer topic.Stop()
	if _, err := topic.Publish(t.Context(), &pubsub.Message{Data: []byte(data)}).Get(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// deadLetters takes the messages that are in the dead-letter subscription.
func deadLetters(t *testing.T, client *pubsub.Client, n int) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	for len(reasons) < n {
		resp, err := client.SubscriptionAdminClient.Pull(t.Context(), &pubsubpb.PullRequest{
			Subscription: "projects/" + stack.Project + "/subscriptions/" + stack.DeadLetters, MaxMessages: 100})
		must.Succeed(t, err)
		for _, m := range resp.ReceivedMessages {
			reasons[string(m.Message.Data)] = m.Message.Attributes[bus.AttrReason]
		}
	}
	return reasons
}

func TestInvalidMessagesAreBuried(t *testing.T) {
	s := start(t, stack.Options{})
	client := messaging(t, s)
	want := map[string]string{
		"garbage": "decode message",
		`{"app":"nowhere","receivedAt":1700000000000,"request":1,"resolved":true}` + "\n" + `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["a:b"]}]}`: `app "nowhere" does not exist`,
		`{"app":"demo","receivedAt":1700000000000,"request":1,"resolved":true}` + "\n" + `{"events":[{}]}`:                                                                                       "EventName is required",
	}
	for data := range want {
		publish(t, client, data)
	}
	got := deadLetters(t, client, len(want))
	for data, reason := range want {
		if !strings.Contains(got[data], reason) {
			t.Errorf("%s is buried for %q, want %q", data, got[data], reason)
		}
	}
	if code, _ := call(t, s, "GET", "/health", ""); code != http.StatusOK {
		t.Error("the engine does not answer afterwards")
	}
}

func TestProcessResolvesObjects(t *testing.T) {
	s := start(t, stack.Options{})
	for path, body := range map[string]string{
		"/1/strategies/personalization": seenStrategy,
		"/1/indexes/i/batch":            `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`,
	} {
		wantStatus(t, s, http.StatusOK, "POST", path, body)
	}
	// The same functions over a catalog that cannot be read.
	blind := *s.Backends
	blind.Enricher = enrich.New(unreadable{}, s.Backends.CachedConfig)
	r := httptest.NewRequest("POST", "/1/events", strings.NewReader(
		`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":["1"]}]}`))
	r.Header.Set("X-Algolia-Application-Id", "demo")
	r.Header.Set("X-Algolia-API-Key", "demokey")
	w := httptest.NewRecorder()
	ingest.New(blind.ForIngest()).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s: events are accepted without a catalog", w.Code, w.Body)
	}
	idle(t, s)
	if code, answer := call(t, s, "GET", "/1/profiles/u", ""); code != http.StatusOK || !strings.Contains(answer, `"value":"Red"`) {
		t.Errorf("%d %s, want the object's color", code, answer)
	}
}

type unreadable struct{}

var errUnreadable = errors.New("the catalog cannot be read")

func (unreadable) ScanFilters(context.Context, string, []store.ObjectRef, func(store.ObjectRef, store.ObjectFilters) error) error {
	return errUnreadable
}

func (unreadable) ScanRecords(context.Context, string, []store.ObjectRef, func(store.ObjectRef, []byte) error) error {
	return errUnreadable
}

// away returns a configuration whose apps cannot be read.
func away(s *config.Store, err error) config.Source {
	return configtest.Hooked(s, func(_ context.Context, read string) error {
		if read == "app" {
			return err
		}
		return nil
	})
}

func TestProcessRetriesThenBuries(t *testing.T) {
	s := start(t, stack.Options{})
	broken := *s.Backends
	broken.CachedConfig = config.NewCached(away(s.Backends.Config, errors.New("configuration is away")), 0)
	h := process.New(broken.ForProcess())
	push := func(attempt string) int {
		data := base64.StdEncoding.EncodeToString([]byte(`{"app":"demo","receivedAt":1700000000000,"resolved":true}` + "\n" +
			`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["a:b"]}]}`))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(
			`{"message":{"data":"`+data+`","messageId":"7"},"subscription":"s","deliveryAttempt":`+attempt+`}`)))
		return w.Code
	}
	failed := 0
	for push(fmt.Sprint(failed+1)) >= 500 && failed < 30 {
		failed++
	}
	// The delivery that fails for the 20th time is answered with success.
	if failed != 19 && failed != 20 {
		t.Fatalf("%d deliveries are answered with a status that Pub/Sub retries", failed)
	}
	for _, reason := range deadLetters(t, messaging(t, s), 1) {
		if !strings.Contains(reason, "configuration is away") {
			t.Errorf("buried for %q, want the last failure", reason)
		}
	}
}

func TestMalformedPushesAndTasks(t *testing.T) {
	s := start(t, stack.Options{})
	for _, test := range []struct {
		name, path, body string
		handler          http.Handler
		status           int
	}{
		{"push that is no JSON", "/", "garbage", process.New(s.Backends.ForProcess()), 400},
		{"push without a message", "/", `{"subscription":"s"}`, process.New(s.Backends.ForProcess()), 400},
		{"push whose data is no base64", "/", `{"message":{"data":"%","messageId":"1"}}`, process.New(s.Backends.ForProcess()), 400},
		{"empty push", "/", "", process.New(s.Backends.ForProcess()), 400},
		// A malformed task is answered as done: the queue would retry it forever.
		{"task that is no JSON", "/purge", "garbage", worker.New(s.Backends.ForWorker()), 200},
		{"task for a malformed user", "/purge", `{"app":"demo","userToken":"a,b","deletedUntil":1}`, worker.New(s.Backends.ForWorker()), 200},
		{"task for nobody", "/purge", `{"app":"demo","userToken":"nobody","deletedUntil":1}`, worker.New(s.Backends.ForWorker()), 200},
		{"unknown task", "/explode", `{}`, worker.New(s.Backends.ForWorker()), 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			test.handler.ServeHTTP(w, httptest.NewRequest("POST", test.path, strings.NewReader(test.body)))
			if w.Code != test.status || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%d %s, want %d in JSON", w.Code, w.Body, test.status)
			}
		})
	}
}

func TestForgedPurgeDeletesNothing(t *testing.T) {
	s := start(t, stack.Options{})
	call(t, s, "POST", "/1/strategies/personalization", seenStrategy)
	call(t, s, "POST", "/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"]}]}`)
	idle(t, s)
	w := httptest.NewRecorder()
	worker.New(s.Backends.ForWorker()).ServeHTTP(w, httptest.NewRequest("POST", "/purge", strings.NewReader(`{"app":"demo","userToken":"u","deletedUntil":9999999999999}`)))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"purged":0`) {
		t.Errorf("%d %s, want no event purged of a user who was not deleted", w.Code, w.Body)
	}
}

func TestPurgeRemovesDeletedEvents(t *testing.T) {
	s := start(t, stack.Options{})
	call(t, s, "POST", "/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"]}]}`)
	idle(t, s)
	wantStatus(t, s, http.StatusOK, "DELETE", "/1/profiles/u", "")
	idle(t, s) // the task is done
	until := s.Backends.Now()
	if n, err := s.Backends.Profiles.Purge(t.Context(), "demo", "u", until); err != nil || n != 0 {
		t.Errorf("%d events left to purge, %v; want 0, because the task removes them", n, err)
	}
}
