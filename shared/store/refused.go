package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
)

// Limits of what the store keeps of refused events.
const (
	// RefusedDays is the age in days up to which refused events are listed and
	// counted. Bigtable drops them a day later, because clocks differ.
	RefusedDays = 30
	// MaxRefused is how many refused events ReadRefused returns.
	MaxRefused = 100
	// RefusedOfReason is how many refused events of one reason a row keeps. The last
	// ones of a reason are always among them, whatever is refused for other reasons.
	RefusedOfReason = 10
	// refusedRows is the number of rows over which the refusals of an app are spread,
	// so that many processes that record them write no row too often.
	refusedRows = 4
)

// Refused is a refused event, or a refused request whose events do not parse.
type Refused struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	// Field names the field whose JSON value has the wrong type; else empty.
	Field string          `json:"field,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
	// Sequence orders refusals: a later one has a higher number.
	Sequence int64 `json:"sequence"`
}

// Refusals are refusals of an app that are recorded together.
type Refusals struct {
	// Counts is the number of refusals by reason.
	Counts map[string]int64
	// Events are the newest ones. Of a reason, the store keeps RefusedOfReason.
	Events []Refused
}

// Columns of a row of refusals: counters of a reason by day, a counter of its events,
// which selects the next slot of its ring to overwrite, and the slots of the ring.
const (
	dayLayout  = "2006-01-02"
	ringColumn = "#"
)

// The rows of an app's refused events are app,<n>, those of refused links app,links,<n>.
func refusedKey(app string, row int) string { return fmt.Sprintf("%s,%d", app, row) }

func linksKey(app string, row int) string { return fmt.Sprintf("%s,links,%d", app, row) }

// RecordRefused adds refusals of an app to those of a day, in one of the app's rows.
// Counts that are recorded again after an error may count twice.
func (s RefusedTable) RecordRefused(ctx context.Context, app string, at time.Time, r Refusals) error {
	return s.record(ctx, app, refusedKey(app, rand.IntN(refusedRows)), at, r)
}

func (s RefusedTable) record(ctx context.Context, app, key string, at time.Time, r Refusals) error {
	if len(r.Counts) == 0 && len(r.Events) == 0 {
		return nil
	}
	table := s.tables.of(app, allUsers).refused
	events := map[string][][]byte{} // encoded before anything is counted
	for _, e := range r.Events {
		value, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode refused event: %w", err)
		}
		events[e.Reason] = append(events[e.Reason], value)
	}
	rmw := bigtable.NewReadModifyWrite()
	for reason, n := range r.Counts {
		rmw.Increment(familyCounts, at.UTC().Format(dayLayout)+","+reason, n)
	}
	for reason, list := range events {
		rmw.Increment(familyCounts, ringColumn+","+reason, int64(len(list)))
	}
	row, err := table.ApplyReadModifyWrite(ctx, key, rmw)
	if err != nil {
		return fmt.Errorf("count refused events of %s: %w", app, err)
	}
	if len(events) == 0 {
		return nil
	}
	counts, m := refusedCounts(row), bigtable.NewMutation()
	for reason, list := range events {
		next := counts[ringColumn+","+reason]
		for i, value := range list[max(0, len(list)-RefusedOfReason):] {
			slot := fmt.Sprintf("%02d,%s", (next+int64(i))%RefusedOfReason, reason)
			m.DeleteCellsInColumn(familyRing, slot)
			m.Set(familyRing, slot, bigtable.Now(), value)
		}
	}
	if err := table.Apply(ctx, key, m); err != nil {
		return fmt.Errorf("record refused events of %s: %w", app, err)
	}
	return nil
}

var newestCells = bigtable.RowFilter(bigtable.LatestNFilter(1))

// ReadRefused returns refused events of an app, the newest first, and the number of
// all refusals by reason, of the last RefusedDays days. It returns at most MaxRefused
// events, and of each reason as many as of the others, as long as it has them. Those of users who live in several
// regions are in the rows of these.
func (s RefusedTable) ReadRefused(ctx context.Context, app string, now time.Time) ([]Refused, map[string]int64, error) {
	within := bigtable.NewRange(app+",0", app+",:") // ':' follows the digits
	ring, days, err := s.read(ctx, app, within, now)
	if err != nil {
		return nil, nil, fmt.Errorf("read refused events of %s: %w", app, err)
	}
	counts := map[string]int64{}
	for _, ofDay := range days {
		for reason, n := range ofDay {
			counts[reason] += n
		}
	}
	return newestOfEach(ring), counts, nil
}

// read returns the refusals of the last RefusedDays days that rows of an app keep, by reason, and the number of
// all of them by day and reason.
func (s RefusedTable) read(ctx context.Context, app string, within bigtable.RowSet,
	now time.Time) (map[string][]Refused, map[string]map[string]int64, error) {
	oldest := now.AddDate(0, 0, -RefusedDays)
	ring, days := map[string][]Refused{}, map[string]map[string]int64{}
	var failed error
	take := func(row bigtable.Row) bool {
		for column, n := range refusedCounts(row) {
			day, reason, _ := strings.Cut(column, ",")
			if day < oldest.UTC().Format(dayLayout) || day == ringColumn {
				continue
			}
			if days[day] == nil {
				days[day] = map[string]int64{}
			}
			days[day][reason] += n
		}
		for _, item := range row[familyRing] {
			var r Refused
			if failed = json.Unmarshal(item.Value, &r); failed != nil {
				failed = fmt.Errorf("refusal %s: %w", item.Column, failed)
				return false
			}
			if r.At.After(oldest) {
				ring[r.Reason] = append(ring[r.Reason], r)
			}
		}
		return true
	}
	for _, at := range s.residences(app) {
		err := at.tables.of(app, allUsers).refused.ReadRows(ctx, within, take, newestCells)
		if err = cmp.Or(failed, err); err != nil {
			return nil, nil, err
		}
	}
	return ring, days, nil
}

// readRefused reads the rows of refused events and of refused links.
func (s *Store) readRefused(ctx context.Context, app string, do func(bigtable.Row) bool) error {
	return s.tables.of(app, allUsers).refused.ReadRows(ctx, bigtable.PrefixRange(app+","), do, newestCells)
}

// newestOfEach returns MaxRefused events, the newest first: the newest of each
// reason, then the second of each, and so on.
func newestOfEach(ring map[string][]Refused) []Refused {
	list := []Refused{}
	newest := func(a, b Refused) int {
		if order := b.At.Compare(a.At); order != 0 {
			return order
		}
		return int(b.Sequence - a.Sequence)
	}
	for _, of := range ring {
		slices.SortFunc(of, newest)
	}
	for i := 0; len(list) < MaxRefused; i++ {
		before := len(list)
		for _, reason := range slices.Sorted(maps.Keys(ring)) {
			if i < len(ring[reason]) && len(list) < MaxRefused {
				list = append(list, ring[reason][i])
			}
		}
		if len(list) == before {
			break
		}
	}
	slices.SortFunc(list, newest)
	return list
}

// ForgetRefused removes the refused events and links of a user of an app, and events that are
// kept in part and name the user. It returns how many. The counts stay: they say
// nothing about users.
func (s RefusedTable) ForgetRefused(ctx context.Context, app, user string) (int, error) {
	forgotten := 0
	err := s.everywhere(app, func(s *Store) error {
		n, err := s.forgetRefused(ctx, app, user)
		forgotten = max(forgotten, n)
		return err
	})
	return forgotten, err
}

func (s *Store) forgetRefused(ctx context.Context, app, user string) (int, error) {
	type cells struct {
		key string
		*bigtable.Mutation
	}
	var found []cells
	n := 0
	err := s.readRefused(ctx, app, func(row bigtable.Row) bool {
		m := bigtable.NewMutation()
		before := n
		for _, item := range row[familyRing] {
			if ofUser(item.Value, user) {
				// Not the whole column: another event may have replaced this one.
				m.DeleteTimestampRange(familyRing, item.Column[len(familyRing)+1:], item.Timestamp, item.Timestamp+1000)
				n++
			}
		}
		if n > before {
			found = append(found, cells{row.Key(), m})
		}
		return true
	})
	for i := 0; i < len(found) && err == nil; i++ {
		err = s.tables.of(app, allUsers).refused.Apply(ctx, found[i].key, found[i].Mutation)
	}
	if err != nil {
		return 0, fmt.Errorf("remove refused events of a user of %s: %w", app, err)
	}
	return n, nil
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
