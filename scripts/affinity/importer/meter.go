package importer

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// meter shows the progress of an import: a bar on a terminal, else a line every
// few seconds. It is safe for concurrent use.
type meter struct {
	mu       sync.Mutex
	out      io.Writer
	bar      *progressbar.ProgressBar // nil: lines
	what     string                   // what is counted, in the plural
	src      *Source
	count    int
	begun    time.Time
	printed  time.Time // when the last line was printed
	notified time.Time // when the last retry was printed
}

// newMeter counts what is read from src.
func newMeter(out io.Writer, what string, src *Source) *meter {
	now := time.Now()
	m := &meter{out: out, what: what, src: src, begun: now, printed: now}
	if cli.IsTerminal(out) {
		m.bar = progressbar.NewOptions64(src.size, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription(what))
	}
	return m
}

// add counts n more that were imported.
func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count += n
	rate := cli.PerSecond(m.count, time.Since(m.begun))
	if m.bar != nil {
		m.bar.Describe(fmt.Sprintf("%d %s, %.0f/s", m.count, m.what, rate))
		// Reading runs ahead of importing, so the bar must not fill up early. Set64
		// fails only beyond the end.
		_ = m.bar.Set64(max(0, min(m.src.read.Load(), m.src.size-1)))
		return
	}
	if time.Since(m.printed) < cli.PlainEvery {
		return
	}
	m.printed = time.Now()
	share := ""
	if m.src.size > 0 {
		share = fmt.Sprintf(", %d%% of the file", 100*m.src.read.Load()/m.src.size)
	}
	fmt.Fprintf(m.out, "%d %s, %.0f/s%s\n", m.count, m.what, rate, share)
}

// print prints a line without breaking the bar.
func (m *meter) print(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	fmt.Fprintf(m.out, format+"\n", args...)
}

// retrying prints that a request is repeated, at most once a second for all
// requests in flight.
func (m *meter) retrying(err error, pause time.Duration) {
	m.mu.Lock()
	quiet := time.Since(m.notified) < time.Second
	if !quiet {
		m.notified = time.Now()
	}
	m.mu.Unlock()
	if quiet {
		return
	}
	m.print("%v; trying again in %s", err, pause.Round(time.Millisecond))
}

// finish removes the bar.
func (m *meter) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
}

func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear() // it writes to the terminal only
	}
}
