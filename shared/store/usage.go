package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/usage"
)

// usageKey is the key of one shard of an app's day. Keys of a day begin with a
// digit, so the row of the app's keys sorts behind all days.
func usageKey(app string, day usage.Day, shard int) string {
	return fmt.Sprintf("%s,%s,%02d", app, day, shard)
}

func usageKeysKey(app string) string { return app + ",keys" }

// usageColumns are the columns of counts.
var usageColumns = map[string]func(*usage.Counts) *int64{
	"events":  func(c *usage.Counts) *int64 { return &c.Events },
	"refused": func(c *usage.Counts) *int64 { return &c.Refused },
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
	m.Set(familyHot, process, bigtable.Now(), value)
	if err := s.tables.of(app, allUsers).usage.Apply(ctx, usageKey(app, day, shard), m); err != nil {
		return fmt.Errorf("store hot users of %s: %w", app, err)
	}
	return nil
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

// HotUsers returns the users of an app with the most events.
func (s Usage) HotUsers(ctx context.Context, app string, from, to usage.Day) ([]usage.User, error) {
	var all []usage.User
	err := s.scanUsage(ctx, app, from, to, familyHot, func(_ usage.Day, _ string, value []byte) error {
		var users []usage.User
		err := json.Unmarshal(value, &users)
		all = append(all, users...)
		return err
	})
	return usage.Merge(all), err
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
