package limit

import "time"

// flow is what a bucket gets per second, and holds at most.
type flow struct{ rate, burst float64 }

// bucket is a token bucket. A request passes while it is not empty, and may take
// more than it holds: then the next ones wait until the debt is paid. So large
// requests pass at the same rate as small ones.
type bucket struct {
	tokens float64
	at     time.Time // of tokens; zero for a bucket that is full
}

// fill adds the tokens of the time since the last call.
func (b *bucket) fill(now time.Time, f flow) {
	switch passed := now.Sub(b.at); {
	case b.at.IsZero():
		b.tokens, b.at = f.burst, now
	case passed > 0: // else the clock stands still, or went back
		b.tokens, b.at = min(b.tokens+f.rate*passed.Seconds(), f.burst), now
	}
}

// until returns how long it takes until the bucket holds that many tokens.
func (b *bucket) until(tokens float64, f flow) time.Duration {
	seconds := (tokens - b.tokens) / max(f.rate, 1e-6)
	return time.Duration(min(max(seconds, 0), 3600) * float64(time.Second))
}

func (b *bucket) state(now time.Time, limit int, f flow) State {
	return State{Limit: limit, Remaining: max(0, int(b.tokens)), Reset: now.Add(b.until(f.burst, f))}
}

// sharedBurst is the part of a second for which a bucket holds tokens while clients
// ask all processes for more than the limit. When they begin to, all buckets may
// be full.
const sharedBurst = 0.25

// share returns how much of a limit one process may use. others are what clients
// asked of the other processes, per second and in ascending order, mine is what
// they asked of this one. If all ask for less than the limit, what is left is
// divided evenly. If they ask for more, all get the same, but none more than it
// is asked for. An even part is always permitted, so that a process whose clients
// begin to ask need not wait for the next exchange.
func share(limit, mine float64, others []float64) flow {
	n := float64(len(others) + 1)
	total := mine
	for _, other := range others {
		total += other
	}
	even := limit / n
	if total <= limit {
		rate := max(even, mine+(limit-total)/n)
		return flow{rate, rate}
	}
	// A process that is asked for less than an even part of what is left leaves the
	// rest to those that are asked for more.
	left, asking := limit, n
	for _, other := range others {
		if other > left/asking {
			break
		}
		if asking > 1 {
			left, asking = left-other, asking-1
		}
	}
	rate := max(even, min(mine, left/asking))
	return flow{rate, rate * sharedBurst}
}
