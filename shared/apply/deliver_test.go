package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/apply"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// process is an Applier as another process makes it.
func (h *harness) process(profiles apply.Profiles) *apply.Applier {
	return &apply.Applier{Config: h.Config, Catalog: h.Catalog, Bus: h.bus, Store: h.store, Profiles: profiles}
}

// deadly is an engine that never returns, as if its process had been killed after
// it wrote the log.
type deadly struct {
	apply.Profiles
	began, test chan struct{}
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
	d := &deadly{Profiles: h.profiles, began: make(chan struct{}), test: make(chan struct{})}
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

// wantOpen checks how many deliveries of the message 42 have no end.
func (h *harness) wantOpen(want int64, when string) {
	h.t.Helper()
	if open, err := h.store.OpenDeliveries(h.t.Context(), "42"); err != nil || open != want {
		h.t.Errorf("%s: %d deliveries are open, %v; want %d", when, open, err, want)
	}
}

// A message that ends its process is buried once three marked deliveries left no
// answer. The first delivery of a small message has no mark, because it must cost a
// healthy message nothing.
func TestMessageThatKillsIsBuried(t *testing.T) {
	large := seen(both)
	large.Body = append([]byte(`{"x":"`+strings.Repeat("x", 256<<10)+`",`), large.Body[1:]...)
	for name, test := range map[string]struct {
		message  bus.Message
		unmarked int
	}{"small": {seen(both), 1}, "large": {large, 0}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			attempt := 0
			for ; attempt < test.unmarked+apply.MaxUnanswered; attempt++ {
				h.wantOpen(int64(max(0, attempt-test.unmarked)), "before a delivery")
				h.kill(h.push(test.message, attempt+1))
			}
			engine := &away{Profiles: h.profiles}
			got, err := h.process(engine).Deliver(t.Context(), h.push(test.message, attempt+1))
			h.check(err)
			if got.Fate != apply.Dead || len(h.bus.reasons) != 1 || !strings.HasPrefix(h.bus.reasons[0], "3 deliveries left no answer") {
				t.Errorf("result %+v, buried for %q", got, h.bus.reasons)
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
	for range apply.MaxUnanswered + 1 {
		h.check(h.store.BeginDelivery(t.Context(), "42"))
	}
	h.Config = &away{} // places would fail
	got, err := h.Deliver(t.Context(), h.push(seen(both), 6))
	h.check(err)
	if got.Fate != apply.Dead || len(h.bus.reasons) != 1 {
		t.Errorf("result %+v, buried for %q", got, h.bus.reasons)
	}
}

// A message that died with another is applied, and forgotten.
func TestMessageThatDiedWithAnotherIsApplied(t *testing.T) {
	h := newHarness(t)
	h.kill(h.push(seen(both), 2))
	h.wantOpen(1, "killed")
	if got, err := h.Deliver(t.Context(), h.push(seen(both), 3)); got.Fate != apply.Applied || err != nil {
		t.Errorf("result %+v, %v", got, err)
	}
	h.wantOpen(0, "applied")
	h.wantColors("Blue", "Red")
}

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
