package profile_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// TestMessagesShareRefreshes sends many messages of few users at once through
// one engine. The next read counts every acknowledged event, and there are far
// fewer refreshes than messages.
func TestMessagesShareRefreshes(t *testing.T) {
	const senders = 40
	each := race.Or(15, 4)
	users := []string{"u", "v"}
	var tickets atomic.Int64
	b := newFixture(t, 90, plain)
	b.store = storetest.New(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == "/google.bigtable.v2.Bigtable/ReadModifyWriteRow" {
			tickets.Add(1)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}))
	b.eng = b.engine()
	var acked [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for j := range each {
				ms := b.clock - int64(i*each+j)
				// Every third message is of both users.
				n := 1 + (i+j)%3/2
				var events []store.LogEvent
				for k := range n {
					events = append(events, bought(users[(i+k)%2], ms))
				}
				if _, err := b.eng.Apply(ctx, b.app(), events); err != nil {
					t.Error(err)
					return
				}
				for k := range n {
					acked[(i+k)%2].Add(1)
				}
				least := acked[i%2].Load()
				r, err := b.eng.Read(ctx, b.app(), users[i%2], 0)
				if err != nil || red(r) < 30*float64(least) {
					t.Errorf("%v, %v; want at least %d acknowledged events", red(r), err, least)
				}
			}
		})
	}
	wg.Wait()
	for k, user := range users {
		if r := b.read(user); red(r) != 30*float64(acked[k].Load()) {
			t.Errorf("%s: %v, want %d events", user, red(r), acked[k].Load())
		}
	}
	if n := tickets.Load(); n > int64(senders*each) {
		t.Errorf("%d refreshes for %d messages", n, senders*each)
	}
	t.Logf("%d refreshes for %d messages", tickets.Load(), senders*each)
}

// When a refresh fails, none of its messages is acknowledged, and the next
// message is not blocked.
func TestFailedRefreshFailsAllItsMessages(t *testing.T) {
	var failing atomic.Bool
	b := newFixture(t, 90, plain)
	b.store = storetest.New(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if failing.Load() && method == "/google.bigtable.v2.Bigtable/ReadModifyWriteRow" {
			return status.Error(codes.PermissionDenied, "refused by the test")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}))
	b.eng = b.engine()
	failing.Store(true)
	app := b.app()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := b.eng.Apply(ctx, app, []store.LogEvent{bought("u", b.clock-int64(i))}); status.Code(errors.Unwrap(err)) != codes.PermissionDenied {
				t.Errorf("%v, want the refresh's own failure", err)
			}
		})
	}
	wg.Wait()
	failing.Store(false)
	b.apply(bought("u", b.clock))
	if r := b.read("u"); red(r) != 20*30 {
		t.Errorf("%v, want the twenty events in the log", red(r))
	}
}

// A message that is canceled while it leads the next flight does not fail the
// messages that share it.
func TestCancelledMessageStopsNoOther(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	e := s.neverFolding()
	m := s.startApply(e, s.at(1))
	s.stepTo(m, "ReadModifyWriteRow") // its refresh runs
	given, giveUp := context.WithCancel(context.WithValue(ctx, actorKey{}, nil))
	done := make(chan error, 2)
	apply := func(ctx context.Context, ev store.LogEvent) {
		_, err := e.Apply(ctx, s.app(), []store.LogEvent{ev})
		done <- err
	}
	go apply(given, s.at(2))
	e.AwaitWaiting(appID+",u", 1)
	go apply(ctx, s.at(3))
	e.AwaitWaiting(appID+",u", 2)
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the message that was given up to end at once", err)
	}
	s.finish(m)
	if err := <-done; err != nil {
		t.Errorf("the one that waited with it: %v", err)
	}
	s.expect(3)
}

// A refresh runs on without its request, and counts until it ends: the next message
// waits, and leaves no ticket if its request ends before its turn.
func TestRefreshesWithoutRequestsAreBounded(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	e := s.neverFolding()
	e.SetMaxRefreshed(1)
	m := s.startApply(e, s.at(1))
	s.stepTo(m, "ReadModifyWriteRow") // its refresh runs
	given, giveUp := context.WithCancel(context.WithValue(ctx, actorKey{}, nil))
	done := make(chan error)
	go func() {
		_, err := e.Apply(given, s.app(), []store.LogEvent{bought("v", s.clock)})
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a second refresh did not wait: %v", err)
	case <-time.After(20 * time.Millisecond): // it must not end: only a fault makes this test faster
	}
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled { // it may still write the log
		t.Errorf("%v, want the request to end", err)
	}
	if row, err := s.store.Users.ReadUser(ctx, appID, "v"); err != nil || row.Ticket != 0 {
		t.Errorf("ticket %d, %v; want none", row.Ticket, err)
	}
	s.finish(m)
	if _, err := e.Apply(ctx, s.app(), []store.LogEvent{bought("v", s.clock)}); err != nil {
		t.Errorf("after the refresh ended: %v", err)
	}
}
