package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// plainEvery is how often progress is told where no bar can be drawn.
const plainEvery = 3 * time.Second

// meter tells a person how far an import is: a bar on a terminal, a line now and then elsewhere. It is safe for concurrent use.
type meter struct {
	mu          sync.Mutex
	out         io.Writer
	bar         *progressbar.ProgressBar // nil: plain lines
	what        string                   // what is counted, in the plural
	src         *source
	count       int
	begun, told time.Time
	waited      time.Time // when it last told that a request is tried again
}

// newMeter begins to count what comes out of src.
func newMeter(out io.Writer, what string, src *source) *meter {
	now := time.Now()
	m := &meter{out: out, what: what, src: src, begun: now, told: now}
	if cli.IsTerminal(out) {
		m.bar = progressbar.NewOptions64(src.size, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(what))
	}
	return m
}

// add counts n more that went in.
func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count += n
	if m.bar != nil {
		m.bar.Describe(fmt.Sprintf("%d %s, %.0f/s", m.count, m.what, m.rate()))
		// Reading is ahead of what went in: the bar is full only in the end.
		_ = m.bar.Set64(max(0, min(m.src.read.Load(), m.src.size-1))) // fails only past the end
		return
	}
	if time.Since(m.told) < plainEvery {
		return
	}
	m.told = time.Now()
	share := ""
	if m.src.size > 0 {
		share = fmt.Sprintf(", %d%% of the file", 100*m.src.read.Load()/m.src.size)
	}
	fmt.Fprintf(m.out, "%d %s, %.0f/s%s\n", m.count, m.what, m.rate(), share)
}

// say writes a line, out of the bar's way.
func (m *meter) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	fmt.Fprintf(m.out, format+"\n", args...)
}

// waiting tells that a request is tried again, once a second for all that are in flight.
func (m *meter) waiting(err error, pause time.Duration) {
	m.mu.Lock()
	quiet := time.Since(m.waited) < time.Second
	if !quiet {
		m.waited = time.Now()
	}
	m.mu.Unlock()
	if quiet {
		return
	}
	m.say("%v; trying again in %s", err, pause.Round(time.Millisecond))
}

// finish takes the bar away.
func (m *meter) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
}

func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear() // it only writes to the terminal
	}
}

func (m *meter) rate() float64 { return perSecond(m.count, time.Since(m.begun)) }

// perSecond is n in that time as a rate; 0 where the time is too short to tell.
func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
