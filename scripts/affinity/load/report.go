package load

import (
	"fmt"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// Report is the outcome of a run. --json prints it as it is.
type Report struct {
	Rate       float64 `json:"rate"` // events per second that were asked for
	Seconds    float64 `json:"seconds"`
	Users      int     `json:"users"`
	Batch      int     `json:"batch"`
	Events     Events  `json:"events"`
	Lag        Lag     `json:"lag"`
	Reads      Reads   `json:"reads"`
	Ranks      Reads   `json:"ranks"`
	Feeds      Feeds   `json:"feeds"`
	FirstError string  `json:"firstError,omitempty"`
}

// Events counts the events of a run.
type Events struct {
	Accepted  int64   `json:"accepted"`
	PerSecond float64 `json:"perSecond"` // accepted
	Refused   int64   `json:"refused"`   // answered with an error
	Errors    int64   `json:"errors"`    // not answered
	NotSent   int64   `json:"notSent"`   // too many requests were in flight
}

// Lag is the time from when an event was due until a profile showed it.
type Lag struct {
	Samples   int64 `json:"samples"`
	NeverSeen int64 `json:"neverSeen"` // within sampleTimeout
	Percentiles
}

// Reads is how long reads of profiles took, or rank requests.
type Reads struct {
	Answered  int64   `json:"answered"`
	PerSecond float64 `json:"perSecond"`
	Errors    int64   `json:"errors"`
	NotSent   int64   `json:"notSent"`
	Percentiles
}

// Feeds is how long pages of the feed took.
type Feeds struct {
	Reads
	Fallback int64 `json:"fallback"` // pages in the order of a user without events
}

// Percentiles of a time, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50Ms"`
	P95 float64 `json:"p95Ms"`
	P99 float64 `json:"p99Ms"`
	Max float64 `json:"maxMs"`
}

func percentilesOf(h *hdrhistogram.Histogram) Percentiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return Percentiles{at(50), at(95), at(99), at(100)}
}

// String formats the percentiles in milliseconds, on one line.
func (p Percentiles) String() string {
	return fmt.Sprintf("p50 %.1f ms  p95 %.1f ms  p99 %.1f ms  max %.1f ms", p.P50, p.P95, p.P99, p.Max)
}

// report sums up the run.
func (l *loader) report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := func(n int64) float64 { return cli.PerSecond(n, l.took) }
	reads := func(s *stream) Reads {
		n := s.took.TotalCount()
		return Reads{Answered: n, PerSecond: rate(n), Errors: s.errors, NotSent: s.unsent, Percentiles: percentilesOf(s.took)}
	}
	return Report{
		Rate: l.o.Rate, Seconds: l.took.Seconds(), Users: l.o.Users, Batch: l.o.Batch,
		Events: Events{Accepted: l.accepted, PerSecond: rate(l.accepted), Refused: l.refused, Errors: l.failed, NotSent: l.unsent},
		Lag:    Lag{Samples: l.lag.TotalCount(), NeverSeen: l.unseen, Percentiles: percentilesOf(l.lag)},
		Reads:  reads(l.reads), Ranks: reads(l.ranks), Feeds: Feeds{reads(l.feeds), l.fallback},
		FirstError: l.firstError,
	}
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) {
	fmt.Fprintf(out, "load    %v events/s for %.1f s in batches of %d, %s\n", r.Rate, r.Seconds, r.Batch, cli.Count(r.Users, "user"))
	fmt.Fprintf(out, "events  %d accepted (%.1f/s)  %d refused  %s  %d not sent\n", r.Events.Accepted, r.Events.PerSecond,
		r.Events.Refused, cli.Count(r.Events.Errors, "error"), r.Events.NotSent)
	if r.Lag.Samples > 0 {
		fmt.Fprintf(out, "lag     %s  (%s)\n", r.Lag.Percentiles, cli.Count(r.Lag.Samples, "sample"))
	}
	if r.Lag.NeverSeen > 0 {
		fmt.Fprintf(out, "        not in a profile after %[2]s: %[1]s\n", cli.Count(r.Lag.NeverSeen, "sampled event"), sampleTimeout)
	}
	r.Reads.print(out, "reads")
	r.Ranks.print(out, "ranks")
	r.Feeds.print(out, "feeds")
	if r.Feeds.Fallback > 0 {
		fmt.Fprintf(out, "        by popularity, as of a user without events: %s\n", cli.Count(r.Feeds.Fallback, "page"))
	}
	if r.FirstError != "" {
		fmt.Fprintf(out, "first error: %s\n", r.FirstError)
	}
}

// print writes a line, if there was a request.
func (r Reads) print(out io.Writer, name string) {
	if r.Answered+r.Errors+r.NotSent > 0 {
		fmt.Fprintf(out, "%-7s %s  %d answered (%.1f/s)  %s  %d not sent\n", name, r.Percentiles, r.Answered, r.PerSecond, cli.Count(r.Errors, "error"), r.NotSent)
	}
}
