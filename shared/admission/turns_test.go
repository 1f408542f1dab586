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
				end, err := all.take(t.Context(), 3*time.Second)
				if errors.Is(err, ErrFull) {
					refused.Add(1)
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				defer end()
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
			if _, err := all.take(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := all.take(gone, time.Second); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that is gone waits for a turn: %v", err)
		}
	})
}
