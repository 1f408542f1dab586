// Package importer sends files of events and objects to an engine: any size, in
// requests that the engine takes, repeated while it is busy. Lines that the
// engine refuses are reported by their number and the others are imported. It
// also reads such files into a log for backtests, without an engine.
//
// It is separate from the commands because several of them use it. It
// keeps nothing: an import is resumed by running it again.
package importer

import (
	"errors"
	"io"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Importer sends data to one app. It counts the lines of all that it sends.
type Importer struct {
	client   *client.Client // nil: nothing is sent, see NewCheck
	retry    client.Retry
	progress io.Writer
	lines    tally
	before   Tally // of the files before the last one
	through  int   // number of a line: it and all before it were sent and answered
}

// Tally counts what became of the lines of the last file, or of the last archive.
func (im *Importer) Tally() Tally { return im.lines.counts().less(im.before) }

// begin begins a file.
func (im *Importer) begin() {
	im.before = im.lines.counts()
	im.lines.clearKinds()
}

// Through returns the number of a line of the last file: all lines up to it were sent and
// answered. It is 0 if that is not known.
func (im *Importer) Through() int { return im.through }

// New returns an importer that repeats requests as retry says and prints progress
// and bad lines to progress.
func New(c *client.Client, retry client.Retry, progress io.Writer) *Importer {
	return &Importer{client: c, retry: retry, progress: progress}
}

// NewCheck returns an importer that sends nothing. It refuses the lines that an engine
// would refuse of any app: what an engine's key, limits and catalog do not permit it cannot
// know. It prints all bad lines.
func NewCheck(progress io.Writer) *Importer {
	return &Importer{progress: progress, lines: tally{all: true}}
}

// Checks reports whether the importer sends nothing.
func (im *Importer) Checks() bool { return im.client == nil }

// BadLines is a BadLinesError if any line was refused so far, else nil.
func (im *Importer) BadLines() error {
	if count := im.lines.counts(); count.Refused > 0 {
		return BadLinesError{Tally: count, checked: im.Checks(), shown: im.lines.shown()}
	}
	return nil
}

// retrying is the client with this meter as the place for notices of retries.
func (im *Importer) retrying(m *meter) *client.Client {
	if im.Checks() {
		return nil
	}
	retry := im.retry
	retry.Notify = m.retrying
	return im.client.WithRetry(retry)
}

// refusal is the engine's refusal behind err, nil if it did not refuse.
func refusal(err error) *api.Error {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}
