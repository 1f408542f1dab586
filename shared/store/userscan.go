package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// UserOrder compares users as the keys of their rows do: "a+b" comes before "a".
func UserOrder(a, b string) int { return segment.TokenOrder(a, b) }

// ScanUsers streams the rows of the users from one user up to, but not including,
// another, in the order of their keys. An empty end is open. limit 0 means no
// limit. fn may keep the rows. ScanUsers returns the first error from fn.
func (s Users) ScanUsers(ctx context.Context, app, from, to string, limit int, parts UserParts,
	fn func(user string, row User) error) error {
	opts := []bigtable.ReadOption{userFilters[parts]}
	if limit > 0 {
		opts = append(opts, bigtable.LimitRows(int64(limit)))
	}
	err := s.readRows(ctx, s.tables.of(app, allUsers).users, usersBetween(app, from, to), func(r *rowstream.Row) error {
		row, err := keepUser(r, parts)
		if err != nil {
			return err
		}
		return fn(userOf(string(r.Key)), row)
	}, opts...)
	if err != nil {
		return fmt.Errorf("read users of %s: %w", app, err)
	}
	return nil
}

// ScanUserKeys is ScanUsers for user tokens alone. Bigtable sends one empty cell of
// each row.
func (s Users) ScanUserKeys(ctx context.Context, app, from, to string, fn func(user string) error) error {
	if err := s.scanUserKeys(ctx, app, usersBetween(app, from, to), fn); err != nil {
		return fmt.Errorf("list users of %s: %w", app, err)
	}
	return nil
}

// ListUsers returns up to limit users whose tokens begin with prefix, in the order of
// their keys, from the first one behind the user after; "" begins with the first of all.
// Rows remain of users without events: they are among them.
func (s Users) ListUsers(ctx context.Context, app, prefix, after string, limit int) ([]string, error) {
	var users []string
	err := s.everywhere(app, func(s *Store) error { // the users of an app that moves are in two regions, too
		there, err := s.listUsers(ctx, app, prefix, after, limit)
		users = append(users, there...)
		return err
	})
	slices.SortFunc(users, UserOrder)
	users = slices.Compact(users)
	return users[:min(limit, len(users))], err
}

func (s *Store) listUsers(ctx context.Context, app, prefix, after string, limit int) ([]string, error) {
	first, end := app+","+prefix, prefixEnd(app+","+prefix)
	if after != "" {
		first = max(first, prefixEnd(userKey(app, after)))
	}
	if first >= end {
		return nil, nil
	}
	users := make([]string, 0, limit)
	err := s.scanUserKeys(ctx, app, bigtable.NewRange(first, end), func(user string) error {
		users = append(users, user)
		return nil
	}, bigtable.LimitRows(int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("list users of %s: %w", app, err)
	}
	return users, nil
}

func (s *Store) scanUserKeys(ctx context.Context, app string, rows bigtable.RowRange, fn func(user string) error,
	opts ...bigtable.ReadOption) error {
	return s.readRows(ctx, s.tables.of(app, allUsers).users, rows, func(r *rowstream.Row) error {
		return fn(userOf(string(r.Key)))
	}, append(opts, keysOnly)...)
}

// ScanExcluded calls fn for each user from one user to another, both included, who was
// deleted or has opted out, or has said what they grant, with these parts of their row.
func (s Users) ScanExcluded(ctx context.Context, app, from, to string, fn func(user string, row User) error) error {
	rows := bigtable.NewRange(userKey(app, from), prefixEnd(userKey(app, to)))
	newest := bigtable.ChainFilters(interleave([]bigtable.Filter{
		column(familyState, columnDeleted), column(familyState, columnExcluded),
	}), bigtable.LatestNFilter(1))
	users := s.tables.of(app, allUsers).users
	err := s.readRows(ctx, users, rows, func(r *rowstream.Row) error {
		row, err := keepUser(r, UserState)
		if err != nil || row.DeletedUntil == 0 && len(row.Consents) == 0 { // an opt-out raises it, too
			return err
		}
		return fn(userOf(string(r.Key)), row)
	}, bigtable.RowFilter(newest))
	if err != nil {
		return fmt.Errorf("read tombstones of %s: %w", app, err)
	}
	return nil
}

// Sample is a random sample of the users of an app.
type Sample struct {
	Users []string // in no order
	// Read is how many users the sample was chosen from. All reports that these are
	// all users of the app. Otherwise they are a stretch in the order of their rows,
	// from the user First to the user Last; it may go on after the app's last user with
	// the first. Of users who live in several regions there is a stretch in each, and First and Last are empty.
	Read        int
	All         bool
	First, Last string
}

// SampleUsers returns up to n random users. It starts at a random key among those
// at which Bigtable splits the table, reads up to maxRead users, and continues after
// the app's last user with the first. Each user that it reads has the same chance. If users live in several regions, it
// does so in each, and no region takes the place of another one.
func (s Users) SampleUsers(ctx context.Context, app string, n, maxRead int, rnd *rand.Rand) (Sample, error) {
	homes, r, all := s.residences(app), &Reservoir{Size: n, Rand: rnd}, true
	for i, at := range homes {
		most := r.seen + (maxRead-r.seen)/(len(homes)-i)
		sample, err := at.sampleUsers(ctx, app, most, r)
		if err != nil || len(homes) == 1 {
			return sample, err
		}
		all = all && sample.All
	}
	users := slices.Compact(slices.Sorted(slices.Values(r.Users))) // one may have moved in between
	return Sample{Users: users, Read: r.seen, All: all}, nil
}

// sampleUsers shows users of a region to a reservoir until it has seen most.
func (s *Store) sampleUsers(ctx context.Context, app string, most int, r *Reservoir) (Sample, error) {
	cuts, err := s.tables.of(app, allUsers).users.SampleRowKeys(ctx)
	if err != nil {
		return Sample{}, fmt.Errorf("sample users of %s: %w", app, err)
	}
	all := usersBetween(app, "", "")
	starts := []string{app + ","}
	for _, cut := range cuts {
		if all.Contains(cut) { // a cut need not be the key of a row
			starts = append(starts, cut)
		}
	}
	start := starts[r.Rand.IntN(len(starts))]
	sample, before := Sample{All: true}, r.seen
	add := func(user string) error {
		if r.seen == most {
			sample.All = false // one user more than it may read
			return nil
		}
		if r.seen == before {
			sample.First = strings.Clone(user)
		}
		sample.Last = user
		r.Add(user)
		return nil
	}
	parts := []bigtable.RowRange{bigtable.NewRange(start, prefixEnd(app+",")), bigtable.NewRange(app+",", start)}
	for _, part := range parts {
		if !sample.All {
			break
		}
		if err := s.scanUserKeys(ctx, app, part, add, bigtable.LimitRows(int64(most-r.seen+1))); err != nil {
			return Sample{}, fmt.Errorf("sample users of %s: %w", app, err)
		}
	}
	sample.Users, sample.Read, sample.Last = r.Users, r.seen, strings.Clone(sample.Last)
	return sample, nil
}

// Reservoir keeps a random sample of the users that it has seen, at most Size:
// each user has the same chance.
type Reservoir struct {
	Size  int
	Rand  *rand.Rand
	Users []string
	seen  int
}

// Add shows the reservoir another user. It retains the token.
func (r *Reservoir) Add(user string) {
	r.seen++
	if len(r.Users) < r.Size {
		r.Users = append(r.Users, user)
	} else if i := r.Rand.IntN(r.seen); i < r.Size {
		r.Users[i] = user
	}
}
