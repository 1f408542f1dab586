package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/schema"
)

// maxAgreements bounds how often rows are made to agree because they were written
// meanwhile.
const maxAgreements = 20

// agree makes rows that were written in both schemas the same in both. Of two
// deliveries of an event with different filters, when its catalog has changed in
// between, one may come last to the one schema and the other to the other. So
// whoever has written looks at the row that is read, and if it is not what he
// wrote, gives the other schema that one; the last of them to write there leaves
// what he has found to be there still.
func (l Log) agree(ctx context.Context, other schema.Name, events []LogEvent) error {
	written, last := make(map[string]*LogEvent, len(events)), make(map[string]*LogEvent, len(events))
	for i := range events {
		e := &events[i]
		key := logKey(l.app, e.User, e.Time, e.ID)
		written[key], last[key] = e, e
	}
	for range maxAgreements {
		differing, err := l.differing(ctx, written, last)
		if err != nil || len(differing) == 0 {
			return err
		}
		var put []LogEvent
		var gone []string
		for key, is := range differing {
			if is == nil {
				gone = append(gone, key)
			} else {
				put = append(put, *is)
			}
		}
		if err := l.Replace(ctx, other, put); err != nil {
			return err
		}
		if err := l.deleteRows(ctx, other, gone); err != nil {
			return err
		}
		last = differing
	}
	return fmt.Errorf("append to log of %s: rows were written again %d times meanwhile", l.app, maxAgreements)
}

// differing are those of some rows, by key, that are not in the schema that is
// read what they were last, as they are there; nil is a row that is not there.
func (l Log) differing(ctx context.Context, written, last map[string]*LogEvent) (map[string]*LogEvent, error) {
	found := make(map[string]Entry, len(last))
	err := l.Entries(ctx, l.layout.Read, slices.Collect(maps.Keys(last)), func(e Entry) error {
		found[e.Key()] = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	d, differing := NewLogDecoder(), map[string]*LogEvent{}
	for key, was := range last {
		e, there := found[key]
		if !there {
			if was != nil {
				differing[key] = nil
			}
			continue
		}
		ev, err := d.Event(e.LogRow)
		if err != nil {
			continue // something else lies in the row, too: whoever reads it is told
		}
		is := *written[key] // whose type and name are part of the id
		is.Counts, is.Original = ev.Counts, e.Original
		if was == nil || !was.Same(&is) {
			differing[key] = &is
		}
	}
	return differing, nil
}

// Same tells whether two rows say the same of an event: its type, name, filters in
// whatever order, and original.
func (e *LogEvent) Same(o *LogEvent) bool {
	return e.Type == o.Type && e.Name == o.Name && bytes.Equal(e.Original, o.Original) &&
		(slices.Equal(e.Counts, o.Counts) || slices.Equal(ordered(e.Counts), ordered(o.Counts)))
}

// ordered are counts in an order that does not depend on the schema they lay in.
func ordered(counts []affinity.Count) []affinity.Count {
	return slices.SortedFunc(slices.Values(counts), func(a, b affinity.Count) int {
		return cmp.Or(cmp.Compare(a.Facet, b.Facet), cmp.Compare(a.Value, b.Value), cmp.Compare(a.N, b.N))
	})
}
