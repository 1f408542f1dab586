package emulator

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/affinityengine/affinity/shared/local/must"
)

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
	must.Succeed(t, err)
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
	must.Succeed(t, server.Idle(ctx, testSubscription))
	if n := records(server); n != 2 {
		t.Errorf("%d messages were published, want the one and its dead letter", n)
	}
}

// A Bridge can be closed after its server has gone, which the client library by
// itself would wait for without end.
func TestBridgeClosesWithoutItsServer(t *testing.T) {
	ctx, server, client := testPubSub(t, sweepEvery, time.Now)
	entered, leave := make(chan struct{}), make(chan struct{})
	worker := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	defer worker.Close()
	bridge, err := StartBridge(ctx, client, BridgeConfig{Subscription: testSubscription, Endpoint: worker.URL})
	must.Succeed(t, err)
	bridge.closeTimeout = time.Millisecond
	publish(ctx, t, client, "x")
	<-entered
	server.server.Stop()
	close(leave)
	bridge.Close()
}
