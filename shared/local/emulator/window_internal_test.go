package emulator

import (
	"context"
	"testing"
)

// The window halves once for the failures of pushes that began together, and grows by one
// with each success.
func TestPushWindowFollowsTheEndpoint(t *testing.T) {
	w := newPushWindow(8)
	fill := func() (rounds []int) {
		t.Helper()
		for len(w.slots) < cap(w.slots) {
			round, err := w.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rounds = append(rounds, round)
		}
		return rounds
	}
	for _, want := range []int{8, 4, 2, 1, 1} {
		rounds := fill()
		if len(rounds) != want {
			t.Fatalf("%d pushes are under way, want %d", len(rounds), want)
		}
		for _, round := range rounds {
			w.leave(round, false)
		}
	}
	for want := 1; want <= 8; want++ {
		rounds := fill()
		if len(rounds) != want {
			t.Fatalf("%d pushes are under way, want %d", len(rounds), want)
		}
		w.leave(rounds[0], true)
		for _, round := range rounds[1:] { // they began before; one success is enough
			w.leave(round-1, false)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.enter(ctx); err == nil {
		t.Error("a push entered after the end")
	}
	if rounds := fill(); len(rounds) != 8 {
		t.Errorf("%d pushes are under way, want 8", len(rounds))
	}
}
