package main

import (
	"fmt"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// loadReport is what came of a load; its JSON form is what --json prints.
type loadReport struct {
	Rate       float64    `json:"rate"` // events/s asked for
	Seconds    float64    `json:"seconds"`
	Users      int        `json:"users"`
	Batch      int        `json:"batch"`
	Events     loadEvents `json:"events"`
	Lag        loadLag    `json:"lag"`
	Reads      loadReads  `json:"reads"`
	FirstError string     `json:"firstError,omitempty"`
}

type loadEvents struct {
	Accepted  int64   `json:"accepted"`
	PerSecond float64 `json:"perSecond"` // accepted
	Refused   int64   `json:"refused"`   // the engine said no, or that it could not
	Errors    int64   `json:"errors"`    // the engine said nothing
	NotSent   int64   `json:"notSent"`   // too much was under way
}

type loadLag struct {
	Samples   int64 `json:"samples"`
	NeverSeen int64 `json:"neverSeen"` // within sampleWithin
	percentiles
}

type loadReads struct {
	Answered  int64   `json:"answered"`
	PerSecond float64 `json:"perSecond"`
	Errors    int64   `json:"errors"`
	NotSent   int64   `json:"notSent"`
	percentiles
}

// percentiles are in milliseconds.
type percentiles struct {
	P50 float64 `json:"p50Ms"`
	P95 float64 `json:"p95Ms"`
	P99 float64 `json:"p99Ms"`
	Max float64 `json:"maxMs"`
}

func percentilesOf(h *hdrhistogram.Histogram) percentiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return percentiles{at(50), at(95), at(99), at(100)}
}

func (p percentiles) String() string {
	return fmt.Sprintf("p50 %.1f ms  p95 %.1f ms  p99 %.1f ms  max %.1f ms", p.P50, p.P95, p.P99, p.Max)
}

// report sums the run up.
func (l *loader) report() loadReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := func(n int64) float64 { return perSecond(int(n), l.took) }
	return loadReport{
		Rate: l.o.rate, Seconds: l.took.Seconds(), Users: l.o.users, Batch: l.o.batch,
		Events: loadEvents{Accepted: l.accepted, PerSecond: rate(l.accepted), Refused: l.refused, Errors: l.failed, NotSent: l.unsent},
		Lag:    loadLag{Samples: l.lag.TotalCount(), NeverSeen: l.unseen, percentiles: percentilesOf(l.lag)},
		Reads: loadReads{Answered: l.reads.TotalCount(), PerSecond: rate(l.reads.TotalCount()), Errors: l.readErrors,
			NotSent: l.readsUnsent, percentiles: percentilesOf(l.reads)},
		FirstError: l.firstError,
	}
}

func (r loadReport) print(out io.Writer) {
	fmt.Fprintf(out, "load    %v events/s for %.1f s in batches of %d, %d users\n", r.Rate, r.Seconds, r.Batch, r.Users)
	fmt.Fprintf(out, "events  %d accepted (%.1f/s)  %d refused  %d errors  %d not sent\n", r.Events.Accepted, r.Events.PerSecond,
		r.Events.Refused, r.Events.Errors, r.Events.NotSent)
	if r.Lag.Samples > 0 {
		fmt.Fprintf(out, "lag     %s  (%d samples)\n", r.Lag.percentiles, r.Lag.Samples)
	}
	if r.Lag.NeverSeen > 0 {
		fmt.Fprintf(out, "        %d sampled events were not in a profile after %s\n", r.Lag.NeverSeen, sampleWithin)
	}
	if r.Reads.Answered+r.Reads.Errors+r.Reads.NotSent > 0 {
		fmt.Fprintf(out, "reads   %s  %d answered (%.1f/s)  %d errors  %d not sent\n", r.Reads.percentiles, r.Reads.Answered, r.Reads.PerSecond,
			r.Reads.Errors, r.Reads.NotSent)
	}
	if r.FirstError != "" {
		fmt.Fprintf(out, "first error: %s\n", r.FirstError)
	}
}
