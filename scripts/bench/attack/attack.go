// Package attack measures what one tenant can do to another: it starts an engine in
// a process of its own, with little memory, attacks it with the keys of one app, and
// probes another app all the time.
//
// The attacks are those that once ended an engine: events that name objects with very
// many filters, bodies that unpack to a thousand times what is sent, bodies that never
// arrive, and a user with very many values. The engine is that of `affinity up`: all
// functions in one process.
package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options configure a campaign.
type Options struct {
	Memory int           // MiB that the engine may use
	Idle   time.Duration // how long the idle engine is probed
	For    time.Duration // how long an attack is repeated, at least
	Rate   float64       // probes a second
	// Progress receives a line before each step; nil discards it.
	Progress func(string)
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	switch {
	case o.Memory < 256:
		return errors.New("--memory must be at least 256 MiB")
	case o.Idle < time.Second:
		return errors.New("--idle must be at least 1s")
	case o.For < 0:
		return errors.New("--for must be at least 0s")
	case o.Rate <= 0 || o.Rate > 1000:
		return errors.New("--rate must be above 0 and at most 1000 probes a second")
	}
	return nil
}

func (o Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// The apps of the engine, each with its key.
const (
	goodApp, goodKey = "good", "good-key-of-the-probe"
	evilApp, evilKey = "evil", "evil-key-of-the-attacks"
)

// attack is one way to do harm.
type attack struct {
	name string
	// run attacks, and returns once the engine has done what it accepted. It adds the
	// answers by status; 0 counts connections that got none.
	run func(context.Context, *target, answers) error
}

var attacks = []attack{
	{"rich objects", richObjects},
	{"large bodies of events", largeEvents},
	{"large batches of objects", largeBatches},
	{"partial updates of large records", partialUpdates},
	{"bodies that do not arrive", slowBodies},
	{"a user of 160,000 values", manyValues},
}

// Run attacks an engine that start starts.
func Run(ctx context.Context, o Options, start Starter) (Report, error) {
	r := Report{MemoryMiB: o.Memory}
	engine, err := start(ctx, o.Memory)
	if err != nil {
		return r, err
	}
	r.Limit = engine.limit
	t := newTarget(engine.url)
	defer t.close()
	if err = t.prepare(ctx); err == nil {
		err = r.measure(ctx, o, t, engine)
	}
	closed := engine.close()
	if engine.died() {
		// Whatever failed, failed because of it.
		r.Restarts = 1
		o.progress("the engine ended: %v", errors.Join(engine.ended(), err))
		return r, nil
	}
	return r, errors.Join(err, closed)
}

// measure probes the idle engine, and then during each attack.
func (r *Report) measure(ctx context.Context, o Options, t *target, e *Engine) error {
	p := &prober{target: t, rate: o.Rate}
	o.progress("probing the idle engine for %v", o.Idle)
	idle, err := p.during(ctx, e, func(ctx context.Context) error { return pause(ctx, o.Idle) })
	r.Idle = idle
	if err != nil {
		return err
	}
	for _, a := range attacks {
		o.progress("%s", a.name)
		done := Attack{Name: a.name, Answers: answers{}}
		began := time.Now()
		done.Lag, err = p.during(ctx, e, func(ctx context.Context) error {
			for {
				done.Rounds++
				if err := a.run(ctx, t, done.Answers); err != nil || time.Since(began) >= o.For {
					return err
				}
			}
		})
		done.Seconds, done.PeakMiB = time.Since(began).Seconds(), e.peak()
		r.PeakMiB = done.PeakMiB
		if err != nil {
			done.Error = err.Error()
		}
		r.Attacks = append(r.Attacks, done)
		o.progress("  %d rounds in %.0f s, %v, p99 %.0f ms, at most %.0f ms", done.Rounds, done.Seconds, done.Answers,
			done.Lag.P99, done.Lag.Max)
		if e.died() || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Report is the outcome of a campaign.
type Report struct {
	MemoryMiB int      `json:"memoryMiB"`
	Limit     string   `json:"limit"` // what holds the engine to its memory
	Restarts  int      `json:"restarts"`
	PeakMiB   float64  `json:"peakMiB"` // resident memory
	Idle      Lag      `json:"idle"`
	Attacks   []Attack `json:"attacks"`
}

// Attack is the outcome of one attack.
type Attack struct {
	Name    string  `json:"name"`
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	Answers answers `json:"answers"` // by status
	Lag     Lag     `json:"lag"`     // of the other app
	PeakMiB float64 `json:"peakMiB"` // so far
	// Error says why the attack ended before the engine did what it had accepted.
	Error string `json:"error,omitempty"`
}

// Bar returns the highest p99 in ms that the other app may see: twice that of the idle
// engine, and 250 ms at least.
func (r Report) Bar() float64 { return max(250, 2*r.Idle.P99) }

// Failures says which bars the engine missed.
func (r Report) Failures() []string {
	var failures []string
	if r.Restarts > 0 {
		failures = append(failures, "the engine ended")
	}
	if r.PeakMiB > float64(r.MemoryMiB) {
		failures = append(failures, fmt.Sprintf("the engine took %.0f MiB", r.PeakMiB))
	}
	for _, a := range r.Attacks {
		if a.Lag.P99 > r.Bar() {
			failures = append(failures, fmt.Sprintf("%s: the other app's p99 is %.0f ms", a.Name, a.Lag.P99))
		}
		if a.Error != "" {
			failures = append(failures, a.Name+": "+a.Error)
		}
		if a.Lag.Lost > 0 {
			failures = append(failures, fmt.Sprintf("%s: %d events of the other app are not in profiles", a.Name, a.Lag.Lost))
		}
	}
	return failures
}

// Print writes a table.
func (r Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "engine in %d MiB (%s): %d restarts, peak %.0f MiB\n\n", r.MemoryMiB, r.Limit, r.Restarts, r.PeakMiB)
	fmt.Fprintf(w, "%-34s %7s %7s %9s %9s %9s %9s %8s  %s\n", "the other app, event to profile",
		"rounds", "probes", "p50 ms", "p99 ms", "max ms", "sent p99", "peak MiB", "answers")
	row := func(name string, rounds int, l Lag, peak float64, answers string) {
		fmt.Fprintf(w, "%-34s %7d %7d %9.1f %9.1f %9.1f %9.1f %8.0f  %s\n", name, rounds, l.Probes, l.P50, l.P99,
			l.Max, l.Sent, peak, answers)
	}
	row("idle", 0, r.Idle, 0, "")
	for _, a := range r.Attacks {
		row(a.Name, a.Rounds, a.Lag, a.PeakMiB, a.Answers.String())
	}
	_, err := fmt.Fprintf(w, "\nbar: p99 %.0f ms, no restart\n", r.Bar())
	for _, failure := range r.Failures() {
		_, err = fmt.Fprintf(w, "missed: %s\n", failure)
	}
	return err
}
