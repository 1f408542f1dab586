package emulator

import (
	"context"
	"fmt"
	"net"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
)

// sweepEvery is the number of published messages after which their records are dropped, 20 MB or so.
const sweepEvery = 50_000

// PubSub is a Pub/Sub server in this process: pstest, which keeps topics, subscriptions, messages and leases, behind a
// server of our own that mends what makes it unfit to run for long.
//
//   - pstest drops what is undelivered for 10 minutes. Here nothing expires.
//   - pstest keeps every message for ever. Here contents go with the acknowledgement, and the records that remain
//     (about 400 B a message) are swept whenever nothing is unacknowledged.
//   - pstest hands each stream one message per 10 ms. Here streams are served at once and in batches.
//   - pstest keeps a message leased to a stream that has ended. Here the end of a stream gives it back.
//   - pstest redelivers a dead-lettered message for ever, and forgets messages outside a filter. Subscriptions with a
//     dead-letter policy or a filter are refused; the Bridge dead-letters by itself.
type PubSub struct {
	// Addr is the host:port the server listens on, for option.WithEndpoint or PUBSUB_EMULATOR_HOST.
	Addr    string
	server  *grpc.Server
	fake    *pstest.Server
	service *pubsubService
	ended   chan struct{} // closed by Close
	swept   chan struct{} // closed when the sweeper has ended
}

// StartPubSub starts a server without topics. The error says why no port of 127.0.0.1 could be had.
func StartPubSub() (*PubSub, error) { return startPubSub(sweepEvery, time.Now) }

func startPubSub(sweepEvery int, now func() time.Time) (*PubSub, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the Pub/Sub stand-in: %w", err)
	}
	clock := &publishClock{now: now}
	// pstest opens a port of its own too, which nobody is told of.
	fake := pstest.NewServerWithAddress("127.0.0.1:0", pstest.ServerReactorOption{FuncName: "Publish", Reactor: clock})
	fake.SetTimeNowFunc(clock.time)

	p := &PubSub{
		Addr:    listener.Addr().String(),
		server:  grpc.NewServer(grpc.MaxRecvMsgSize(maxRPC), grpc.MaxSendMsgSize(maxRPC), grpc.WaitForHandlers(true)),
		fake:    fake,
		service: newPubSubService(fake, sweepEvery),
		ended:   make(chan struct{}),
		swept:   make(chan struct{}),
	}
	pb.RegisterPublisherServer(p.server, p.service)
	pb.RegisterSubscriberServer(p.server, p.service)
	// Serve returns when Close stops the server, and has no other end on a listener that is open.
	go func() { _ = p.server.Serve(listener) }()
	go func() {
		defer close(p.swept)
		p.service.sweepLoop(p.ended)
	}()
	return p, nil
}

// Idle returns nil once every message that was published to the subscriptions (full names) before the call has been
// acknowledged, which covers messages that no subscriber has seen yet. A client library may hold its acknowledgements
// back for 100 ms. The error is that of ctx.
func (p *PubSub) Idle(ctx context.Context, subscriptions ...string) error {
	what := fmt.Sprintf("%v have no unacknowledged message", subscriptions)
	return p.service.changed.await(ctx, what, func() bool {
		for _, s := range subscriptions {
			if p.service.unacknowledged(s) > 0 {
				return false
			}
		}
		return true
	})
}

// Close ends all streams, stops the server and drops its data.
func (p *PubSub) Close() {
	close(p.ended)
	p.server.Stop()
	<-p.swept
	// The only error is that of a port closed twice.
	_ = p.fake.Close()
}

// publishClock is the time of pstest, which asks it under one lock for three things: the time of a publish, the ends of
// leases, and whether a message is too old to keep. Publishing gets the true time and all else a time long past, in
// which leases run as they should and no message is ever old.
type publishClock struct {
	now func() time.Time
	// publishing is how many messages of the publish under way still want their time. pstest's lock guards it.
	publishing int
}

// past is how far the time of leases lies behind.
const past = 100 * 365 * 24 * time.Hour

// React is told of a publish, with pstest's lock held from here until the last message has its time, and lets pstest
// go on with it. The topic must exist: a publish that pstest refuses would take no times.
func (c *publishClock) React(req any) (handled bool, response any, err error) {
	if publish, ok := req.(*pb.PublishRequest); ok {
		c.publishing = len(publish.Messages)
	}
	return false, nil, nil
}

func (c *publishClock) time() time.Time {
	if c.publishing > 0 {
		c.publishing--
		return c.now()
	}
	return c.now().Add(-past)
}
