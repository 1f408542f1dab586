package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// Written decodes a row completely, so that it can be written in another
// schema. An error means that the row is damaged.
func (d *LogDecoder) Written(e Entry) (LogEvent, error) {
	if e.Fault != nil {
		return LogEvent{}, e.Fault
	}
	ev, err := d.Event(e.LogRow)
	if err != nil {
		return LogEvent{}, err
	}
	row := LogEvent{
		User: e.User, Time: e.Time, ID: e.ID, Type: ev.Type, Name: ev.Name, Counts: ev.Counts, Original: e.Original,
	}
	row.Receipt = e.Receipt()
	objects, ok := e.Objects()
	row.Index, row.ObjectIDs = objects.Index, objects.ObjectIDs
	if row.Type == "" { // the columns of a wide row without filters do not say its type and name
		row.Type, row.Name = objects.Type, objects.Name
	}
	switch exists := slices.Contains(schema.Narrow.Families(), string(row.Type)); {
	case !ok && (exists || row.Type == ""):
		return row, fmt.Errorf("row %q: the cell of its objects is missing or damaged", e.Key())
	case !exists:
		return row, fmt.Errorf("row %q: event type %q does not exist", e.Key(), row.Type)
	}
	return row, nil
}

// errPage ends the reading of a page.
var errPage = errors.New("the page is full")

// rewritePage writes the next rows of a user's log in another region, in the schema that readers use, to another
// schema here. It returns their number, and the place behind the last one. It leaves out what does not decode, or what the
// other schema refuses: a verification of the migration finds them.
func (s *Store) rewritePage(ctx context.Context, from *Store, app string, l schema.Layout, n schema.Name,
	user, after string, page int) (count int, last string, err error) {
	d, begin := NewLogDecoder(), after
	if begin == "" {
		begin = user
	}
	var events []LogEvent
	err = from.Events.Log(app, l).Scan(ctx, l.Read, Range{From: begin}, 0, func(e Entry) error {
		if e.User != user || count == page {
			return errPage
		}
		count, last = count+1, e.After()
		if ev, err := d.Written(e); err == nil {
			events = append(events, ev)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPage) {
		return 0, "", err
	}
	for some := range slices.Chunk(events, copyPage) {
		err := s.Events.Log(app, l).Copy(ctx, n, some)
		if _, refused := errors.AsType[RefusedEvents](err); err != nil && !refused {
			return 0, "", err
		}
	}
	return count, last, nil
}
