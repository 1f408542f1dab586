package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	bigtablepb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Deliveries that end in an error leave no mark, however many there are, and the
// twentieth buries the message.
func TestAnsweredErrorsAreNotDeaths(t *testing.T) {
	h := newHarness(t)
	h.Profiles = &away{Profiles: h.profiles}
	for attempt := 1; attempt < apply.MaxAttempts; attempt++ {
		if got, err := h.Deliver(t.Context(), h.push(seen(both), attempt)); got.Fate != apply.Retried || !errors.Is(err, errAway) {
			t.Fatalf("attempt %d: result %+v, %v", attempt, got, err)
		}
	}
	h.wantOpen(0, "19 errors")
	got, err := h.Deliver(t.Context(), h.push(seen(both), apply.MaxAttempts))
	if got.Fate != apply.Dead || err != nil || len(h.bus.reasons) != 1 {
		t.Errorf("result %+v, %v, buried for %q", got, err, h.bus.reasons)
	}
}

// hangs is an engine that waits for its backend until its time is over.
type hangs struct{ apply.Profiles }

func (hangs) Apply(ctx context.Context, _ config.App, _ []store.LogEvent) (profile.Outcome, error) {
	<-ctx.Done()
	return profile.Outcome{}, ctx.Err()
}

// Deliveries that wait for a slow backend until their requests end leave no mark, so that
// the message is applied once the backend answers.
func TestSlowBackendIsNotADeath(t *testing.T) {
	h := newHarness(t)
	h.Profiles = hangs{h.profiles}
	for attempt := 1; attempt <= apply.MaxUnanswered+1; attempt++ {
		ctx, over := deadline.Begin(t.Context(), 200*time.Millisecond)
		if got, err := h.Deliver(ctx, h.push(seen(both), attempt)); got.Fate != apply.Retried || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("attempt %d: result %+v, %v", attempt, got, err)
		}
		over()
		h.wantOpen(0, "after a slow delivery")
	}
	h.Profiles = h.profiles
	h.wantFate(h.Applier, h.push(seen(both), apply.MaxUnanswered+2), apply.Applied)
}

// A delivery whose mark was written and whose answer was lost is answered, so it
// leaves no mark, even if its request has ended.
func TestLostMarkIsNotADeath(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lose := true
	h := newHarness(t, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if m, ok := req.(*bigtablepb.MutateRowRequest); ok && lose && strings.HasPrefix(string(m.RowKey), ",message,") {
			lose = false
			cancel()
			return status.Error(codes.DeadlineExceeded, "answer lost by the test")
		}
		return err
	}))
	got, err := h.Deliver(ctx, h.push(seen(both), 2))
	if got.Fate != apply.Retried || err == nil || lose {
		t.Errorf("result %+v, %v; want an error: the mark's answer was lost", got, err)
	}
	h.wantOpen(0, "after a lost answer")
}

// Deliveries that found the process full use up no attempt. Before Pub/Sub would give
// the message up without a reason, it is buried.
func TestFullProcessUsesUpNoAttempt(t *testing.T) {
	h := newHarness(t)
	h.Profiles = &away{Profiles: h.profiles, full: true}
	deliver := func(attempt int, want apply.Fate, cause error) {
		t.Helper()
		got, err := h.Deliver(t.Context(), h.push(seen(both), attempt))
		if got.Fate != want || !errors.Is(errors.Join(err, got.Reason), cause) {
			t.Fatalf("attempt %d: result %+v, %v; want %s because of %v", attempt, got, err, want, cause)
		}
	}
	for attempt := 1; attempt <= apply.MaxAttempts+5; attempt++ {
		deliver(attempt, apply.Retried, admission.ErrFull)
	}
	h.Profiles = &away{Profiles: h.profiles}
	deliver(apply.MaxAttempts+6, apply.Retried, errAway)
	h.Profiles = &away{Profiles: h.profiles, full: true}
	deliver(95, apply.Dead, admission.ErrFull)
}

// A message that may have ended a process runs alone: until it has ended, no other
// begins, so none has a mark if the process ends. It waits until the others have
// ended, or its request has.
func TestSuspectRunsAlone(t *testing.T) {
	h := newHarness(t)
	other := func(attempt int) bus.Push { return h.pushAs("43", seen(both), attempt) }
	short := func(p bus.Push, process *apply.Applier, when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if got, err := process.Deliver(ctx, p); got.Fate != apply.Retried || !store.TimedOut(err) {
			t.Errorf("%s, message %s: result %+v, %v; want it to wait", when, p.Message.MessageID, got, err)
		}
	}
	h.kill(h.push(seen(both), 2))
	process := h.process(h.profiles)
	h.Applier = process
	ended := h.stop(process, other(1))
	short(h.push(seen(both), 3), process, "beside one that runs")
	h.wantOpen(1, "it had no turn")
	ended()
	ended = h.stop(process, h.push(seen(both), 3))
	h.wantOpen(2, "it runs alone")
	short(other(1), process, "beside a suspect")
	short(other(2), process, "beside a suspect")
	if d, err := h.store.Users.Deliveries(t.Context(), "43"); len(d.Open) != 0 || err != nil {
		t.Errorf("a message that waits has %d marks, %v", len(d.Open), err)
	}
	ended()
	h.wantFate(h.Applier, other(3), apply.Applied)
}

// stop delivers a message to a process that stops while it applies it, until the
// returned function is called.
func (h *harness) stop(process *apply.Applier, p bus.Push) (proceed func()) {
	h.t.Helper()
	engine := process.Profiles
	d := newDeadly(engine)
	process.Profiles = d
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = process.Deliver(context.Background(), p)
	}()
	<-d.began
	process.Profiles = engine
	return func() { close(d.test); <-ended }
}

// What a small, ordinary message costs with and without marks of its first delivery.
func BenchmarkDeliver(b *testing.B) {
	for name, attempt := range map[string]int{"unmarked": 1, "marked": 2} {
		b.Run(name, func(b *testing.B) {
			h := newHarness(b)
			p := h.push(seen(both), attempt)
			for b.Loop() {
				if _, err := h.Deliver(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A panic is answered.
func TestPanicIsNotADeath(t *testing.T) {
	h := newHarness(t)
	h.Profiles = nil
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = h.Deliver(t.Context(), h.push(seen(both), 2))
	}()
	h.wantOpen(0, "panicked")
}

// A message of a deleted app is acknowledged, whatever its deliveries found, and
// nothing is written or buried.
func TestMessagesOfADeletedAppAreDropped(t *testing.T) {
	h := newHarness(t)
	if _, err := h.apps.DeleteApp(t.Context(), appID); err != nil {
		t.Fatal(err)
	}
	unreadable := green
	unreadable.Body = []byte("{")
	for name, push := range map[string]bus.Push{
		"accepted": h.push(seen(one), 1), "unresolved": h.push(bus.Message{App: appID, ReceivedAt: 1, Body: green.Body}, 2),
		"reenriched": h.push(h.again(both), 1), "last attempt": h.last(green), "unreadable events": h.push(unreadable, 1),
	} {
		got, err := h.Deliver(t.Context(), push)
		if err != nil || got != (apply.Result{Fate: apply.Dropped, App: appID}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	rows, err := h.store.Rows.FindRows(t.Context(), store.AppRows{App: appID, Table: store.TableUsers}, 1)
	if err != nil || len(rows) != 0 || len(h.bus.reasons) != 0 {
		t.Errorf("rows %q (%v), buried for %q", rows, err, h.bus.reasons)
	}
}
