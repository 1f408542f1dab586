package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// The receipt of an event is the timestamp of the cell m:o of its row. All writers of a
// row write the same value there, so the newest cell holds the greatest receipt, in
// whatever order they write, and no write takes it back: an append replaces the filters
// alone.
//
// Which events a deletion covers only depends on their receipts from maxAhead before
// to maxAhead after their times, so others are cut to that span. The cell is then
// collected by age with its row.
const maxAhead = int64(event.MaxAhead / 1e6) // ms

// receiptCell returns the timestamp of the cell m:o (ms).
func receiptCell(time, receipt int64) int64 {
	return max(min(receipt, time+maxAhead), time-maxAhead, 1)
}

// receiptOf returns the receipt that cells m:o of a row hold. Without one it is the time
// of the event.
func receiptOf(items []bigtable.ReadItem, time int64) int64 {
	newest := int64(-1)
	for _, item := range items {
		if isObjects(item) {
			newest = max(newest, int64(item.Timestamp)/1000)
		}
	}
	if newest < 0 {
		return max(time, 1)
	}
	return newest
}

func isObjects(item bigtable.ReadItem) bool {
	return item.Column == familyOriginal+":"+columnObjects
}

// Receipt returns when the event was received (ms), cut to 5 minutes around its time. The
// row must have been read with objects.
func (r LogRow) Receipt() int64 { return r.receipt }

// Excluded reports whether the user's deletions cover the event of a row, or the user has
// opted out of its type. The row must have been read with objects.
func (r LogRow) Excluded(of User) bool {
	o, _ := r.Objects()
	return of.Excludes(o.Type, r.Time, r.receipt)
}

// ReceivedAt returns when the event was received (ms): its receipt, else that in the
// original, else the time of the event.
func (e *LogEvent) ReceivedAt() int64 {
	if e.Receipt > 0 {
		return max(e.Receipt, e.Time-maxAhead)
	}
	o, err := schema.ParseOriginal(e.Original)
	if err != nil {
		return max(e.Time, 1)
	}
	return max(o.ReceivedAt, e.Time-maxAhead, 1)
}

// maxDrops is the number of rows that drop deletes at a time.
const maxDrops = 32

// DropReceived deletes events, received until a time (ms), from one schema. It leaves a
// row to which a later receipt has come: another delivery has written the same event.
func (l Log) DropReceived(ctx context.Context, n schema.Name, events []LogEvent, until int64) error {
	return l.drop(ctx, n, events, func(*LogEvent) int64 { return until })
}

func (l Log) drop(ctx context.Context, n schema.Name, events []LogEvent, until func(*LogEvent) int64) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxDrops)
	for _, e := range events {
		from := receiptCell(e.Time, until(&e)) + 1
		later := bigtable.ChainFilters(column(familyOriginal, columnObjects),
			bigtable.TimestampRangeFilterMicros(bigtable.Timestamp(from*1000), 0))
		key := logKey(l.app, e.User, e.Time, e.ID)
		g.Go(func() error {
			return retryAtomic(ctx, func() error {
				return l.table(n, e.User).Apply(ctx, key, bigtable.NewCondMutation(later, nil, deletion()))
			})
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("delete from log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// DropExcluded deletes events that the rows of their users exclude from both schemas: they
// are deleted, or of a type that the user has opted out of. It leaves a row to which a
// receipt has come that may count. It forgets the calls of these events.
func (l Log) DropExcluded(ctx context.Context, events []LogEvent, of func(user string) User) error {
	for _, n := range schema.Names {
		if err := l.DropExcludedFrom(ctx, n, events, of); err != nil {
			return err
		}
	}
	return l.s.Calls.ForgetExcluded(ctx, l.app, events, of)
}

// DropExcludedFrom is DropExcluded for one schema.
func (l Log) DropExcludedFrom(ctx context.Context, n schema.Name, events []LogEvent, of func(user string) User) error {
	var old []string
	var others []LogEvent
	until := func(e *LogEvent) int64 {
		if t := of(e.User).Deleted(); t.Covers(e.Time, e.ReceivedAt()) {
			return t.ReceivedUntil
		}
		return e.ReceivedAt() // the user may have opted in since, and what they did then counts
	}
	for i := range events {
		e := &events[i]
		// A deletion by its time is for good. So is an opt-out of an event that was
		// received long after its time: opting in then deletes it by its time.
		if e.Time <= of(e.User).DeletedUntil || until(e) >= e.Time+maxAhead {
			old = append(old, logKey(l.app, e.User, e.Time, e.ID))
		} else {
			others = append(others, *e)
		}
	}
	if err := l.deleteRows(ctx, n, old); err != nil {
		return err
	}
	return l.drop(ctx, n, others, until)
}
