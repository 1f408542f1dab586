package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Log is the log of one app in the schemas of a layout. Make a Log for each use,
// because an app's layout can change.
type Log struct {
	s        *Store
	app      string
	layout   schema.Layout
	analysis bool // reads through the app profile for analysis
}

// Log returns the log of an app in the schemas of a layout.
func (s Events) Log(app string, l schema.Layout) Log { return Log{s: s.db, app: app, layout: l} }

// LogEvent is a row of the log to write.
type LogEvent struct {
	User string
	Time int64  // ms, event time
	ID   string // the same event always has the same id, and so the same row
	Type event.Type
	Name string
	// Counts are the event's raw filters, each with the number of its objects that
	// have it.
	Counts []affinity.Count
	// Index and ObjectIDs name the event's objects, in its order. Both are empty for
	// an event by filters. The ID covers them, so all writes of a row agree on them.
	Index     string
	ObjectIDs []string
	// Receipt is when the event was received (ms). 0 means that nobody knows; then it is
	// that of the original.
	Receipt int64
	// Original is the event as the client sent it, for explanations, exports and
	// re-enrichment.
	Original []byte
	// Known is the token of the user who had signed in, if the event names one: it is evidence that
	// the person of Known used User. Strong means that it came with a key which may say so of anybody,
	// or of this user, and KeyID is the ID of that key. None is in the row.
	Known  string
	Strong bool
	KeyID  string
	// Call is the ID of the call that the event is part of, if the call is remembered. It is
	// not in the row. The one who drops the event forgets the call.
	Call string
	// Denied are the names that the consent of the event denies. They are not in the row: only events that may be used
	// for all that they serve get one.
	Denied []string
}

// MoveTo gives the row the time of its event, which has been moved (event.Event.At).
func (e *LogEvent) MoveTo(moved *event.Event) error {
	o, err := schema.ParseOriginal(e.Original)
	if err != nil {
		return err
	}
	o.Event = moved.Raw
	e.Time, e.ID, e.Original = moved.Time, moved.ID(), o.Append(nil)
	return nil
}

// Size returns roughly how many bytes the row takes in a request.
func (e *LogEvent) Size() int {
	size := len(e.User) + len(e.Original) + 128
	for _, c := range e.Counts {
		size += len(c.Facet) + len(c.Value) + 16
	}
	return size
}

// Columns of familyOriginal: the event as the client sent it, and its objects in
// short (schema.Objects).
const (
	columnOriginal = "event"
	columnObjects  = "o"
)

// table returns the table of a schema that holds a user's log.
func (l Log) table(n schema.Name, user string) *bigtable.Table {
	if l.analysis {
		return l.s.tables.in(l.app).analysis[n]
	}
	return l.s.tables.of(l.app, user).logs[n]
}

// Append writes events in every schema of the layout, starting with the schema that
// readers use: a row that exists only there is a write under way. It leaves the
// rows identical in all schemas, whatever other writers do. It replaces all
// filters of an existing row, so that writing twice changes nothing. After an error
// some rows may be missing, and the caller must write all rows again. After
// RefusedEvents only these are.
func (l Log) Append(ctx context.Context, events []LogEvent) error {
	all := RefusedEvents{}
	for _, n := range l.written() {
		err := l.put(ctx, n, events, replaceFilters)
		if refused, ok := errors.AsType[RefusedEvents](err); ok {
			maps.Copy(all, refused)
			events = slices.DeleteFunc(slices.Clone(events), func(e LogEvent) bool { return refused[l.key(&e)] != nil })
		} else if err != nil {
			return fmt.Errorf("append to log of %s, %s: %w", l.app, n, err)
		}
		if n != l.layout.Read {
			err := l.reconcile(ctx, n, events)
			if refused, ok := errors.AsType[RefusedEvents](err); ok {
				maps.Copy(all, refused)
			} else if err != nil {
				return err
			}
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("append to log of %s: %w", l.app, all)
	}
	return nil
}

func (l Log) key(e *LogEvent) string { return logKey(l.app, e.User, e.Time, e.ID) }

// put writes events in one schema. RefusedEvents are those that are not written.
func (l Log) put(ctx context.Context, n schema.Name, events []LogEvent, old replaced) error {
	w, refused := l.writer(ctx, n), RefusedEvents{}
	w.refused = func(key string, err error) { refused[key] = err }
	for i := range events {
		cellTime := events[i].Time
		if old == keepAll {
			cellTime = max(cellTime-1, 0)
		}
		if err := w.put(&events[i], cellTime, old); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	return refused.orNil()
}

// written returns the schemas of the layout, starting with the one that readers
// use.
func (l Log) written() []schema.Name {
	names := []schema.Name{l.layout.Read}
	for _, n := range l.layout.Write {
		if n != l.layout.Read {
			names = append(names, n)
		}
	}
	return names
}

// Copy writes events in one schema, below every row that Append writes before or
// after. The cells of a copy are a millisecond older than its event, and only the
// newest cells of a row count. So a copy of an old read never hides a later write,
// except for events of the first millisecond of 1970. After RefusedEvents only these
// are missing.
func (l Log) Copy(ctx context.Context, n schema.Name, events []LogEvent) error {
	if err := l.put(ctx, n, events, keepAll); err != nil {
		return fmt.Errorf("copy to log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// Replace writes events in one schema. It replaces all cells of their rows,
// including copies. After RefusedEvents only these are missing.
func (l Log) Replace(ctx context.Context, n schema.Name, events []LogEvent) error {
	if err := l.put(ctx, n, events, replaceRow); err != nil {
		return fmt.Errorf("replace in log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// replaced is the part of a row that a write replaces.
type replaced int

const (
	keepAll        replaced = iota
	replaceFilters          // so that a second resolution does not add to the first
	replaceRow
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

// put writes a row whose cells have the time cellTime (ms).
func (w *logWriter) put(e *LogEvent, cellTime int64, old replaced) error {
	ts, m := bigtable.Timestamp(cellTime*1000), bigtable.NewMutation()
	switch {
	case old == replaceRow:
		m.DeleteRow()
	case old == replaceFilters && w.schema == schema.Wide:
		m.DeleteCellsInFamily(schema.FamilyWide)
	case old == replaceFilters:
		m.DeleteCellsInFamily(string(e.Type))
	}
	objects := schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs}.Append(nil)
	m.Set(familyOriginal, columnOriginal, ts, e.Original)
	m.Set(familyOriginal, columnObjects, bigtable.Timestamp(receiptCell(e.Time, e.ReceivedAt())*1000), objects)
	size := len(e.Original) + len(objects)
	w.cells = w.encoder.Append(w.cells[:0], e.Type, e.Name, e.Counts)
	for _, c := range w.cells {
		m.Set(c.Family, c.Qualifier, ts, c.Value)
		size += len(c.Qualifier) + len(c.Value)
	}
	return w.add(w.log.table(w.schema, e.User), logKey(w.log.app, e.User, e.Time, e.ID), m, size)
}

// Delete deletes events from both schemas. It reads only their user, time and ID.
func (l Log) Delete(ctx context.Context, events []LogEvent) error {
	for _, n := range schema.Names {
		keys := make([]string, len(events))
		for i, e := range events {
			keys[i] = logKey(l.app, e.User, e.Time, e.ID)
		}
		if err := l.deleteRows(ctx, n, keys); err != nil {
			return err
		}
	}
	return nil
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

// PurgeLog deletes a user's events that a tombstone covers from both schemas, whether
// the app uses them or not. Its memory holds one request, and the keys of the events
// that only their receipts decide. It forgets the calls of these times, too. It returns the
// larger of the two schemas' numbers of events.
func (s Events) PurgeLog(ctx context.Context, app, user string, t affinity.Tombstone) (int, error) {
	prefix := userKey(app, user)
	end := string(appendLogTime([]byte(prefix), t.DeletedUntil+1))
	deleted := 0
	for _, n := range schema.Names {
		l := s.Events.Log(app, schema.Layout{Read: n})
		count, err := l.deleteRange(ctx, n, user, prefix, end)
		if err == nil {
			var received int
			received, err = l.purgeReceived(ctx, user, t)
			count += received
		}
		deleted = max(deleted, count)
		if err != nil {
			return deleted, fmt.Errorf("purge log of %s, %s: %w", app, n, err)
		}
	}
	return deleted, s.Calls.purge(ctx, app, user, t.DeletedUntil)
}

// EventsOf returns a user's events of some types from both schemas, whether the app uses
// them or not, without their content. An event may be there twice.
func (s Events) EventsOf(ctx context.Context, app, user string, types event.Types) ([]LogEvent, error) {
	var found []LogEvent
	for _, n := range schema.Names {
		l := s.Events.Log(app, schema.Layout{Read: n})
		err := l.ReadObjects(ctx, []UserRange{{User: user, To: schema.End}}, func(_ string, row LogRow) error {
			if o, _ := row.Objects(); row.fault == nil && types.Has(o.Type) {
				found = append(found, LogEvent{User: user, Time: row.Time, ID: row.ID, Type: o.Type, Name: o.Name,
					Receipt: row.receipt})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read log of %s, %s: %w", app, n, err)
		}
	}
	return found, nil
}

// purgeReceived deletes the events after a tombstone that were received by then.
func (l Log) purgeReceived(ctx context.Context, user string, t affinity.Tombstone) (int, error) {
	band := []UserRange{{User: user, From: schema.Pos{Time: t.DeletedUntil + 1}, To: schema.Pos{Time: t.Alive()}}}
	var covered []LogEvent
	err := l.ReadObjects(ctx, band, func(_ string, row LogRow) error {
		if row.fault == nil && t.Covers(row.Time, row.receipt) {
			covered = append(covered, LogEvent{User: user, Time: row.Time, ID: row.ID})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(covered), l.DropReceived(ctx, l.layout.Read, covered, t.ReceivedUntil)
}

// DropAhead deletes a user's events of times after one and up to another (ms) from both
// schemas, if their receipts are later than latest, which it calls once it has read them: the
// clocks that stamped them were wrong. It leaves a row to which a later receipt has come.
func (s Events) DropAhead(ctx context.Context, app, user string, after, until int64, latest func() int64) error {
	ahead := []UserRange{{User: user, From: schema.Pos{Time: after + 1}, To: schema.Pos{Time: until + 1}}}
	for _, n := range schema.Names {
		l := s.Events.Log(app, schema.Layout{Read: n})
		var rows []LogRow
		err := l.ReadObjects(ctx, ahead, func(_ string, row LogRow) error {
			rows = append(rows, row)
			return nil
		})
		var events []LogEvent
		received := latest()
		for _, row := range rows {
			if row.receipt > received {
				events = append(events, LogEvent{User: user, Time: row.Time, ID: row.ID, Receipt: row.receipt})
			}
		}
		if err == nil {
			err = l.DropExcludedFrom(ctx, n, events, func(string) User { return User{} })
		}
		if err != nil {
			return fmt.Errorf("drop what is ahead from log of %s, %s: %w", app, n, err)
		}
	}
	return nil
}

// deleteRange deletes the rows of a user from one key up to another.
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
