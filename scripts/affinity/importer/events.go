package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

// Chunks are smaller than the import route allows, so that several requests are
// in flight and the bar moves.
const (
	chunkLines = min(2000, api.MaxImportLines)
	chunkBytes = min(4_000_000, api.MaxImportBody)
	// chunksQueued wait for the answers before them. With the chunk whose answer is
	// awaited and the one being queued, 4 requests are in flight.
	chunksQueued = 2
)

// chunk is one request to the import route. counts and refused are its answer
// once done is closed.
type chunk struct {
	body    []byte
	starts  []int // offset of each line in body
	numbers []int // number of each line in the file
	equal   []int // places of lines that are equal to earlier ones

	done    chan struct{}
	counts  api.ImportAnswer
	refused map[int]string // by their place in the chunk
	failed  bool
}

func (c *chunk) add(l line) {
	if l.equal {
		c.equal = append(c.equal, len(c.numbers))
	}
	c.starts = append(c.starts, len(c.body))
	c.numbers = append(c.numbers, l.number)
	c.body = append(append(c.body, l.text...), '\n')
}

// Events sends all events of src, several chunks in flight, and adds up the
// answers in the order of the file. index is the index of events that name none.
// With an error, the counts are those of the events imported before it. The
// answer names no refused lines: they are printed. Tally counts the lines.
func (im *Importer) Events(ctx context.Context, src *Source, index string) (api.ImportAnswer, error) {
	equal := equalLines{seen: map[[16]byte]struct{}{}, index: index, now: time.Now()}
	next := func() (line, error) {
		l, err := src.next()
		if err == nil && !l.skipped && l.reason() == "" {
			l.user, l.equal = equal.has(l.text)
		}
		return l, err
	}
	im.begin()
	if src.size > 0 { // else it may be slow, and lines must not wait for each other
		next = byUser(next)
		defer func() { im.through = 0 }() // the lines are not sent in their order
	}
	return im.events(ctx, src, next, func(ctx context.Context, c *client.Client, lines []byte) (api.ImportAnswer, error) {
		if im.Checks() {
			return checkEvents(lines, event.Rules{Now: equal.now, Ahead: event.MaxAhead, History: true, Index: index}), nil
		}
		return c.Events().Import(ctx, index, lines)
	})
}

// post sends lines to the import route.
type post func(ctx context.Context, c *client.Client, lines []byte) (api.ImportAnswer, error)

// events sends all lines that next reads from src.
func (im *Importer) events(ctx context.Context, src *Source,
	next func() (line, error), send post) (api.ImportAnswer, error) {
	m := newMeter(im.progress, "events", src)
	defer m.finish()
	c := im.retrying(m)
	var total api.ImportAnswer
	var unread error // a damaged file must not lose the answers to its readable part
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { src.Interrupt(ctx.Err()) })()
	sent := make(chan *chunk, chunksQueued)
	group.Go(func() error {
		defer close(sent)
		unread = im.chunks(src, next, m, func(ch *chunk) error {
			ch.done = make(chan struct{})
			group.Go(func() error {
				defer close(ch.done)
				err := ch.send(func(lines []byte) (api.ImportAnswer, error) { return send(ctx, c, lines) }, 0, len(ch.numbers))
				ch.failed = err != nil
				return err
			})
			select {
			case sent <- ch:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return nil
	})
	group.Go(func() error {
		unbroken := true
		for ch := range sent {
			<-ch.done
			if unbroken = unbroken && !ch.failed; unbroken {
				im.through = ch.numbers[len(ch.numbers)-1]
			}
			total.AddCounts(ch.counts)
			im.lines.add(ch.tally())
			for place, number := range ch.numbers {
				if reason, refused := ch.refused[place]; refused {
					im.lines.refuse(m, src, number, reason)
				}
			}
			m.add(ch.counts.Accepted)
		}
		return nil
	})
	err := group.Wait()
	im.lines.printKinds(m, src)
	if err != nil {
		return total, err
	}
	return total, unread
}

// chunks cuts the lines that next reads from src into chunks and passes each to handle.
func (im *Importer) chunks(src *Source, next func() (line, error), m *meter, handle func(*chunk) error) error {
	c := &chunk{}
	for {
		l, err := next()
		if err != nil && len(c.numbers) > 0 { // the end, or as far as the file can be read
			if failed := handle(c); failed != nil {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		im.lines.add(Tally{Read: 1})
		if l.skipped {
			im.lines.add(Tally{Skipped: 1})
			continue
		}
		if l.reason() != "" {
			im.lines.refuseLine(m, src, l)
			continue
		}
		if len(c.numbers) == chunkLines || (len(c.numbers) > 0 && len(c.body)+len(l.text) >= chunkBytes) {
			if err := handle(c); err != nil {
				return err
			}
			c = &chunk{}
		}
		c.add(l)
	}
}

// send sends the lines from first up to end, in halves if the engine finds them
// too large.
func (c *chunk) send(to func(lines []byte) (api.ImportAnswer, error), first, end int) error {
	stop := len(c.body)
	if end < len(c.starts) {
		stop = c.starts[end]
	}
	answer, err := to(c.body[c.starts[first]:stop])
	if refused := refusal(err); refused != nil && refused.Status == http.StatusRequestEntityTooLarge {
		if end-first == 1 {
			c.refuse(first, refused.Error())
			return nil
		}
		middle := first + (end-first)/2
		if err := c.send(to, first, middle); err != nil {
			return err
		}
		return c.send(to, middle, end)
	}
	if err != nil {
		return fmt.Errorf("import lines %d to %d: %w", c.numbers[first], c.numbers[end-1], err)
	}
	c.counts.AddCounts(answer)
	for _, r := range answer.Refused {
		if r.Line < 1 || r.Line > end-first {
			return fmt.Errorf("the engine refused line %d of %d sent: %s", r.Line, end-first, r.Message)
		}
		c.refuse(first+r.Line-1, r.Message)
	}
	return nil
}

func (c *chunk) refuse(place int, reason string) {
	if c.refused == nil {
		c.refused = map[int]string{}
	}
	c.refused[place] = reason
}

// tally counts the lines that were answered, but for the refused ones.
func (c *chunk) tally() Tally {
	n := c.counts
	imported := n.Accepted + n.UserDeletions + n.UserConsents + n.UserLinks + n.Reports - n.Present
	t := Tally{Imported: imported, Equal: n.Present}
	if c.failed {
		return t
	}
	t.Skipped = len(c.numbers) - t.Imported - t.Equal - len(c.refused)
	for _, place := range c.equal {
		if _, refused := c.refused[place]; !refused {
			t.Imported, t.Equal = t.Imported-1, t.Equal+1
		}
	}
	return t
}
