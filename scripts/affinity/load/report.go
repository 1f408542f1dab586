package load

import (
	"fmt"
	"io"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// Report is the outcome of a run. --json prints it as it is.
type Report struct {
	Rate    float64 `json:"rate"` // events per second that were asked for
	Seconds float64 `json:"seconds"`
	Users   int     `json:"users"`
	Preload int     `json:"preload"` // events of each user before
	Batch   int     `json:"batch"`
	Events  Events  `json:"events"`
	Lag     Lag     `json:"lag"`    // of the users of the run
	LagNew  Lag     `json:"lagNew"` // of users without earlier events
	// LagLinked is that of events of anonymous tokens, until the profile of the person is as new.
	LagLinked  *Lag   `json:"lagLinked,omitempty"`
	Reads      Reads  `json:"reads"`
	Ranks      Reads  `json:"ranks"`
	Feeds      Feeds  `json:"feeds"`
	FirstError string `json:"firstError,omitempty"`
}

// Events counts the events of a run.
type Events struct {
	Accepted  int64   `json:"accepted"`
	PerSecond float64 `json:"perSecond"` // accepted
	Refused   int64   `json:"refused"`   // answered with an error
	Errors    int64   `json:"errors"`    // not answered
	NotSent   int64   `json:"notSent"`   // too many requests were in flight
}

// Lag is the time from when an event was due until the profile was as new as it.
type Lag struct {
	Samples   int64 `json:"samples"`
	NeverSeen int64 `json:"neverSeen"` // within sampleTimeout
	Percentiles
}

// Reads is how long reads of profiles took, or rank requests.
type Reads struct {
	Answered  int64   `json:"answered"`
	Unknown   int64   `json:"unknown,omitempty"` // of them, reads of users without events
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
	lag := func(s *samples) Lag {
		return Lag{Samples: s.took.TotalCount(), NeverSeen: s.unseen, Percentiles: percentilesOf(s.took)}
	}
	profiles := reads(l.reads)
	profiles.Unknown = l.unknown
	var linked *Lag
	if l.persons() > 0 {
		linked = new(lag(l.lagLinked))
	}
	return Report{
		LagLinked: linked,
		Rate:      l.o.Rate, Seconds: l.took.Seconds(), Users: l.o.Users, Preload: l.o.Preload, Batch: l.o.Batch,
		Events: Events{Accepted: l.accepted, PerSecond: rate(l.accepted), Refused: l.refused, Errors: l.failed,
			NotSent: l.unsent},
		Lag: lag(l.lag), LagNew: lag(l.lagNew), Reads: profiles, Ranks: reads(l.ranks),
		Feeds:      Feeds{reads(l.feeds), l.fallback},
		FirstError: l.firstError,
	}
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) {
	fmt.Fprintf(out, "load    %v events/s for %.1f s in batches of %d, %s of %s before\n", r.Rate, r.Seconds,
		r.Batch, cli.Count(r.Users, "user"),
		cli.Count(r.Preload, "event"))
	fmt.Fprintf(out, "events  %d accepted (%.1f/s)  %d refused  %s  %d not sent\n", r.Events.Accepted, r.Events.PerSecond,
		r.Events.Refused, cli.Count(r.Events.Errors, "error"), r.Events.NotSent)
	r.Lag.print(out, "lag", "these users")
	r.LagNew.print(out, "lag", "new users")
	if r.LagLinked != nil {
		r.LagLinked.print(out, "lag", "anonymous tokens of persons")
	}
	r.Reads.print(out, "reads")
	if r.Reads.Unknown > 0 {
		fmt.Fprintf(out, "        of users without events, which cost less: %s\n", cli.Count(r.Reads.Unknown, "read"))
	}
	r.Ranks.print(out, "ranks")
	r.Feeds.print(out, "feeds")
	if r.Feeds.Fallback > 0 {
		fmt.Fprintf(out, "        in the order of a user without events: %s\n", cli.Count(r.Feeds.Fallback, "page"))
	}
	if r.FirstError != "" {
		fmt.Fprintf(out, "first error: %s\n", r.FirstError)
	}
}

// print writes a line, if there was a sample.
func (l Lag) print(out io.Writer, name, whose string) {
	if l.Samples > 0 {
		fmt.Fprintf(out, "%-7s %s  (%s of %s)\n", name, l.Percentiles, cli.Count(l.Samples, "sample"), whose)
	}
	if l.NeverSeen > 0 {
		fmt.Fprintf(out, "        not in a profile after %s: %s of %s\n", sampleTimeout,
			cli.Count(l.NeverSeen, "sampled event"), whose)
	}
}

// print writes a line, if there was a request.
func (r Reads) print(out io.Writer, name string) {
	if r.Answered+r.Errors+r.NotSent > 0 {
		fmt.Fprintf(out, "%-7s %s  %d answered (%.1f/s)  %s  %d not sent\n", name, r.Percentiles, r.Answered,
			r.PerSecond, cli.Count(r.Errors, "error"), r.NotSent)
	}
}
