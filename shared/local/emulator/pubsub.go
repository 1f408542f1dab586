package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// sweepEvery is the number of published messages after which a sweep drops their
// records: about 20 MB.
const sweepEvery = 50_000

// PubSub is a Pub/Sub server in this process. pstest keeps topics,
// subscriptions, messages and leases. A server in front of it corrects the
// behaviours that make pstest unfit to run for long:
//
//   - pstest drops messages that it could not deliver for 10 minutes. Here no
//     message expires.
//   - pstest keeps every message forever. Here an acknowledgement drops the
//     content. A sweep drops the remaining records (about 400 B a message) when
//     all messages are acknowledged.
//   - pstest hands each stream one message per 10 ms. Here a stream gets messages
//     at once and in batches.
//   - pstest keeps a message leased to a stream that has ended. Here the end of a
//     stream returns it.
//   - pstest redelivers a dead-lettered message forever, and forgets messages
//     outside a filter. This server refuses subscriptions with a dead-letter
//     policy or a filter. The Bridge forwards dead letters itself.
type PubSub struct {
	// Addr is the host:port the server listens on, for option.WithEndpoint or
	// PUBSUB_EMULATOR_HOST.
	Addr    string
	server  *grpc.Server
	fake    *pstest.Server
	service *pubsubService
	ended   chan struct{} // closed by Close
	swept   chan struct{} // closed when the sweeper has ended
}

// StartPubSub starts a server without topics on a free port of 127.0.0.1. The records hold
// a message from before its publish is answered until it is acknowledged. A subscription
// that is created gets those that an earlier process has left to it. opts may hold
// interceptors, which see every request.
func StartPubSub(records disk.Records, opts ...grpc.ServerOption) (*PubSub, error) {
	return startPubSub(records, sweepEvery, time.Now, opts...)
}

func startPubSub(records disk.Records, sweepEvery int, now func() time.Time,
	opts ...grpc.ServerOption) (*PubSub, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the Pub/Sub emulator: %w", err)
	}
	clock := &publishClock{now: now}
	fake, err := portless(pstest.ServerReactorOption{FuncName: "Publish", Reactor: clock})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the Pub/Sub emulator: %w", err), listener.Close())
	}
	fake.SetTimeNowFunc(clock.time)

	known := slices.Concat(expand(opts).known, transport(), []grpc.ServerOption{grpc.WaitForHandlers(true)})
	p := &PubSub{
		Addr:    listener.Addr().String(),
		server:  grpc.NewServer(known...),
		fake:    fake,
		service: newPubSubService(fake, newJournal(records, now), sweepEvery),
		ended:   make(chan struct{}),
		swept:   make(chan struct{}),
	}
	pb.RegisterPublisherServer(p.server, p.service)
	pb.RegisterSubscriberServer(p.server, p.service)
	// Serve returns when Close stops the server.
	go func() { _ = p.server.Serve(listener) }()
	go func() {
		defer close(p.swept)
		p.service.sweepLoop(p.ended)
	}()
	return p, nil
}

// portless starts pstest and closes its port, which has no interceptors: any
// process could read all messages there.
func portless(opts ...pstest.ServerReactorOption) (*pstest.Server, error) {
	var server *grpc.Server
	fake := pstest.NewServerWithCallback(0, func(s *grpc.Server) { server = s }, opts...)
	defer server.Stop()
	// pstest logs a line if its server is stopped before it serves. An answer to any
	// call shows that it serves.
	conn, err := grpc.NewClient(fake.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(err, fake.Close())
	}
	defer conn.Close()
	err = conn.Invoke(context.Background(), "/affinity.Started/Ask", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) != codes.Unimplemented {
		return nil, errors.Join(fmt.Errorf("call pstest: %w", err), fake.Close())
	}
	return fake, nil
}

// Idle returns nil when subscribers have acknowledged every message published to
// the subscriptions (full names) before the call. A client library may delay
// acknowledgements by 100 ms. The only error is the end of ctx.
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

// Close ends all streams and stops the server. Records keep what is not acknowledged.
func (p *PubSub) Close() {
	close(p.ended)
	p.server.Stop()
	<-p.swept
	// The only error is that of a port closed twice.
	_ = p.fake.Close()
}

// publishClock is the clock of pstest, which reads it under one lock for three
// purposes: the time of a publish, the end of a lease, and the age of a
// message. A publish gets the true time. The others get the time 100 years before,
// at which leases have their usual length and no message is ever too old.
type publishClock struct {
	now func() time.Time
	// publishing is the number of messages of the running publish that have no
	// time yet. pstest's lock guards it.
	publishing int
}

// leaseClockLag is how far the clock of leases lies behind.
const leaseClockLag = 100 * 365 * 24 * time.Hour

// React counts the messages of a publish and lets pstest continue. pstest holds
// its lock from here until the last message has its time. The topic must exist:
// a publish that pstest refuses would read no times.
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
	return c.now().Add(-leaseClockLag)
}
