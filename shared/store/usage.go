package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/usage"
)

// usageKey is the key of one shard of an app's day. Keys of a day begin with a
// digit, so the row of the app's keys sorts behind all days.
func usageKey(app string, day usage.Day, shard int) string {
	return fmt.Sprintf("%s,%s,%02d", app, day, shard)
}

// deletedUserKey is the key of the row of a deleted user, whom it does not name.
func deletedUserKey(app, user string) string {
	hash := sha256.Sum256([]byte(app + "," + user))
	return app + ",deleted," + hex.EncodeToString(hash[:16])
}

func usageKeysKey(app string) string { return app + ",keys" }

// usageColumns are the columns of counts.
var usageColumns = map[string]func(*usage.Counts) *int64{
	"events":  func(c *usage.Counts) *int64 { return &c.Events },
	"refused": func(c *usage.Counts) *int64 { return &c.Refused },
	"links":   func(c *usage.Counts) *int64 { return &c.RefusedLinks },
	"reads":   func(c *usage.Counts) *int64 { return &c.Reads },
	"rows":    func(c *usage.Counts) *int64 { return &c.Rows },
	"bytes":   func(c *usage.Counts) *int64 { return &c.Bytes },
}

// AddUsage adds a batch to its row, and its process's number of batches in the same
// transaction. A repeated batch is added only if that number does not include it.
func (s Usage) AddUsage(ctx context.Context, b usage.Batch) error {
	table, key := s.tables.of(b.App, allUsers).usage, usageKey(b.App, b.Day, b.Shard)
	if b.Repeated {
		row, err := table.ReadRow(ctx, key, bigtable.RowFilter(bigtable.ChainFilters(
			bigtable.ColumnRangeFilter(familyBatches, b.Process, b.Process+"\x00"), bigtable.LatestNFilter(1))))
		if err != nil {
			return fmt.Errorf("read usage of %s: %w", b.App, err)
		}
		if items := row[familyBatches]; len(items) > 0 && number(items[0].Value) >= b.Number {
			return nil
		}
	}
	if _, err := table.ApplyReadModifyWrite(ctx, key, usageOf(b)); err != nil {
		return fmt.Errorf("add usage of %s: %w", b.App, err)
	}
	return nil
}

// usageOf returns the increments of a batch.
func usageOf(b usage.Batch) *bigtable.ReadModifyWrite {
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment(familyBatches, b.Process, 1)
	for column, of := range usageColumns {
		if n := *of(&b.Counts); n != 0 {
			rmw.Increment(familyCounts, column, n)
		}
	}
	for kind, n := range b.Names.Events {
		rmw.Increment(familyNames, kindColumn+kind.Type+","+kind.Name, n)
	}
	for facet, n := range b.Names.Facets {
		rmw.Increment(familyNames, facetColumn+facet, n)
	}
	for token, n := range b.Names.Nobody {
		rmw.Increment(familyNames, nobodyColumn+token, n)
	}
	if b.Names.Left != 0 {
		rmw.Increment(familyNames, leftColumn, b.Names.Left)
	}
	return rmw
}

// Columns of names: a letter before the type and the name of events, before a facet, and
// before a token that names nobody.
const (
	kindColumn   = "e,"
	facetColumn  = "f,"
	nobodyColumn = "n,"
	leftColumn   = "left"
)

// addName adds the count of a column to names. It ignores columns of a newer version.
func addName(names *usage.Names, column string, n int64) {
	if facet, ok := strings.CutPrefix(column, facetColumn); ok {
		names.Facets[facet] += n
	} else if text, ok := strings.CutPrefix(column, kindColumn); ok {
		typ, name, _ := strings.Cut(text, ",")
		names.Events[usage.Kind{Type: typ, Name: name}] += n
	} else if token, ok := strings.CutPrefix(column, nobodyColumn); ok {
		names.Nobody[token] += n
	} else if column == leftColumn {
		names.Left += n
	}
}

func noNames() usage.Names {
	return usage.Names{Events: map[usage.Kind]int64{}, Facets: map[string]int64{}, Nobody: map[string]int64{}}
}

// KnownNames returns the names that a shard of an app's day has.
func (s Usage) KnownNames(ctx context.Context, app string, day usage.Day, shard int) (usage.Names, error) {
	names := noNames()
	row, err := s.tables.of(app, allUsers).usage.ReadRow(ctx, usageKey(app, day, shard),
		bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(familyNames), bigtable.LatestNFilter(1))))
	if err != nil {
		return names, fmt.Errorf("read names of events of %s: %w", app, err)
	}
	for _, item := range row[familyNames] {
		addName(&names, item.Column[len(familyNames)+1:], number(item.Value))
	}
	return names, nil
}

// Names returns how many events of some days had which kinds and facets.
func (s Usage) Names(ctx context.Context, app string, from, to usage.Day) (usage.Names, error) {
	names := noNames()
	err := s.scanUsage(ctx, app, from, to, familyNames, func(_ usage.Day, column string, value []byte) error {
		addName(&names, column, number(value))
		return nil
	})
	return names, err
}

// PutHotUsers replaces the hot users of a process in a day.
func (s Usage) PutHotUsers(ctx context.Context, app string, day usage.Day, shard int, process string,
	users []usage.User) error {
	value, err := json.Marshal(users)
	if err != nil {
		return fmt.Errorf("encode hot users of %s: %w", app, err)
	}
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn(familyHot, process) // an earlier list may name a user who is deleted since
	m.Set(familyHot, process, bigtable.Now(), value)
	if err := s.tables.of(app, allUsers).usage.Apply(ctx, usageKey(app, day, shard), m); err != nil {
		return fmt.Errorf("store hot users of %s: %w", app, err)
	}
	return nil
}

// deletedColumn is the column of the row of a deleted user.
const deletedColumn = "deleted"

// ForgetHotUser removes a user of an app from the hot users, and says in the table up to which
// time their events are deleted, for the processes that still hold some in memory: in the region in which the user
// lives, if the users of the app have regions of their own.
func (s Usage) ForgetHotUser(ctx context.Context, app, region, user string, now, until time.Time) error {
	var err error
	if region == "" {
		err = s.each(app, func(s *Store) error { return s.markHotUser(ctx, app, user, until) })
	} else {
		err = s.In(region).markHotUser(ctx, app, user, until)
	}
	if err == nil {
		err = s.everywhere(app, func(s *Store) error { return s.Usage.DropHotUser(ctx, app, user, now) })
	}
	if err != nil {
		return fmt.Errorf("remove a user of %s from the hot users: %w", app, err)
	}
	return nil
}

// markHotUser comes before the scan, so that a process that writes the user behind it sees the mark.
func (s *Store) markHotUser(ctx context.Context, app, user string, until time.Time) error {
	m := bigtable.NewMutation()
	m.Set(familyHot, deletedColumn, bigtable.Now(), binary.BigEndian.AppendUint64(nil, uint64(until.UnixMilli())))
	return s.tables.of(app, allUsers).usage.Apply(ctx, deletedUserKey(app, user), m)
}

// DropHotUser removes a user of an app from the hot users of one region.
func (s Usage) DropHotUser(ctx context.Context, app, user string, now time.Time) error {
	table := s.tables.of(app, allUsers).usage
	found := map[string]*bigtable.Mutation{}
	var failed error
	// Bigtable may drop a cell some days after its time.
	oldest := usage.DayOf(now) - 2*usage.KeepUsers
	err := table.ReadRows(ctx, bigtable.NewRange(fmt.Sprintf("%s,%s,", app, oldest), app+",:"), func(r bigtable.Row) bool {
		m, changed := bigtable.NewMutation(), false
		for _, item := range r[familyHot] {
			value, err := withoutUser(item.Value, user)
			if failed = errors.Join(failed, err); value != nil {
				column := strings.TrimPrefix(item.Column, familyHot+":")
				m.DeleteTimestampRange(familyHot, column, 0, item.Timestamp+1000)
				m.Set(familyHot, column, item.Timestamp, value) // a later list of the process stays
				changed = true
			}
		}
		if changed {
			found[r.Key()] = m
		}
		return true
	}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(familyHot), bigtable.LatestNFilter(1))))
	for key, m := range found {
		if err == nil {
			err = table.Apply(ctx, key, m)
		}
	}
	return errors.Join(err, failed)
}

// withoutUser returns a list of hot users without one of them, nil if it does not have them.
func withoutUser(list []byte, user string) ([]byte, error) {
	var users []usage.User
	if err := json.Unmarshal(list, &users); err != nil {
		return nil, err
	}
	before := len(users)
	users = slices.DeleteFunc(users, func(u usage.User) bool { return u.Token == user })
	if len(users) == before {
		return nil, nil
	}
	return json.Marshal(users)
}

// Deleted returns the times up to which events of users are deleted, of those of the given users
// whom ForgetHotUser has removed.
func (s Usage) Deleted(ctx context.Context, app string, users []usage.User) (map[string]time.Time, error) {
	of, keys := make(map[string]string, len(users)), make(bigtable.RowList, 0, len(users))
	for _, u := range users {
		key := deletedUserKey(app, u.Token)
		of[key], keys = u.Token, append(keys, key)
	}
	deleted := map[string]time.Time{}
	if len(keys) == 0 {
		return deleted, nil
	}
	err := s.tables.of(app, allUsers).usage.ReadRows(ctx, keys, func(r bigtable.Row) bool {
		for _, item := range r[familyHot] {
			deleted[of[r.Key()]] = time.UnixMilli(number(item.Value))
		}
		return true
	}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(familyHot), bigtable.LatestNFilter(1))))
	if err != nil {
		return nil, fmt.Errorf("read who of the hot users of %s is deleted: %w", app, err)
	}
	return deleted, nil
}

// PutKeyDays stores days on which keys were used. The day is the time of the cell,
// so the latest day stays, in whatever order processes write.
func (s Usage) PutKeyDays(ctx context.Context, app string, days map[string]usage.Day) error {
	m := bigtable.NewMutation()
	for hash, day := range days {
		m.Set(familyKeys, hash, bigtable.Time(day.Time()), []byte(day.String()))
	}
	if err := s.tables.of(app, allUsers).usage.Apply(ctx, usageKeysKey(app), m); err != nil {
		return fmt.Errorf("store the last use of keys of %s: %w", app, err)
	}
	return nil
}

// LastUsed returns the last day on which each key of an app was used, by the key's
// hash. A key that was not used within usage.Keep days is missing.
func (s Usage) LastUsed(ctx context.Context, app string) (map[string]usage.Day, error) {
	row, err := s.tables.of(app, allUsers).usage.ReadRow(ctx, usageKeysKey(app),
		bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(familyKeys), bigtable.LatestNFilter(1))))
	if err != nil {
		return nil, fmt.Errorf("read the last use of keys of %s: %w", app, err)
	}
	days := make(map[string]usage.Day)
	for _, item := range row[familyKeys] {
		hash := strings.TrimPrefix(item.Column, familyKeys+":")
		if days[hash], err = usage.ParseDay(string(item.Value)); err != nil {
			return nil, fmt.Errorf("last use of key %s of %s: %w", hash, app, err)
		}
	}
	return days, nil
}

// Usage returns an app's counts by day.
func (s Usage) Usage(ctx context.Context, app string, from, to usage.Day) (map[usage.Day]usage.Counts, error) {
	days := make(map[usage.Day]usage.Counts)
	err := s.scanUsage(ctx, app, from, to, familyCounts, func(day usage.Day, column string, value []byte) error {
		if of := usageColumns[column]; of != nil { // else of a newer version
			counts := days[day]
			*of(&counts) += number(value)
			days[day] = counts
		}
		return nil
	})
	return days, err
}

// HotUsers returns the users of an app with the most events, wherever they live.
func (s Usage) HotUsers(ctx context.Context, app string, from, to usage.Day) ([]usage.User, error) {
	var all []usage.User
	for _, at := range s.residences(app) {
		err := at.scanUsage(ctx, app, from, to, familyHot, func(_ usage.Day, _ string, value []byte) error {
			var users []usage.User
			err := json.Unmarshal(value, &users)
			all = append(all, users...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return usage.Merge(all), nil
}

// scanUsage calls fn with the newest cell of each column of a family.
func (s *Store) scanUsage(ctx context.Context, app string, from, to usage.Day, family string,
	fn func(day usage.Day, column string, value []byte) error) error {
	var failed error
	rows := bigtable.NewRange(fmt.Sprintf("%s,%s,", app, from), prefixEnd(fmt.Sprintf("%s,%s,", app, to)))
	err := s.tables.of(app, allUsers).usage.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		_, rest, _ := strings.Cut(r.Key(), ",")
		text, _, _ := strings.Cut(rest, ",")
		day, err := usage.ParseDay(text)
		for _, item := range r[family] {
			if err == nil {
				err = fn(day, strings.TrimPrefix(item.Column, family+":"), item.Value)
			}
		}
		if err != nil {
			failed = fmt.Errorf("row %q: %w", r.Key(), err)
		}
		return failed == nil
	}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter(family), bigtable.LatestNFilter(1))))
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("read usage of %s: %w", app, err)
	}
	return nil
}

// number decodes a counter of Bigtable, 0 if it is none.
func number(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}
