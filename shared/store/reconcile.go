package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// maxReconciliations bounds how often one append copies rows that other writers
// keep changing.
const maxReconciliations = 20

// reconcile makes rows identical in both schemas. Two deliveries of one event can
// carry different filters, if its catalog changed in between, and reach the two
// tables in opposite orders. So every writer rereads its rows in the schema that
// readers use. It copies each row that another writer has changed to the other
// schema, until a reread finds no change.
func (l Log) reconcile(ctx context.Context, other schema.Name, events []LogEvent) error {
	written, last := make(map[string]*LogEvent, len(events)), make(map[string]*LogEvent, len(events))
	for i := range events {
		e := &events[i]
		key := l.key(e)
		written[key], last[key] = e, e
	}
	all := RefusedEvents{}
	for range maxReconciliations {
		diverged, err := l.diverged(ctx, written, last)
		if err != nil {
			return err
		}
		if len(diverged) == 0 {
			return all.orNil()
		}
		var changed []LogEvent
		var deleted []string
		for key, row := range diverged {
			if row == nil {
				deleted = append(deleted, key)
			} else {
				changed = append(changed, *row)
			}
		}
		err = l.Replace(ctx, other, changed)
		if refused, ok := errors.AsType[RefusedEvents](err); ok {
			maps.Copy(all, refused)
		} else if err != nil {
			return err
		}
		if err := l.deleteRows(ctx, other, deleted); err != nil {
			return err
		}
		last = diverged
	}
	return fmt.Errorf("append to log of %s: rows changed %d times while they were reconciled", l.app, maxReconciliations)
}

// diverged reads rows in the schema that readers use. It returns, by key, the rows
// that differ from last, and nil for a row that no longer exists.
func (l Log) diverged(ctx context.Context, written, last map[string]*LogEvent) (map[string]*LogEvent, error) {
	found := make(map[string]Entry, len(last))
	err := l.Entries(ctx, l.layout.Read, slices.Collect(maps.Keys(last)), func(e Entry) error {
		found[e.Key()] = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	d, diverged := NewLogDecoder(), map[string]*LogEvent{}
	for key, expected := range last {
		e, exists := found[key]
		if !exists {
			if expected != nil {
				diverged[key] = nil
			}
			continue
		}
		ev, err := d.Event(e.LogRow)
		if err != nil {
			continue // the row is damaged: its readers report it
		}
		current := *written[key] // the ID covers type and name, so these are the same
		current.Counts, current.Original, current.Receipt = ev.Counts, e.Original, e.receipt
		if expected == nil || !expected.Same(&current) {
			diverged[key] = &current
		}
	}
	return diverged, nil
}

// Same reports whether two rows hold the same event: type, name, filters in any
// order, objects, receipt as far as a row tells it, and original.
func (e *LogEvent) Same(o *LogEvent) bool {
	return receiptCell(e.Time, e.ReceivedAt()) == receiptCell(o.Time, o.ReceivedAt()) && e.Type == o.Type &&
		e.Name == o.Name && bytes.Equal(e.Original, o.Original) &&
		e.Index == o.Index && slices.Equal(e.ObjectIDs, o.ObjectIDs) &&
		(slices.Equal(e.Counts, o.Counts) || slices.Equal(sorted(e.Counts), sorted(o.Counts)))
}

// sorted returns counts in an order that does not depend on the schema.
func sorted(counts []affinity.Count) []affinity.Count {
	return slices.SortedFunc(slices.Values(counts), func(a, b affinity.Count) int {
		return cmp.Or(cmp.Compare(a.Facet, b.Facet), cmp.Compare(a.Value, b.Value), cmp.Compare(a.N, b.N))
	})
}
