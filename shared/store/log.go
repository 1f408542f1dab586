package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
)

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

// AppendLog writes events to the log of an app. A row that is there already is
// replaced whole, so that writing again changes nothing; an error means that
// some rows may be missing and all must be written again.
func (s *Store) AppendLog(ctx context.Context, app string, events []LogEvent) error {
	b := newBulk(ctx, s.events)
	for i := range events {
		m, size := logMutation(&events[i])
		if err := b.add(logKey(app, events[i].User, events[i].Time, events[i].ID), m, size); err != nil {
			return fmt.Errorf("append to log of %s: %w", app, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("append to log of %s: %w", app, err)
	}
	return nil
}

func logMutation(e *LogEvent) (*bigtable.Mutation, int) {
	ts := bigtable.Timestamp(e.Time * 1000)
	m := bigtable.NewMutation()
	// A second resolution of the same event must not add to the first.
	m.DeleteCellsInFamily(familyFilters)
	m.Set(familyOriginal, columnOriginal, ts, e.Original)
	size := len(e.Original)
	counts := slices.Clone(e.Counts)
	slices.SortFunc(counts, func(a, b affinity.Count) int { return strings.Compare(a.Facet, b.Facet) })
	for len(counts) > 0 {
		n := 1
		for n < len(counts) && counts[n].Facet == counts[0].Facet {
			n++
		}
		value := appendCounts(nil, counts[:n])
		q := qualifier(string(e.Type), e.Name, counts[0].Facet)
		m.Set(familyFilters, q, ts, value)
		size += len(q) + len(value)
		counts = counts[n:]
	}
	return m, size
}

// qualifier is the column of one facet of one kind of event: RFC 4180 CSV.
func qualifier(typ, name, facet string) string {
	return csvField(typ) + "," + csvField(name) + "," + csvField(facet)
}

func csvField(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// countsV1 begins a value of family e: a list of (operator, count, value), each
// operator one byte, count and length of the value as uvarints.
const countsV1 = 1

func appendCounts(dst []byte, counts []affinity.Count) []byte {
	dst = append(dst, countsV1)
	for _, c := range counts {
		dst = append(dst, event.Operator[0])
		dst = binary.AppendUvarint(dst, uint64(c.N))
		dst = binary.AppendUvarint(dst, uint64(len(c.Value)))
		dst = append(dst, c.Value...)
	}
	return dst
}

var errCounts = errors.New("filter counts are damaged")

// eachCount decodes a value of family e. The value passed on aliases b.
func eachCount(b []byte, fn func(value []byte, n int)) error {
	if len(b) == 0 || b[0] != countsV1 {
		return errCounts
	}
	for b = b[1:]; len(b) > 0; {
		if b[0] != event.Operator[0] {
			return errCounts
		}
		n, w := binary.Uvarint(b[1:])
		if w <= 0 || n > 1<<31 {
			return errCounts
		}
		b = b[1+w:]
		size, w := binary.Uvarint(b)
		if w <= 0 || size > uint64(len(b)-w) {
			return errCounts
		}
		fn(b[w:w+int(size)], int(n))
		b = b[w+int(size):]
	}
	return nil
}

// DeleteLogEvents removes single events, by user, time and id.
func (s *Store) DeleteLogEvents(ctx context.Context, app string, events []LogEvent) error {
	b := newBulk(ctx, s.events)
	for _, e := range events {
		m := bigtable.NewMutation()
		m.DeleteRow()
		if err := b.add(logKey(app, e.User, e.Time, e.ID), m, 0); err != nil {
			return fmt.Errorf("delete from log of %s: %w", app, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("delete from log of %s: %w", app, err)
	}
	return nil
}

// PurgeLog removes a user's events up to and including a time, in memory
// bounded by one request however many there are. It returns how many.
func (s *Store) PurgeLog(ctx context.Context, app, user string, until int64) (int, error) {
	prefix := userKey(app, user)
	end := string(appendLogTime([]byte(prefix), until+1))
	b, n := newBulk(ctx, s.events), 0
	var failed error
	err := s.events.ReadRows(ctx, bigtable.NewRange(prefix, end), func(r bigtable.Row) bool {
		m := bigtable.NewMutation()
		m.DeleteRow()
		n++
		failed = b.add(r.Key(), m, 0)
		return failed == nil
	}, keysOnly)
	if err := errors.Join(err, failed); err != nil {
		return n, fmt.Errorf("purge log of %s: %w", app, err)
	}
	if err := b.flush(); err != nil {
		return n, fmt.Errorf("purge log of %s: %w", app, err)
	}
	return n, nil
}
