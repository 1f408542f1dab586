package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
)

// The table recent holds a sample of the events of the last minutes: a row for each
// minute in which some were received, with a column for each event. Minutes and times
// are counted down in the keys, so that the newest event is the first one. An event that
// is written again replaces itself.

// RecentMinutes is how many rows of an app are read: the minute that has begun, and those
// before it.
const RecentMinutes = 15

// Minutes and milliseconds are counted down from these.
const (
	lastMinute = 99_999_999
	lastMilli  = 9_999_999_999_999
)

// RecentEvent is an event of the sample, in short.
type RecentEvent struct {
	User    string     `json:"user"`
	ID      string     `json:"id"` // that of the log
	Time    int64      `json:"time"`
	Receipt int64      `json:"receipt"` // ms
	Type    event.Type `json:"type"`
	Name    string     `json:"name"`
	Index   string     `json:"index"`
	// ObjectIDs and Filters are the first ones. Filters are those that the event counts,
	// as facet:value.
	ObjectIDs []string `json:"objectIDs,omitempty"`
	Filters   []string `json:"filters,omitempty"`

	// Written is when the sample got the event, by the clock of Bigtable.
	Written time.Time `json:"-"`
}

// Size returns roughly how many bytes of memory the event takes.
func (e *RecentEvent) Size() int {
	size := 256 + len(e.User) + len(e.ID) + len(e.Name) + len(e.Index)
	for _, list := range [][]string{e.ObjectIDs, e.Filters} {
		for _, text := range list {
			size += 16 + len(text)
		}
	}
	return size
}

func recentKey(app string, at time.Time) string {
	return fmt.Sprintf("%s,%08d", app, lastMinute-at.Unix()/60)
}

func recentColumn(e *RecentEvent) string {
	return fmt.Sprintf("%013d,%s,%s", lastMilli-e.Receipt, e.User, e.ID)
}

// AddRecent adds events of an app to the sample.
func (s Recent) AddRecent(ctx context.Context, app string, events []RecentEvent) error {
	rows, table := map[string]*bigtable.Mutation{}, s.tables.of(app, allUsers).recent
	for i := range events {
		value, err := json.Marshal(&events[i])
		if err != nil {
			return fmt.Errorf("encode a recent event of %s: %w", app, err)
		}
		key := recentKey(app, time.UnixMilli(events[i].Receipt))
		if rows[key] == nil {
			rows[key] = bigtable.NewMutation()
		}
		rows[key].Set(familyRecent, recentColumn(&events[i]), bigtable.ServerTime, value)
	}
	b := newBulk(ctx)
	for key, m := range rows {
		if err := b.add(table, key, m, 0); err != nil {
			return fmt.Errorf("write recent events of %s: %w", app, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("write recent events of %s: %w", app, err)
	}
	return nil
}

// List returns events of the sample of an app, the newest first, at most so many. since
// leaves out those that the sample had at that time, by the clock of Bigtable; the zero
// time leaves out none. Those of users who live in several regions are in the rows of these.
func (s Recent) List(ctx context.Context, app string, now, since time.Time, most int) ([]RecentEvent, error) {
	var events []RecentEvent
	homes := s.residences(app)
	for _, at := range homes {
		there, err := at.listRecent(ctx, app, now, since, most)
		if err != nil {
			return nil, fmt.Errorf("read recent events of %s: %w", app, err)
		}
		events = append(events, there...)
	}
	if len(homes) > 1 {
		slices.SortFunc(events, func(a, b RecentEvent) int { return strings.Compare(recentColumn(&a), recentColumn(&b)) })
	}
	return events[:min(most, len(events))], nil
}

func (s *Store) listRecent(ctx context.Context, app string, now, since time.Time, most int) ([]RecentEvent, error) {
	var events []RecentEvent
	var failed error
	filters := []bigtable.Filter{bigtable.LatestNFilter(1)}
	if !since.IsZero() {
		filters = append(filters, bigtable.TimestampRangeFilter(
			since.Truncate(time.Millisecond).Add(time.Millisecond), time.Time{}))
	}
	filters = append(filters, bigtable.CellsPerRowLimitFilter(most))
	// A clock that is ahead of this one may have begun the next minute.
	rows := bigtable.NewRange(recentKey(app, now.Add(time.Minute)), recentKey(app, now.Add(-RecentMinutes*time.Minute)))
	err := s.tables.of(app, allUsers).recent.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		for _, item := range r[familyRecent] {
			e := RecentEvent{Written: item.Timestamp.Time()}
			if err := json.Unmarshal(item.Value, &e); err != nil {
				failed = fmt.Errorf("row %q column %q: %w", r.Key(), item.Column, err)
				return false
			}
			if events = append(events, e); len(events) == most {
				return false
			}
		}
		return true
	}, bigtable.RowFilter(bigtable.ChainFilters(filters...)))
	return events, errors.Join(err, failed)
}

// DropRecent deletes the rows of an app that Recent no longer reads.
func (s Recent) DropRecent(ctx context.Context, app string, now time.Time) error {
	table := s.tables.of(app, allUsers).recent
	rows := bigtable.NewRange(recentKey(app, now.Add(-(RecentMinutes+1)*time.Minute)), app+",:")
	for {
		keys, err := scanKeys(ctx, table, rows, bulkRows)
		if err == nil && len(keys) > 0 {
			err = deleteKeys(ctx, table, keys)
		}
		if err != nil {
			return fmt.Errorf("drop recent events of %s: %w", app, err)
		}
		if len(keys) < bulkRows {
			return nil
		}
	}
}

// ForgetRecent removes the events of a user from the sample of an app, of which excluded
// is true.
func (s Recent) ForgetRecent(ctx context.Context, app, user string, excluded func(RecentEvent) bool) error {
	return s.everywhere(app, func(s *Store) error { return s.forgetRecent(ctx, app, user, excluded) })
}

func (s *Store) forgetRecent(ctx context.Context, app, user string, excluded func(RecentEvent) bool) error {
	table, found := s.tables.of(app, allUsers).recent, map[string]*bigtable.Mutation{}
	// A purge is rare, and the server sends this user's cells alone.
	own := bigtable.ColumnFilter(`[0-9]+,` + regexp.QuoteMeta(user) + `,.*`)
	err := table.ReadRows(ctx, bigtable.PrefixRange(app+","), func(r bigtable.Row) bool {
		for _, item := range r[familyRecent] {
			var e RecentEvent
			if err := json.Unmarshal(item.Value, &e); err == nil && !excluded(e) {
				continue
			}
			if found[r.Key()] == nil {
				found[r.Key()] = bigtable.NewMutation()
			}
			found[r.Key()].DeleteCellsInColumn(familyRecent, strings.TrimPrefix(item.Column, familyRecent+":"))
		}
		return true
	}, bigtable.RowFilter(bigtable.ChainFilters(own, bigtable.LatestNFilter(1))))
	b := newBulk(ctx)
	for key, m := range found {
		if err == nil {
			err = b.add(table, key, m, 0)
		}
	}
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		return fmt.Errorf("remove recent events of a user of %s: %w", app, err)
	}
	return nil
}
