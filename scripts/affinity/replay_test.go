package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/operator"
)

const (
	eventsTopic     = "projects/affinity-local/topics/events"
	deadTopic       = "projects/affinity-local/topics/events-dead-letter"
	deadLettersName = "projects/affinity-local/subscriptions/events-dead-letter"
)

// newPubSub starts a Pub/Sub server with the topics of a local stack, and a fake
// engine that answers with its address.
func newPubSub(t *testing.T, options ...pstest.ServerReactorOption) (*pstest.Server, *fakeEngine) {
	t.Helper()
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	t.Setenv(operator.Variable, fakeOperator)
	server := pstest.NewServer(options...)
	t.Cleanup(func() { _ = server.Close() })
	for _, topic := range []string{eventsTopic, deadTopic} {
		if _, err := server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
			t.Fatal(err)
		}
	}
	subscription := &pubsubpb.Subscription{Name: deadLettersName, Topic: deadTopic, AckDeadlineSeconds: 600}
	if _, err := server.GServer.CreateSubscription(t.Context(), subscription); err != nil {
		t.Fatal(err)
	}
	engine := newFakeEngine(t)
	engine.local = &operator.Place{PubSub: server.Addr, Project: "affinity-local", EventsTopic: "events", DeadLetterSubscription: "events-dead-letter"}
	return server, engine
}

// published returns the attributes of the messages on the events topic, by data.
func published(server *pstest.Server) map[string]map[string]string {
	found := map[string]map[string]string{}
	for _, m := range server.Messages() {
		if m.Topic == eventsTopic {
			found[string(m.Data)] = m.Attributes
		}
	}
	return found
}

func TestReplay(t *testing.T) {
	server, engine := newPubSub(t)
	for i := range 120 { // more than one pull
		server.Publish(deadTopic, []byte(fmt.Sprintf("event %d", i)), map[string]string{
			"app": "shop", "reason": "no JSON\x1b[2J", "replayRun": "an earlier one", "own": "stays", "messageId": "1", "deliveryAttempt": "7",
			"CloudPubSubDeadLetterSourceDeliveryCount": "5", "CloudPubSubDeadLetterSourceTopicPublishTime": "2026-11-20T10:00:00Z",
		})
	}
	server.Publish(deadTopic, []byte("bare"), nil)

	r := affinity(t, "", "replay", "--dry-run", "--url", engine.URL)
	r.wants(t, cli.ExitOK, "121 dead letters, none was moved",
		"app shop  attempts 7  published 2026-11-20T10:00:00Z  7 bytes  no JSON\ufffd[2J", "app -  attempts -", "4 bytes  no reason given")
	if n := strings.Count(r.out, " bytes "); n != 121 {
		t.Errorf("the dry run printed %d messages, want each of 121 once", n)
	}
	if got := published(server); len(got) != 0 {
		t.Errorf("the dry run published %v", got)
	}

	r = affinity(t, "", "replay", "--url", engine.URL)
	r.wants(t, cli.ExitOK, "121 dead letters put back")
	if n := strings.Count(r.out, " bytes "); n != 121 {
		t.Errorf("the run printed %d messages, want each of 121 once", n)
	}
	got := published(server)
	if len(got) != 121 {
		t.Fatalf("the topic has %d messages, want 121", len(got))
	}
	run := got["bare"]["replayRun"]
	for data, attributes := range got {
		want := map[string]string{"app": "shop", "own": "stays", "replayRun": run}
		if data == "bare" {
			want = map[string]string{"replayRun": run}
		}
		if fmt.Sprint(attributes) != fmt.Sprint(want) || run == "" || run == "an earlier one" {
			t.Errorf("message %q was published with %v, want %v", data, attributes, want)
		}
	}

	affinity(t, "", "replay", "--url", engine.URL).wants(t, cli.ExitOK, "no dead letters")
	affinity(t, "", "replay", "--dry-run", "--url", engine.URL).wants(t, cli.ExitOK, "no dead letters")
}

func TestReplayThatCannotPublish(t *testing.T) {
	server, engine := newPubSub(t)
	server.Publish(deadTopic, []byte("a"), nil)
	affinity(t, "", "replay", "--topic", "nowhere", "--url", engine.URL).
		wants(t, cli.ExitFailed, "to projects/affinity-local/topics/nowhere", "0 dead letters put back before that")
	affinity(t, "", "replay", "--dry-run", "--url", engine.URL).wants(t, cli.ExitOK, "1 dead letter, none was moved")
}

func TestReplayWithoutSubscription(t *testing.T) {
	_, engine := newPubSub(t)
	affinity(t, "", "replay", "--dead-letter-subscription", "nowhere", "--url", engine.URL).
		wants(t, cli.ExitFailed, "pull from projects/affinity-local/subscriptions/nowhere")
}

func TestReplayOnTheEmulator(t *testing.T) {
	server, _ := newPubSub(t)
	server.Publish(deadTopic, []byte("a"), nil)
	t.Setenv("PUBSUB_EMULATOR_HOST", server.Addr)
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	affinity(t, "", "replay").wants(t, cli.ExitOK, "1 dead letter put back")
	affinity(t, "", "replay", "--project", "other").wants(t, cli.ExitFailed, "projects/other/subscriptions/events-dead-letter")
}

// The operator's token is asked for in words, and stays on this machine.
func TestReplayNeedsTheOperator(t *testing.T) {
	_, engine := newPubSub(t)
	for _, c := range []struct {
		name, token, url string
		code             int
		want             string
	}{
		{"without a token", "", engine.URL, cli.ExitUsage, "set AFFINITY_OPERATOR"},
		{"with a short token", "guess", engine.URL, cli.ExitUsage, "AFFINITY_OPERATOR must be 16 to 200 letters"},
		{"with another engine's token", "another-engines-token", engine.URL, cli.ExitFailed, "has another operator's token"},
		{"at another machine", fakeOperator, "http://192.0.2.1:8080", cli.ExitUsage, "for an engine on this machine, not at 192.0.2.1:8080"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(operator.Variable, c.token)
			affinity(t, "", "replay", "--url", c.url).wants(t, c.code, c.want)
		})
	}
}

func TestReplayInterrupted(t *testing.T) {
	server, engine := newPubSub(t)
	server.Publish(deadTopic, []byte("a"), nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	affinityWith(t, ctx, "", func(*program) {}, "replay", "--url", engine.URL).wants(t, cli.ExitFailed, "interrupted")
	if got := published(server); len(got) != 0 {
		t.Errorf("the topic has %v, want nothing", got)
	}
}
