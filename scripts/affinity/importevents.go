package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// The import route takes at most 5,000 lines and 8 MB a request; smaller chunks keep several requests in flight and the bar moving.
const (
	chunkLines = 2000
	chunkBytes = 4_000_000
	chunksHeld = 2 // waiting for their turn; with the one whose answer is awaited and the one being handed over, 4 are in flight
)

// importer puts objects and events into one engine.
type importer struct {
	c    *client
	wait backoff
	bad  *badLines
}

// eventCounts is what became of the events.
type eventCounts struct {
	Accepted int `json:"accepted"`
	Received int `json:"received"` // of these, without a usable timestamp
	Deleted  int `json:"deleted"`  // of these, of a time that their user is deleted until
	Outside  int `json:"outsideRetention"`
}

// chunk is one request to the import route, and its answer once done is closed.
type chunk struct {
	body    []byte
	starts  []int // where each line begins in body
	numbers []int // its number in the file

	done    chan struct{}
	counts  eventCounts
	refused []refusedLine
}

type refusedLine struct {
	Line    int    `json:"line"` // from 1, in the request; then the number in the file
	Message string `json:"message"`
}

func (c *chunk) add(l line) {
	c.starts = append(c.starts, len(c.body))
	c.numbers = append(c.numbers, l.number)
	c.body = append(append(c.body, l.text...), '\n')
}

// events sends all of src, several chunks in flight, and counts the answers in the order of the file. Events of no index are of index.
// What is counted went in, also when an error is returned.
func (im *importer) events(ctx context.Context, src *source, m *meter, index string) (eventCounts, error) {
	var total eventCounts
	var unread error // a damaged file must not lose the answers to what was readable
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { src.interrupt(ctx.Err()) })()
	sent := make(chan *chunk, chunksHeld)
	group.Go(func() error {
		defer close(sent)
		unread = im.chunks(src, m, func(c *chunk) error {
			c.done = make(chan struct{})
			group.Go(func() error {
				defer close(c.done)
				return im.send(ctx, c, m, index)
			})
			select {
			case sent <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return nil
	})
	group.Go(func() error {
		for c := range sent {
			<-c.done
			total.Accepted += c.counts.Accepted
			total.Received += c.counts.Received
			total.Deleted += c.counts.Deleted
			total.Outside += c.counts.Outside
			for _, r := range c.refused {
				im.bad.add(m, src, r.Line, r.Message)
			}
			m.add(c.counts.Accepted)
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return total, err
	}
	return total, unread
}

// chunks cuts src into chunks and hands each over.
func (im *importer) chunks(src *source, m *meter, hand func(*chunk) error) error {
	c := &chunk{}
	for {
		l, err := src.next()
		if err != nil && len(c.numbers) > 0 { // the end, or as far as the file can be read
			if failed := hand(c); failed != nil {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case l.tooLong:
			im.bad.add(m, src, l.number, fmt.Sprintf("the line is longer than %d bytes", maxLine))
			continue
		}
		if len(c.numbers) == chunkLines || (len(c.numbers) > 0 && len(c.body)+len(l.text) >= chunkBytes) {
			if err := hand(c); err != nil {
				return err
			}
			c = &chunk{}
		}
		c.add(l)
	}
}

// send sends a chunk until it is answered, in halves where the engine finds it too large.
func (im *importer) send(ctx context.Context, c *chunk, m *meter, index string) error {
	return im.part(ctx, c, 0, len(c.numbers), m, "/1/events/import?index="+url.QueryEscape(index))
}

func (im *importer) part(ctx context.Context, c *chunk, from, to int, m *meter, path string) error {
	end := len(c.body)
	if to < len(c.starts) {
		end = c.starts[to]
	}
	var answer []byte
	err := im.wait.retry(ctx, m.waiting, func() (err error) {
		answer, err = im.c.do(ctx, http.MethodPost, path, c.body[c.starts[from]:end])
		return err
	})
	if statusOf(err) == http.StatusRequestEntityTooLarge {
		if to-from == 1 {
			c.refused = append(c.refused, refusedLine{Line: c.numbers[from], Message: answerOf(err)})
			return nil
		}
		middle := from + (to-from)/2
		if err := im.part(ctx, c, from, middle, m, path); err != nil {
			return err
		}
		return im.part(ctx, c, middle, to, m, path)
	}
	if err != nil {
		return fmt.Errorf("import lines %d to %d: %w", c.numbers[from], c.numbers[to-1], err)
	}
	return c.answered(answer, from, to)
}

// answered books one answer, which speaks of the lines from..to.
func (c *chunk) answered(body []byte, from, to int) error {
	var answer struct {
		eventCounts
		Refused []refusedLine `json:"refused"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("read the answer to an import, which is not what an Affinity engine sends: %w", err)
	}
	c.counts.Accepted += answer.Accepted
	c.counts.Received += answer.Received
	c.counts.Deleted += answer.Deleted
	c.counts.Outside += answer.Outside
	for _, r := range answer.Refused {
		if r.Line < 1 || r.Line > to-from {
			return fmt.Errorf("the engine refused line %d of %d sent: %s", r.Line, to-from, cli.Printable(r.Message))
		}
		c.refused = append(c.refused, refusedLine{Line: c.numbers[from+r.Line-1], Message: r.Message})
	}
	return nil
}
