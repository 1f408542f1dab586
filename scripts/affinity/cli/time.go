package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/googleapis/gax-go/v2"
)

// PlainEvery is how often progress is printed if no bar can be drawn.
const PlainEvery = 3 * time.Second

// Polls start fast, to measure milliseconds, and slow down to spare the engine.
const (
	firstPoll = 10 * time.Millisecond
	maxPoll   = 200 * time.Millisecond
)

// Poll calls ask until it returns true or an error, for within at most.
func Poll(ctx context.Context, within time.Duration, ask func() (bool, error)) error {
	begun := time.Now()
	for wait := firstPoll; ; wait = min(wait*5/4, maxPoll) {
		done, err := ask()
		if done || err != nil {
			return err
		}
		if time.Since(begun) > within {
			return fmt.Errorf("not there after %s", within)
		}
		if err := gax.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// PerSecond is the rate of n in d, 0 if d is too short to say.
func PerSecond[N int | int64](n N, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
