package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// As many heavy requests compute at a time as there are turns, and the others wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(turns, 2)
		var running, most, refused atomic.Int64
		var requests sync.WaitGroup
		for range 7 {
			requests.Go(func() {
				err := all.take(t.Context(), 3*time.Second)
				if errors.Is(err, ErrFull) {
					refused.Add(1)
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				defer func() { <-all }()
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(2 * time.Second)
				running.Add(-1)
			})
		}
		requests.Wait()
		if most.Load() != 2 || refused.Load() != 3 {
			t.Errorf("%d at a time and %d refused, want 2 and 3", most.Load(), refused.Load())
		}
		for range 2 {
			if err := all.take(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := all.take(gone, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that is gone waits for a turn: %v", err)
		}
	})
}

// A request has one turn at most, until the part that took it ends or it leaves.
func TestTurnOfARequest(t *testing.T) {
	others := cap(process) - 1
	for range others {
		process <- struct{}{}
	}
	g := NewGate(100)
	ctx, leave := g.Enter(t.Context())
	in, end := Part(ctx)
	await := func(what string, ctx context.Context, want error) {
		t.Helper()
		if err := AwaitTurn(ctx, 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	await("part", in, nil)
	await("part, again", in, nil)
	await("request of the part", ctx, nil)
	second, leaveSecond := g.Enter(t.Context())
	await("another request", second, ErrFull)
	end()
	await("another request, after the part", second, nil)
	await("request whose part has ended", ctx, ErrFull)
	leaveSecond()
	await("request", ctx, nil)
	leave()
	await("request that has left", ctx, nil)
	await("no request", t.Context(), nil)
	if len(process) != others {
		t.Errorf("%d turns are taken at the end, want %d", len(process), others)
	}
	for range others {
		<-process
	}
}
