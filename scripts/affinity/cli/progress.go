package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how much of some work is done: a bar on a terminal, else a
// line every few seconds. It is not safe for concurrent use.
type Progress struct {
	out     io.Writer
	bar     *progressbar.ProgressBar // nil: lines
	printed time.Time
}

// progressSteps is the resolution of the bar.
const progressSteps = 1000

// NewProgress returns the progress of work that begins now.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out, printed: time.Now()}
	if IsTerminal(out) {
		p.bar = progressbar.NewOptions(progressSteps, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

// Set shows what is done now and the share, 0 to 1, of all work that is done.
func (p *Progress) Set(what string, done float64) {
	if p.bar != nil {
		p.bar.Describe(Printable(what))
		_ = p.bar.Set(min(int(progressSteps*done), progressSteps-1)) // fails only beyond the end
		return
	}
	if time.Since(p.printed) < PlainEvery {
		return
	}
	p.printed = time.Now()
	fmt.Fprintf(p.out, "%s, %d%%\n", Printable(what), int(100*done))
}

// Finish removes the bar.
func (p *Progress) Finish() {
	if p.bar != nil {
		_ = p.bar.Clear() // it writes to the terminal only
	}
}
