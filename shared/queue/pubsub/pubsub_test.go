package pubsub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
)

// topics records the publishes that Pub/Sub accepts, and fails those to some topics.
type topics struct {
	mu        sync.Mutex
	published []string // "topic lane"
	fails     map[string]codes.Code
}

func (f *topics) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	r, ok := request.(*pb.PublishRequest)
	if !ok {
		return handle(ctx, request)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if code := f.fails[r.Topic]; code != codes.OK {
		return nil, status.Error(code, "no")
	}
	answer, err := handle(ctx, request)
	for _, m := range r.Messages {
		if err == nil {
			f.published = append(f.published, fmt.Sprint(r.Topic, " ", m.Attributes[bus.AttrLane]))
		}
	}
	return answer, err
}

// startTopics starts a Pub/Sub.
func startTopics(t *testing.T) (*topics, *grpc.ClientConn) {
	t.Helper()
	f := &topics{}
	server, err := emulator.StartPubSub(storetest.Disk(t).Records('m'), grpc.UnaryInterceptor(f.intercept))
	must.Succeed(t, err)
	t.Cleanup(server.Close)
	conn, err := grpc.NewClient(server.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Succeed(t, err)
	return f, conn
}

const events, slow = "projects/p/topics/events", "projects/p/topics/events-slow"

// An event of the slow lane takes the other one while the slow topic is missing or
// closed, with the mark of its lane. While Pub/Sub cannot be reached it is refused, so
// that its client sends it again.
func TestSlowLane(t *testing.T) {
	f, conn := startTopics(t)
	b, err := pubsub.Open(t.Context(), pubsub.Config{Project: "p", Events: "events", Slow: "events-slow", DeadLetters: "dead", Dedicated: config.Dedicated{"acme_shop": "acme"}}, option.WithGRPCConn(conn))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = b.Close() })
	admin := pb.NewPublisherClient(conn)
	create := func(topic string) {
		t.Helper()
		if _, err := admin.CreateTopic(t.Context(), &pb.Topic{Name: topic}); err != nil {
			t.Fatal(err)
		}
	}
	create(events)
	m := bus.Message{App: "shop", ReceivedAt: 1, Resolved: true, Lane: bus.SlowLane, Body: []byte(`{"events":[{"eventType":"view","eventName":"a","index":"i","userToken":"u","filters":["f:v"]}]}`)}
	check := func(what string, err error, code codes.Code, want ...string) {
		t.Helper()
		f.mu.Lock()
		defer f.mu.Unlock()
		if status.Code(err) != code || !slices.Equal(f.published, want) {
			t.Errorf("%s: published %q, %v; want %q, %s", what, f.published, err, want, code)
		}
		f.published = nil
	}
	check("without the topic", b.Publish(t.Context(), m), codes.OK, events+" slow")
	create(slow)
	check("with it", b.Publish(t.Context(), m), codes.OK, slow+" slow")
	fast := m
	fast.Lane = ""
	check("the other lane", b.Publish(t.Context(), fast), codes.OK, events+" ")
	// A dedicated app's events of both lanes go to its topic, once it exists.
	own, ownSlow := fast, m
	own.App, ownSlow.App = "acme_shop", "acme_shop"
	check("a dedicated app's, without its topic", b.Publish(t.Context(), own), codes.OK, events+" ")
	check("its slow ones, without its topic", b.Publish(t.Context(), ownSlow), codes.OK, slow+" slow")
	create(events + "-acme")
	check("a dedicated app's", b.Publish(t.Context(), own), codes.OK, events+"-acme ")
	check("its slow ones", b.Publish(t.Context(), ownSlow), codes.OK, events+"-acme slow")
	fail := func(code codes.Code) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.fails = map[string]codes.Code{slow: code}
	}
	fail(codes.PermissionDenied)
	check("closed", b.Publish(t.Context(), m), codes.OK, events+" slow")
	fail(codes.InvalidArgument)
	check("refused", b.Publish(t.Context(), m), codes.InvalidArgument)
	fail(codes.Unavailable) // the client tries until the request ends
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = b.Publish(ctx, m)
	if err == nil {
		t.Error("published although Pub/Sub cannot be reached")
	}
	check("unavailable", nil, codes.OK)
	fail(codes.OK) // else Close waits for the client's attempts
}

// Messages and dead letters of an app go to the topics of its region, and to no others,
// whatever is missing there.
func TestTopicsOfRegions(t *testing.T) {
	f, conn := startTopics(t)
	b, err := pubsub.Open(t.Context(), pubsub.Config{
		Project: "p", Events: "events", Slow: "events-slow", DeadLetters: "dead", Dedicated: config.Dedicated{"acme_shop": "acme"},
		Regions: config.Regions{{Name: "eu"}, {Name: "us"}},
		Where: func(_ context.Context, app string) (string, error) {
			return map[string]string{"european": "eu", "american": "us", "acme_shop": "us", "lost": "asia"}[app], nil
		},
	}, option.WithGRPCConn(conn))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = b.Close() })
	for _, topic := range []string{"events", "events-slow", "dead", "events.us", "dead.us"} {
		if _, err := pb.NewPublisherClient(conn).CreateTopic(t.Context(), &pb.Topic{Name: "projects/p/topics/" + topic}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ app, region, want string }{
		{"", "", "events dead"}, {"european", "", "events dead"}, {"american", "", "events.us dead.us"}, {"acme_shop", "", "events.us dead.us"}, {"lost", "", ""},
		{"european", "us", "events.us dead.us"}, {"american", "eu", "events dead"}, {"european", "asia", ""}, // of users who live there
	} {
		f.published = nil
		m := bus.Message{App: c.app, Region: c.region, ReceivedAt: 1, Resolved: true, Body: []byte(`{"events":[{"eventType":"view","eventName":"a","index":"i","userToken":"u","filters":["f:v"]}]}`)}
		published := b.Publish(t.Context(), m)
		var push bus.Push
		push.Message.MessageID, push.Message.Data, push.Message.Attributes = "1", []byte("{}"), map[string]string{bus.AttrApp: c.app}
		if c.region != "" {
			push.Message.Attributes[bus.AttrRegion] = c.region
		}
		buried := b.Bury(t.Context(), push, "why")
		got := strings.TrimSpace(strings.ReplaceAll(strings.Join(f.published, ""), "projects/p/topics/", ""))
		if (published == nil) != (c.want != "") || (buried == nil) != (c.want != "") || strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("app %q: %q, %v, %v, want %q", c.app, got, published, buried, c.want)
		}
	}
}
