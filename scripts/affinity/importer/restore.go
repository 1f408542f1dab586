package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/intake/export"
)

// Restored says what a dump was of, and counts what was restored.
type Restored struct {
	App      api.ExportedApp
	Settings int // of indexes
	Feeds    int
	Segments int
	Objects  int
	Events   api.ImportAnswer
	// Missing counts events that the engine could not read when it wrote the dump.
	Missing int
	// Complete reports whether the last line of the dump was read.
	Complete bool
}

// dump is a dump that is restored.
type dump struct {
	im     *Importer
	src    *Source
	client *client.Client
	from   int // lines before this one are not restored
	// strategy decides whether the strategy of the dump is set.
	strategy func(ctx context.Context, c *client.Client, s json.RawMessage) error
	done     Restored
}

// Restore restores a dump from a line on: first the settings and the objects, one after the
// other, then the events, as Events does. strategy sets the strategy of the dump. After an
// error, Through tells up to which line all lines are restored.
func (im *Importer) Restore(ctx context.Context, src *Source, from int,
	strategy func(ctx context.Context, c *client.Client, s json.RawMessage) error) (Restored, error) {
	d := &dump{im: im, src: src, from: from, strategy: strategy}
	first, err := d.settings(ctx)
	if err != nil || first.number == 0 {
		return d.done, err
	}
	src.again = []readLine{{first, nil}}
	before := d.done.Events
	d.done.Events, err = im.restoreEvents(ctx, src, d.next)
	d.done.Events.Add(before)
	return d.done, err
}

// restoreEvents sends lines of an export that keep their receipts.
func (im *Importer) restoreEvents(ctx context.Context, src *Source,
	next func() (line, error)) (api.ImportAnswer, error) {
	return im.events(ctx, src, next, func(ctx context.Context, c *client.Client, lines []byte) (api.ImportAnswer, error) {
		if im.Checks() {
			return checkRestored(lines, time.Now()), nil
		}
		return c.Events().Restore(ctx, lines)
	})
}

// settings restores the lines before the first one of an event, a deletion, consents, or links, which it
// returns.
func (d *dump) settings(ctx context.Context) (line, error) {
	m := newMeter(d.im.progress, "objects", d.src)
	defer m.finish()
	defer context.AfterFunc(ctx, func() { d.src.Interrupt(ctx.Err()) })()
	d.client = d.im.retrying(m)
	o := newObjects(d.im, d.src, m, d.client)
	defer func() { d.done.Objects = o.answer.Stored }()
	c := &consented{dump: d, m: m}
	d.im.begin()
	for {
		l, err := d.src.next()
		if err == nil && isConsents(l.text) && l.number >= d.from {
			if err := c.add(ctx, l); err != nil {
				return line{}, err
			}
			continue
		}
		if sent := c.flush(ctx); sent != nil {
			return line{}, sent
		}
		if errors.Is(err, io.EOF) {
			return line{}, o.flush(ctx)
		}
		if err != nil {
			return line{}, errors.Join(o.flush(ctx), err)
		}
		if isEvent(l.text) && !isConsents(l.text) {
			l.text = bytes.Clone(l.text)
			return l, o.flush(ctx)
		}
		d.im.lines.add(Tally{Read: 1})
		parsed, err := d.parse(l)
		if err != nil {
			d.im.lines.refuse(m, d.src, l.number, err.Error())
			continue
		}
		if l.number < d.from && parsed.App == nil && parsed.End == nil {
			d.im.lines.add(Tally{Skipped: 1})
			continue
		}
		if parsed.Object == nil {
			if err := errors.Join(o.flush(ctx), d.apply(ctx, parsed)); err != nil {
				return line{}, fmt.Errorf("restore line %d of %s: %w", l.number, d.src.name, err)
			}
			if parsed.App != nil || parsed.End != nil || parsed.Fault != nil {
				d.im.lines.add(Tally{Skipped: 1})
			} else {
				d.im.lines.add(Tally{Imported: 1})
			}
			continue
		}
		if parsed.Object.Index != o.index {
			if err := o.flush(ctx); err != nil {
				return line{}, err
			}
			o.index = parsed.Object.Index
		}
		if err := o.add(ctx, line{number: l.number, text: parsed.Object.Object}); err != nil {
			return line{}, err
		}
	}
}

// isEvent reports whether a line is that of an event, a deletion, consents, links, or a report.
func isEvent(text []byte) bool {
	return bytes.HasPrefix(text, []byte(`{"exportedEvent":`)) || bytes.HasPrefix(text, []byte(`{"exportedDeletion":`)) ||
		isConsents(text) || bytes.HasPrefix(text, []byte(`{"exportedLinks":`)) ||
		bytes.HasPrefix(text, []byte(`{"exportedReport":`))
}

// parse parses a line. The errors say what is wrong with it.
func (d *dump) parse(l line) (api.ExportLine, error) {
	if reason := l.reason(); reason != "" {
		return api.ExportLine{}, errors.New(reason)
	}
	parsed, own, err := export.Parse(l.text)
	if err == nil && !own {
		err = errors.New("the line is none of a dump: `affinity import` imports events")
	}
	return parsed, err
}

// apply restores what a line sets. It notes what others say of the dump.
func (d *dump) apply(ctx context.Context, l api.ExportLine) (err error) {
	switch {
	case l.App != nil:
		d.done.App = *l.App
		err = d.checkPurposes(ctx)
	case l.Strategy != nil:
		err = d.strategy(ctx, d.client, l.Strategy)
	case l.Settings != nil:
		d.done.Settings++
		_, err = d.client.Catalog().SetSettings(ctx, l.Settings.Index, l.Settings.Settings)
	case l.TrackNames != nil:
		_, err = d.client.Events().SetNames(ctx, *l.TrackNames)
	case l.Feed != nil:
		d.done.Feeds++
		_, err = d.client.Feeds().Set(ctx, l.Feed.Name, l.Feed.Feed)
	case l.Segment != nil:
		d.done.Segments++
		_, err = d.client.Segments().Save(ctx, l.Segment.Name, l.Segment.Where, false)
	case l.Fault != nil:
		d.done.Missing++
	case l.End != nil:
		d.done.Complete = true
	}
	return err
}

// next returns the next line of an event, a deletion, consents, or links.
func (d *dump) next() (line, error) {
	for {
		l, err := d.src.next()
		if err != nil || isEvent(l.text) && l.number >= d.from {
			return l, err
		}
		if isEvent(l.text) {
			d.im.lines.add(Tally{Read: 1, Skipped: 1})
			continue
		}
		parsed, err := d.parse(l)
		switch {
		case err != nil:
			return line{number: l.number, fault: err.Error()}, nil
		case parsed.Fault != nil:
			d.done.Missing++
		case parsed.End != nil:
			d.done.Complete = true
		case parsed.Next == nil:
			return line{number: l.number, fault: "settings and objects must stand before all events"}, nil
		}
		d.im.lines.add(Tally{Read: 1, Skipped: 1})
	}
}
