package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"
)

// RingSize is the number of an app's refused events that the store keeps.
const RingSize = 100

const columnSequence = "#" // no reason starts with it

// Refused is a refused event, or a refused request whose events do not parse.
type Refused struct {
	At     time.Time       `json:"at"`
	Reason string          `json:"reason"`
	Event  json.RawMessage `json:"event,omitempty"`
	// Sequence is the number of the refusal among those of the app, from 1.
	Sequence int64 `json:"sequence"`
}

// RecordRefused counts refusals of an app by reason and keeps the last RingSize. It
// keeps them as a ring in one row: a counter selects the next slot to overwrite, so
// that the row stays small without garbage collection.
func (s *Store) RecordRefused(ctx context.Context, app string, refused []Refused) error {
	if len(refused) == 0 {
		return nil
	}
	counts := map[string]int64{}
	for _, r := range refused {
		counts[r.Reason]++
	}
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment(familyCounts, columnSequence, int64(len(refused)))
	for reason, n := range counts {
		rmw.Increment(familyCounts, reason, n)
	}
	row, err := s.tables.of(app, allUsers).refused.ApplyReadModifyWrite(ctx, app+",", rmw)
	if err != nil {
		return fmt.Errorf("count refused events of %s: %w", app, err)
	}
	last := refusedCounts(row)[columnSequence]
	m := bigtable.NewMutation()
	for i, r := range refused[max(0, len(refused)-RingSize):] {
		r.Sequence = last - int64(min(len(refused), RingSize)-1-i)
		value, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode refused event: %w", err)
		}
		slot := fmt.Sprintf("%02d", r.Sequence%RingSize)
		m.DeleteCellsInColumn(familyRing, slot)
		m.Set(familyRing, slot, bigtable.Now(), value)
	}
	if err := s.tables.of(app, allUsers).refused.Apply(ctx, app+",", m); err != nil {
		return fmt.Errorf("record refused events of %s: %w", app, err)
	}
	return nil
}

var newestCells = bigtable.RowFilter(bigtable.LatestNFilter(1))

// ReadRefused returns the last refused events of an app, newest first, and the
// number of all refusals by reason.
func (s *Store) ReadRefused(ctx context.Context, app string) ([]Refused, map[string]int64, error) {
	row, err := s.tables.of(app, allUsers).refused.ReadRow(ctx, app+",", newestCells)
	if err != nil {
		return nil, nil, fmt.Errorf("read refused events of %s: %w", app, err)
	}
	list := make([]Refused, 0, len(row[familyRing]))
	for _, item := range row[familyRing] {
		var r Refused
		if err := json.Unmarshal(item.Value, &r); err != nil {
			return nil, nil, fmt.Errorf("refused event %s of %s: %w", item.Column, app, err)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Refused) int { return int(b.Sequence - a.Sequence) })
	counts := refusedCounts(row)
	delete(counts, columnSequence)
	return list, counts, nil
}

func refusedCounts(row bigtable.Row) map[string]int64 {
	counts := map[string]int64{}
	for _, item := range row[familyCounts] {
		if len(item.Value) == 8 {
			counts[item.Column[len(familyCounts)+1:]] = int64(binary.BigEndian.Uint64(item.Value))
		}
	}
	return counts
}
