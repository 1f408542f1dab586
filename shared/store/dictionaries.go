package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"
)

const columnTerms = "d"

// dictionaryKey sorts the newest generation of an app first. No generation is negative.
func dictionaryKey(app string, generation int64) string {
	return fmt.Sprintf("%s,%016x", app, math.MaxInt64-generation)
}

func parseDictionaryKey(key string) (generation int64, ok bool) {
	_, digits, _ := strings.Cut(key, ",")
	n, err := strconv.ParseInt(digits, 16, 64)
	return math.MaxInt64 - n, err == nil && n >= 0
}

// Dictionaries returns the generations of an app's dictionaries, the newest first, at
// most limit.
func (s Dictionaries) Dictionaries(ctx context.Context, app string, limit int) ([]int64, error) {
	var generations []int64
	err := s.tables.of(app, allUsers).terms.ReadRows(ctx, bigtable.PrefixRange(app+","), func(r bigtable.Row) bool {
		if g, ok := parseDictionaryKey(r.Key()); ok {
			generations = append(generations, g)
		}
		return true
	}, keysOnly, bigtable.LimitRows(int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("list dictionaries of %s: %w", app, err)
	}
	return generations, nil
}

// ReadDictionary returns the stored form of a dictionary, nil if it does not exist.
func (s Dictionaries) ReadDictionary(ctx context.Context, app string, generation int64) ([]byte, error) {
	row, err := s.tables.of(app, allUsers).terms.ReadRow(ctx, dictionaryKey(app, generation), newestCells)
	if err != nil {
		return nil, fmt.Errorf("read dictionary %d of %s: %w", generation, app, err)
	}
	for _, item := range row[familyTerms] {
		return item.Value, nil
	}
	return nil, nil
}

// CreateDictionary stores a dictionary unless the app has one of that generation. It
// reports whether it stored it; false may also mean that it did, and the first answer
// was lost. The caller must read back what is stored.
func (s Dictionaries) CreateDictionary(ctx context.Context, app string, generation int64, value []byte) (bool, error) {
	set := bigtable.NewMutation()
	set.Set(familyTerms, columnTerms, bigtable.ServerTime, value)
	var exists bool
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, allUsers).terms.Apply(ctx, dictionaryKey(app, generation),
			bigtable.NewCondMutation(bigtable.FamilyFilter(familyTerms), nil, set), bigtable.GetCondMutationResult(&exists))
	})
	if err != nil {
		return false, fmt.Errorf("store dictionary %d of %s: %w", generation, app, err)
	}
	return !exists, nil
}

// DeleteDictionary deletes a dictionary. Blocks that name it then count as damaged.
func (s Dictionaries) DeleteDictionary(ctx context.Context, app string, generation int64) error {
	m := bigtable.NewMutation()
	m.DeleteRow()
	if err := s.tables.of(app, allUsers).terms.Apply(ctx, dictionaryKey(app, generation), m); err != nil {
		return fmt.Errorf("delete dictionary %d of %s: %w", generation, app, err)
	}
	return nil
}
