package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"cloud.google.com/go/bigtable"
)

// UserOrder compares users as the keys of their rows do.
func UserOrder(a, b string) int { return strings.Compare(a+",", b+",") }

// ScanUsers reads the rows of the users from one up to but not another, in the
// order of their keys; empty means open. limit bounds how many, 0 does not. Rows
// are streamed, and may be kept; an error of fn ends the reading and is returned.
func (s *Store) ScanUsers(ctx context.Context, app, from, to string, limit int, parts UserParts, fn func(user string, row User) error) error {
	opts := []bigtable.ReadOption{userFilters[parts]}
	if limit > 0 {
		opts = append(opts, bigtable.LimitRows(int64(limit)))
	}
	var failed error
	err := s.tables.of(app, allUsers).users.ReadRows(ctx, usersBetween(app, from, to), func(r bigtable.Row) bool {
		var row User
		if row, failed = parseUser(r); failed == nil {
			failed = fn(userOf(r.Key()), row)
		}
		return failed == nil
	}, opts...)
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("read users of %s: %w", app, err)
	}
	return nil
}

// ScanUserKeys does what ScanUsers does for users alone: of each row one empty
// cell is sent. The user may be kept.
func (s *Store) ScanUserKeys(ctx context.Context, app, from, to string, fn func(user string) error) error {
	if err := s.scanUserKeys(ctx, app, usersBetween(app, from, to), fn); err != nil {
		return fmt.Errorf("list users of %s: %w", app, err)
	}
	return nil
}

func (s *Store) scanUserKeys(ctx context.Context, app string, rows bigtable.RowRange, fn func(user string) error, opts ...bigtable.ReadOption) error {
	var failed error
	err := s.tables.of(app, allUsers).users.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		failed = fn(userOf(r.Key()))
		return failed == nil
	}, append(opts, keysOnly)...)
	return errors.Join(err, failed)
}

// ScanTombstones tells the users from one to another, both included, who were
// deleted, and until when (ms).
func (s *Store) ScanTombstones(ctx context.Context, app, from, to string, fn func(user string, until int64) error) error {
	var failed error
	rows := bigtable.NewRange(userKey(app, from), prefixEnd(userKey(app, to)))
	err := s.tables.of(app, allUsers).users.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		var row User
		if row, failed = parseUser(r); failed == nil && row.DeletedUntil != 0 {
			failed = fn(userOf(r.Key()), row.DeletedUntil)
		}
		return failed == nil
	}, bigtable.RowFilter(bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyState, columnDeleted, columnDeleted+"\x00"), bigtable.LatestNFilter(1))))
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("read tombstones of %s: %w", app, err)
	}
	return nil
}

// SampleUsers chooses up to n users at random, all with the same chance, from
// the first most users beginning at a random one of the places where Bigtable
// cuts the table, and going on at the app's first user after the last. An app of
// at most that many users is sampled from whole, and one of at most n users is
// the sample. The sample is in no order.
func (s *Store) SampleUsers(ctx context.Context, app string, n, most int, rnd *rand.Rand) ([]string, error) {
	cuts, err := s.tables.of(app, allUsers).users.SampleRowKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("sample users of %s: %w", app, err)
	}
	all := usersBetween(app, "", "")
	starts := []string{app + ","}
	for _, cut := range cuts {
		if all.Contains(cut) { // a cut need not be the key of a row
			starts = append(starts, cut)
		}
	}
	start := starts[rnd.IntN(len(starts))]
	r := reservoir{n: n, rnd: rnd}
	for _, part := range []bigtable.RowRange{bigtable.NewRange(start, prefixEnd(app+",")), bigtable.NewRange(app+",", start)} {
		if r.seen >= most {
			break
		}
		if err := s.scanUserKeys(ctx, app, part, r.add, bigtable.LimitRows(int64(most-r.seen))); err != nil {
			return nil, fmt.Errorf("sample users of %s: %w", app, err)
		}
	}
	return r.sample, nil
}

// reservoir keeps n of the users that it has seen, each with the same chance.
type reservoir struct {
	n, seen int
	rnd     *rand.Rand
	sample  []string
}

func (r *reservoir) add(user string) error {
	r.seen++
	if len(r.sample) < r.n {
		r.sample = append(r.sample, user)
	} else if i := r.rnd.IntN(r.seen); i < r.n {
		r.sample[i] = user
	}
	return nil
}
