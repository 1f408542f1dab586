package apply_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	bigtablepb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// process is an Applier as another process makes it.
func (h *harness) process(profiles apply.Profiles) *apply.Applier {
	return &apply.Applier{Config: h.Config, Catalog: h.Catalog, Bus: h.bus, Store: h.store, Profiles: profiles, Identities: h.Identities, Uptime: old}
}

// deadly is an engine that never returns, as if its process had been killed after
// it wrote the log.
type deadly struct {
	apply.Profiles
	began, test chan struct{}
}

func newDeadly(p apply.Profiles) *deadly {
	return &deadly{Profiles: p, began: make(chan struct{}), test: make(chan struct{})}
}

func (d *deadly) Apply(ctx context.Context, app config.App, rows []store.LogEvent) (profile.Outcome, error) {
	_, err := d.Profiles.Apply(ctx, app, rows)
	close(d.began)
	<-d.test
	return profile.Outcome{}, err
}

// kill delivers a message to a process that is killed while it applies it. What the
// process would have done next happens after the test.
func (h *harness) kill(p bus.Push) {
	h.t.Helper()
	d := newDeadly(h.profiles)
	ended := make(chan error)
	go func() {
		_, err := h.process(d).Deliver(context.Background(), p)
		ended <- err
	}()
	h.t.Cleanup(func() { close(d.test); <-ended })
	select {
	case <-d.began:
	case err := <-ended:
		h.t.Fatalf("attempt %d ended before it was killed: %v", p.DeliveryAttempt, err)
	}
}

// pushAs is push of a message with an id of its own.
func (h *harness) pushAs(id string, m bus.Message, attempt int) bus.Push {
	h.t.Helper()
	p := h.push(m, attempt)
	p.Message.MessageID = id
	return p
}

// wantOpen checks how many deliveries of the message 42 have no end.
func (h *harness) wantOpen(want int, when string) {
	h.t.Helper()
	if d, err := h.store.Users.Deliveries(h.t.Context(), "42"); err != nil || len(d.Open) != want {
		h.t.Errorf("%s: %d deliveries are open, %v; want %d", when, len(d.Open), err, want)
	}
}

// wantFate delivers a message to a process, and checks the outcome.
func (h *harness) wantFate(process *apply.Applier, p bus.Push, want apply.Fate) {
	h.t.Helper()
	got, err := process.Deliver(h.t.Context(), p)
	if got.Fate != want || (err != nil) != (want == apply.Retried) {
		h.t.Fatalf("attempt %d of %s: %+v, %v; want %s", p.DeliveryAttempt, p.Message.MessageID, got, err, want)
	}
}

// wait delivers a message that may have ended three processes, until it is to be buried.
// It returns the next attempt.
func (h *harness) wait(m bus.Message, attempt int) int {
	h.t.Helper()
	for range apply.MaxWaits {
		h.wantFate(h.process(h.profiles), h.push(m, attempt), apply.Retried)
		attempt++
	}
	return attempt
}

// returned is a message that has gone back as often as it may.
func (h *harness) returned(m bus.Message, attempt int) bus.Push {
	h.t.Helper()
	p := h.push(m, attempt)
	p.Message.Attributes[bus.AttrReturns] = fmt.Sprint(apply.MaxReturns)
	return p
}

// A message that may have ended three processes goes back before it is buried, and leaves no
// mark: its processes may have ended for another reason.
func TestMessageThatKillsGoesBackFirst(t *testing.T) {
	h := newHarness(t)
	attempt := 2
	for range apply.MaxUnanswered {
		h.kill(h.push(seen(both), attempt))
		attempt++
	}
	attempt = h.wait(seen(both), attempt)
	h.wantFate(h.process(h.profiles), h.push(seen(both), attempt), apply.Back)
	if len(h.bus.returned) != 1 || len(h.bus.reasons) > 0 {
		t.Errorf("returned %d messages, buried for %q", len(h.bus.returned), h.bus.reasons)
	}
	h.wantOpen(0, "returned")
}

// An app's dead letters are counted once each, until they have been applied.
func TestDeadLettersAreCounted(t *testing.T) {
	h := newHarness(t)
	want := func(want int, when string) {
		t.Helper()
		if n, err := h.store.Usage.DeadLetters(t.Context(), appID); n != want || err != nil {
			t.Errorf("%s: %d dead letters, %v; want %d", when, n, err, want)
		}
	}
	want(0, "at first")
	bad := seen(both)
	bad.Body = []byte("{")
	h.wantFate(h.Applier, h.push(bad, 1), apply.Dead)
	want(1, "buried")
	replay := h.push(bad, 1)
	replay.Message.MessageID, replay.Message.Attributes[bus.AttrBuried] = "43", "42"
	h.wantFate(h.Applier, replay, apply.Dead)
	want(1, "buried once more")
	good := h.pushAs("44", seen(both), 1)
	h.wantFate(h.Applier, good, apply.Applied)
	want(1, "another is applied")
	good.Message.Attributes[bus.AttrBuried] = "42"
	h.wantFate(h.Applier, good, apply.Applied)
	want(0, "applied")
}

// A message that ends its process is buried once three marked deliveries left no answer,
// and their processes had time to end them. The first delivery of a small message has no
// mark, because it must cost a healthy message nothing.
func TestMessageThatKillsIsBuried(t *testing.T) {
	large := seen(both)
	large.Body = append([]byte(`{"x":"`+strings.Repeat("x", 256<<10)+`",`), large.Body[1:]...)
	for name, test := range map[string]struct {
		message  bus.Message
		unmarked int
	}{"small": {seen(both), 1}, "large": {large, 0}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			attempt := 1
			for ; attempt <= apply.MaxUnanswered+test.unmarked; attempt++ {
				h.wantOpen(max(0, attempt-1-test.unmarked), "before a delivery")
				h.kill(h.push(test.message, attempt))
			}
			attempt = h.wait(test.message, attempt)
			engine := &away{Profiles: h.profiles}
			h.wantFate(h.process(engine), h.returned(test.message, attempt), apply.Dead)
			if len(h.bus.reasons) != 1 || !strings.HasPrefix(h.bus.reasons[0], "3 deliveries left no answer") {
				t.Errorf("buried for %q", h.bus.reasons)
			}
			if len(engine.abandoned) != 1 || engine.abandoned[0].User != user {
				t.Errorf("abandoned %+v, want the event that is in the log", engine.abandoned)
			}
			h.wantOpen(0, "buried")
		})
	}
}

// If even the attempt to find a message's events ends the process, the next delivery
// buries it as it is.
func TestMessageThatKillsTheBurialIsBuried(t *testing.T) {
	h := newHarness(t)
	for i := range apply.MaxUnanswered + 1 {
		h.check(h.store.Users.BeginDelivery(t.Context(), "42", fmt.Sprint(i)))
	}
	attempt := h.wait(seen(both), 6)
	h.Config = &away{} // places would fail
	h.wantFate(h.Applier, h.returned(seen(both), attempt), apply.Dead)
	if len(h.bus.reasons) != 1 {
		t.Errorf("buried for %q", h.bus.reasons)
	}
}

// stalled is a store to which no end of a delivery can be written while it is set.
type stalled struct{ atomic.Bool }

func (s *stalled) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if m, ok := req.(*bigtablepb.MutateRowRequest); ok && s.Load() && strings.HasPrefix(string(m.RowKey), ",message,") {
			if set := m.Mutations[0].GetSetCell(); set == nil || set.TimestampMicros > 0 {
				return status.Error(codes.PermissionDenied, "stalled by the test") // not retried
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}

// A process that was stopped, or whose store is slow, begins deliveries and cannot end
// them. It lives, so they count for nothing but the 20 that may fail.
func TestSlowProcessIsNotADeath(t *testing.T) {
	var stall stalled
	h := newHarness(t, stall.option())
	stall.Store(true)
	for attempt := 1; attempt <= 2*apply.MaxUnanswered; attempt++ {
		ctx, over := deadline.Begin(t.Context(), 20*time.Millisecond)
		h.Profiles = hangs{h.profiles}
		if got, err := h.Deliver(ctx, h.push(seen(both), attempt)); got.Fate != apply.Retried || err == nil {
			t.Fatalf("attempt %d: result %+v, %v", attempt, got, err)
		}
		over()
	}
	h.Profiles = h.profiles
	h.wantFate(h.Applier, h.push(seen(both), 10), apply.Applied)
	stall.Store(false)
	other := h.pushAs("43", green, 2)
	h.wantFate(h.Applier, other, apply.Applied)
	h.wantOpen(0, "the store answers")
}

// Other processes give one that lives time to end its deliveries.
func TestLateEndIsNotADeath(t *testing.T) {
	var stall stalled
	h := newHarness(t, stall.option())
	stall.Store(true)
	slow := h.process(&away{Profiles: h.profiles})
	for attempt := 2; attempt < 2+apply.MaxUnanswered; attempt++ {
		h.wantFate(slow, h.push(seen(both), attempt), apply.Retried)
	}
	h.wantOpen(apply.MaxUnanswered, "the store is slow")
	stall.Store(false)
	h.wait(seen(both), 6)
	other := h.pushAs("43", green, 2)
	h.wantFate(slow, other, apply.Retried)
	h.wantOpen(0, "the slow process has reached the store")
	h.wantFate(h.process(h.profiles), h.push(seen(both), 20), apply.Applied)
}

// A process that exits ends the deliveries that run.
func TestExitIsNotADeath(t *testing.T) {
	h := newHarness(t)
	for attempt := 2; attempt < 2+2*apply.MaxUnanswered; attempt++ {
		p := h.process(h.profiles)
		ended := h.stop(p, h.push(seen(both), attempt))
		h.wantOpen(1, "it runs")
		h.check(p.Flush(t.Context()))
		h.wantOpen(0, "the process has exited")
		t.Cleanup(ended)
	}
	h.wantFate(h.process(h.profiles), h.push(seen(both), 20), apply.Applied)
}

// Processes that end for another reason soon after their start, with many messages under
// way, bury none: each end hits another message that is alone.
func TestHealthyBacklogOutlivesKills(t *testing.T) {
	h := newHarness(t)
	backlog := make([]bus.Push, 40)
	for i := range backlog {
		backlog[i] = h.push(seen(both), 2)
		backlog[i].Message.MessageID = fmt.Sprint("m", i)
		h.kill(backlog[i]) // the first kill: all are under way
	}
	for range 5 {
		p := h.process(h.profiles)
		p.Uptime = func() time.Duration { return time.Second }
		alone := false
		for _, message := range backlog {
			if !alone {
				d := newDeadly(h.profiles)
				p.Profiles = d
				ended := make(chan error, 1)
				go func() {
					_, err := p.Deliver(context.Background(), message)
					ended <- err
				}()
				t.Cleanup(func() { close(d.test) })
				select {
				case <-d.began:
					alone = true // the kill hits it
				case <-ended: // it comes too early
				}
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if got, _ := p.Deliver(ctx, message); got.Fate != apply.Retried {
				t.Fatalf("message %s beside one that is alone: %+v", message.Message.MessageID, got)
			}
			cancel()
		}
	}
	last := h.process(h.profiles)
	for _, message := range backlog {
		h.wantFate(last, message, apply.Applied)
	}
	if len(h.bus.reasons) > 0 {
		t.Errorf("buried for %q", h.bus.reasons)
	}
}

// In an outage no delivery can be marked, or none reaches a process. Afterwards the
// message is applied beside others.
func TestOutageBuriesNothing(t *testing.T) {
	h := newHarness(t)
	p := h.process(h.profiles)
	other := h.pushAs("43", seen(both), 1)
	ended := h.stop(p, other)
	h.wantFate(p, h.push(seen(both), apply.MaxAttempts), apply.Applied)
	ended()
}

// A message that died with another is applied, and forgotten.
func TestMessageThatDiedWithAnotherIsApplied(t *testing.T) {
	h := newHarness(t)
	h.kill(h.push(seen(both), 2))
	h.wantOpen(1, "killed")
	h.wantFate(h.Applier, h.push(seen(both), 3), apply.Applied)
	h.wantOpen(0, "applied")
	h.wantColors("Blue", "Red")
}
