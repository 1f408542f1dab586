package store

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/schema"
)

// Log is the log of one app, in the schemas that its layout names. It is made
// anew for each use: a layout is a moment's.
type Log struct {
	s      *Store
	app    string
	layout schema.Layout
}

// Log is the log of an app as a layout has it.
func (s *Store) Log(app string, l schema.Layout) Log { return Log{s, app, l} }

// LogEvent is one row of the log as it is written.
type LogEvent struct {
	User string
	Time int64  // ms, event time
	ID   string // the event's id: the same event always gets the same row
	Type event.Type
	Name string
	// Counts are the event's raw filters: value is in this many of its objects.
	Counts []affinity.Count
	// Original is the event as it was sent, kept for explanation, export and
	// catalogs that come late.
	Original []byte
}

const columnOriginal = "event"

// table returns the table of a schema that holds a user's log.
func (l Log) table(n schema.Name, user string) *bigtable.Table {
	return l.s.tables.of(l.app, user).logs[n]
}

// Append writes events in every schema of the layout, the one that is read
// first: whoever finds a row there and misses it elsewhere knows that it is on
// its way. In the end the rows are the same in all of them, whoever else writes
// them. A row that is there already is replaced whole, so that writing again
// changes nothing; an error means that some rows may be missing and all must be
// written again.
func (l Log) Append(ctx context.Context, events []LogEvent) error {
	for _, n := range l.written() {
		w := l.writer(ctx, n)
		for i := range events {
			if err := w.put(&events[i], events[i].Time, filters); err != nil {
				return fmt.Errorf("append to log of %s, %s: %w", l.app, n, err)
			}
		}
		if err := w.flush(); err != nil {
			return fmt.Errorf("append to log of %s, %s: %w", l.app, n, err)
		}
		if n != l.layout.Read {
			if err := l.agree(ctx, n, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// written are the schemas that are written, the one that is read first.
func (l Log) written() []schema.Name {
	order := []schema.Name{l.layout.Read}
	for _, n := range l.layout.Write {
		if n != l.layout.Read {
			order = append(order, n)
		}
	}
	return order
}

// Copy writes events in one schema as rows that stand behind whatever is
// appended, before or after: copies are a millisecond older than their events,
// and of a row's cells only the newest count. So a copy of what was read a while
// ago never hides what was written since. Of events of the first millisecond of
// 1970, which have no older one, it does.
func (l Log) Copy(ctx context.Context, n schema.Name, events []LogEvent) error {
	w := l.writer(ctx, n)
	for i := range events {
		if err := w.put(&events[i], max(events[i].Time-1, 0), nothing); err != nil {
			return fmt.Errorf("copy to log of %s, %s: %w", l.app, n, err)
		}
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("copy to log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// Replace writes events in one schema in place of whatever is in their rows,
// copies included.
func (l Log) Replace(ctx context.Context, n schema.Name, events []LogEvent) error {
	w := l.writer(ctx, n)
	for i := range events {
		if err := w.put(&events[i], events[i].Time, wholeRow); err != nil {
			return fmt.Errorf("replace in log of %s, %s: %w", l.app, n, err)
		}
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("replace in log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// replaced is what of a row goes when it is written.
type replaced int

const (
	nothing replaced = iota
	filters          // a second resolution of an event must not add to the first
	wholeRow
)

// logWriter writes rows of one schema.
type logWriter struct {
	*bulk
	log     Log
	schema  schema.Name
	encoder *schema.Encoder
	cells   []schema.Cell
}

func (l Log) writer(ctx context.Context, n schema.Name) *logWriter {
	return &logWriter{bulk: newBulk(ctx), log: l, schema: n, encoder: schema.NewEncoder(n, l.layout.Encoding)}
}

// put writes a row with cells of a time, in place of what is there or beside it.
func (w *logWriter) put(e *LogEvent, cellTime int64, gone replaced) error {
	ts, m := bigtable.Timestamp(cellTime*1000), bigtable.NewMutation()
	switch {
	case gone == wholeRow:
		m.DeleteRow()
	case gone == filters && w.schema == schema.Wide:
		m.DeleteCellsInFamily(schema.FamilyWide)
	case gone == filters:
		m.DeleteCellsInFamily(string(e.Type))
	}
	m.Set(familyOriginal, columnOriginal, ts, e.Original)
	size := len(e.Original)
	w.cells = w.encoder.Append(w.cells[:0], e.Type, e.Name, e.Counts)
	for _, c := range w.cells {
		m.Set(c.Family, c.Qualifier, ts, c.Value)
		size += len(c.Qualifier) + len(c.Value)
	}
	return w.add(w.log.table(w.schema, e.User), logKey(w.log.app, e.User, e.Time, e.ID), m, size)
}

// Delete removes single events, by user, time and id, from every schema there is.
func (l Log) Delete(ctx context.Context, events []LogEvent) error {
	for _, n := range schema.Names {
		keys := make([]string, len(events))
		for i, e := range events {
			keys[i] = logKey(l.app, e.User, e.Time, e.ID)
		}
		if err := there(l.deleteRows(ctx, n, keys)); err != nil {
			return err
		}
	}
	return nil
}

// there is the error of a deletion, unless it says that the table is not there: an
// older deployment has no narrow one, and so nothing in it.
func there(err error) error {
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

func (l Log) deleteRows(ctx context.Context, n schema.Name, keys []string) error {
	b := newBulk(ctx)
	for _, key := range keys {
		if err := b.add(l.table(n, userOf(key)), key, deletion(), 0); err != nil {
			return fmt.Errorf("delete from log of %s, %s: %w", l.app, n, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("delete from log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

func deletion() *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.DeleteRow()
	return m
}

// PurgeLog removes a user's events up to and including a time from every schema
// there is, written or not, in memory bounded by one request however many there
// are. It returns how many there were in the one that had most.
func (s *Store) PurgeLog(ctx context.Context, app, user string, until int64) (int, error) {
	prefix := userKey(app, user)
	end := string(appendLogTime([]byte(prefix), until+1))
	most := 0
	for _, n := range schema.Names {
		count, err := s.Log(app, schema.Layout{}).deleteRange(ctx, n, user, prefix, end)
		most = max(most, count)
		if err = there(err); err != nil {
			return most, fmt.Errorf("purge log of %s, %s: %w", app, n, err)
		}
	}
	return most, nil
}

// deleteRange removes the rows of a user from one key up to another.
func (l Log) deleteRange(ctx context.Context, n schema.Name, user, from, to string) (int, error) {
	b, table, count := newBulk(ctx), l.table(n, user), 0
	var failed error
	err := table.ReadRows(ctx, bigtable.NewRange(from, to), func(r bigtable.Row) bool {
		count++
		failed = b.add(table, r.Key(), deletion(), 0)
		return failed == nil
	}, keysOnly)
	if err := errors.Join(err, failed); err != nil {
		return count, err
	}
	return count, b.flush()
}
