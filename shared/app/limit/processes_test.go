package limit_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// Five processes that share the table of rates let through at most 1.2 times the
// limit, from two seconds after their clients began, and not much less than the
// limit.
func TestFiveProcessesShareALimit(t *testing.T) {
	s := storetest.New(t)
	const most, step = 500, 5 * time.Millisecond
	for name, perSecond := range map[string][]float64{
		"all ask for too much":       {1000, 1000, 1000, 1000, 1000},
		"each asks for a third":      {170, 170, 170, 170, 170},
		"one asks for too much":      {2000, 20, 20, 20, 20},
		"only one is asked":          {2000, 0, 0, 0, 0},
		"together less than a limit": {200, 100, 50, 50, 50},
	} {
		t.Run(name, func(t *testing.T) {
			c, app := newClock(), name
			all, due := processes(5, c, s.Rates), make([]float64, 5)
			reads, events, asked, fast := 0, 0, 0.0, 0
			began := c.at
			for c.at.Sub(began) < 6*time.Second {
				counts := c.at.Sub(began) >= 2*time.Second
				for i, l := range all {
					for due[i] += perSecond[i] * step.Seconds(); due[i] >= 1; due[i]-- {
						_, err := l.Take(app, limit.Numbers{ReadsPerSecond: most}, limit.Reads)
						_, slow, eventsErr := l.Events(app, limit.Numbers{EventsPerSecond: most}, 2, c.at)
						if counts {
							asked++
							reads += one(err == nil)
							events += 2 * one(eventsErr == nil)
							fast += 2 * one(eventsErr == nil && !slow)
						}
					}
					l.Flush()
				}
				c.advance(step)
			}
			for what, got := range map[string]struct{ let, most, asked float64 }{
				"reads":                {float64(reads), most, asked},
				"events without delay": {float64(fast), most, 2 * asked},
				"events":               {float64(events), 2 * most, 2 * asked},
			} {
				if want := min(4*got.most, got.asked); got.let > 1.2*4*got.most || got.let < 0.9*want {
					t.Errorf("%s: %g in 4 s, want about %g", what, got.let, want)
				}
			}
		})
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
