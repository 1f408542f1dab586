package deadletter

import (
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	eventsTopic  = "projects/p/topics/events"
	deadTopic    = "projects/p/topics/dead"
	subscription = "projects/p/subscriptions/dead"
)

// newQueue starts a Pub/Sub server and opens the queue of its dead letters.
func newQueue(t *testing.T, out io.Writer, options ...pstest.ServerReactorOption) (*pstest.Server, *Queue) {
	t.Helper()
	server := pstest.NewServer(options...)
	t.Cleanup(func() { _ = server.Close() })
	for _, topic := range []string{eventsTopic, deadTopic} {
		if _, err := server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
			t.Fatal(err)
		}
	}
	s := &pubsubpb.Subscription{Name: subscription, Topic: deadTopic, AckDeadlineSeconds: 600}
	if _, err := server.GServer.CreateSubscription(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return server, open(t, server, out)
}

func open(t *testing.T, server *pstest.Server, out io.Writer) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Options{Project: "p", Topic: "events", Subscription: "dead"}, out,
		option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// published returns the data of the messages on the events topic.
func published(server *pstest.Server) []string {
	var found []string
	for _, m := range server.Messages() {
		if m.Topic == eventsTopic {
			found = append(found, string(m.Data))
		}
	}
	return found
}

// A message that this run put back and that failed again is printed and stays a
// dead letter.
func TestReplayLeavesWhatFailsAgain(t *testing.T) {
	var out strings.Builder
	server, q := newQueue(t, &out)
	server.Publish(deadTopic, []byte("poison"), map[string]string{"replayRun": q.run, "reason": "still no JSON"})
	server.Publish(deadTopic, []byte("good"), nil)
	err := q.Replay(t.Context())
	if err == nil || !strings.Contains(err.Error(), "1 message failed again") {
		t.Errorf("Replay returned %v", err)
	}
	for _, want := range []string{"failed again: ", "still no JSON", "1 dead letter put back"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if got := published(server); len(got) != 1 || got[0] != "good" {
		t.Errorf("the topic has %q, want the good message alone", got)
	}
	out.Reset()
	if err := open(t, server, &out).List(t.Context()); err != nil || !strings.Contains(out.String(), "1 dead letter, none was moved") {
		t.Errorf("after the run List printed %q, %v", out.String(), err)
	}
}

// A message whose acknowledgement fails is not published twice by one run.
func TestReplayWithoutAcknowledgement(t *testing.T) {
	server, q := newQueue(t, io.Discard, pstest.WithErrorInjection("Acknowledge", codes.PermissionDenied, "not allowed"))
	server.Publish(deadTopic, []byte("a"), nil)
	err := q.Replay(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not allowed") || !strings.Contains(err.Error(), "1 dead letter put back") {
		t.Errorf("Replay returned %v", err)
	}
	if got := published(server); len(got) != 1 {
		t.Errorf("the topic has %q, want the message once", got)
	}
}
