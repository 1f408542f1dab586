package limit

import "time"

// Held is a Limiter whose exchanges, and those that it would begin by itself, wait
// until Flush runs them.
type Held struct {
	*Limiter
	later, exchanges []func()
}

// Hold returns a Limiter as a Held one.
func Hold(l *Limiter) *Held {
	h := &Held{Limiter: l}
	l.begin, l.after = func(exchange func()) { h.exchanges = append(h.exchanges, exchange) }, func(_ time.Duration, f func()) { h.later = append(h.later, f) }
	return h
}

// Flush runs the exchanges that are due.
func (h *Held) Flush() {
	later := h.later
	h.later = nil
	for _, f := range later {
		f()
	}
	for _, exchange := range h.exchanges {
		exchange()
	}
	h.exchanges = nil
}

// Share is the rate of share.
func Share(limit, mine float64, others []float64) float64 { return share(limit, mine, others).rate }
