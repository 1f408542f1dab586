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
	"github.com/affinityengine/affinity/shared/client"
)

// Importer sends data to one app. It counts the bad lines of all that it sends.
type Importer struct {
	client   *client.Client
	retry    client.Retry
	progress io.Writer
	bad      badLines
	equal    int // lines of the last file of events, see Equal
	through  int // number of a line: it and all before it were sent and answered
}

// Equal returns how many lines of the last file of events were equal to an earlier line of
// it, timestamp and eventId too. Such an event is in the log once.
func (im *Importer) Equal() int { return im.equal }

// Through returns the number of a line of the last file: all lines up to it were sent and
// answered. It is 0 if that is not known.
func (im *Importer) Through() int { return im.through }

// New returns an importer that repeats requests as retry says and prints progress
// and bad lines to progress.
func New(c *client.Client, retry client.Retry, progress io.Writer) *Importer {
	return &Importer{client: c, retry: retry, progress: progress}
}

// BadLines is a BadLinesError if any line was refused so far, else nil.
func (im *Importer) BadLines() error {
	im.bad.mu.Lock()
	defer im.bad.mu.Unlock()
	if im.bad.count == 0 {
		return nil
	}
	return BadLinesError(im.bad.count)
}

// retrying is the client with this meter as the place for notices of retries.
func (im *Importer) retrying(m *meter) *client.Client {
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
