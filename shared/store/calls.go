package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// The memory of calls holds the time of each call that SDKs have delivered lately, under
// its user and the ID of the call (event.Event.CallID). The first delivery writes it, before
// it writes the log, and all later ones take it: so they write the same row of the log. The
// rules are those of functions/docs/design/links.md, "A call is one event".

// A call is remembered for 8 days (terraform/bigtable.json). That is longer than the 7 days for
// which Pub/Sub keeps messages, so that a replay of these finds the times of their first
// application.

// maxCalls is the number of calls that Remember asks for at a time.
const maxCalls = 64

// columnCall holds the time of a call: 8 bytes, ms.
const columnCall = "t"

// Call is a call of an SDK with its time.
type Call struct {
	User string
	ID   string
	Time int64 // ms
}

func callKey(app string, c Call) string { return userKey(app, c.User) + c.ID }

// Remember keeps the times of calls that are not remembered yet, and sets each Time to the
// one that is remembered. No call may be there twice. After an error it may be called again.
func (s Calls) Remember(ctx context.Context, app string, calls []Call) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxCalls)
	for i := range calls {
		g.Go(func() error { return s.remember(ctx, app, &calls[i]) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("remember %d calls of %s: %w", len(calls), app, err)
	}
	return nil
}

// remember writes the time unless the row has one; then it reads that. A deletion may remove
// it in between.
func (s *Store) remember(ctx context.Context, app string, c *Call) error {
	table, key := s.tables.of(app, c.User).calls, callKey(app, *c)
	m, known := bigtable.NewMutation(), false
	m.Set(familyCall, columnCall, bigtable.ServerTime, bigEndian(c.Time))
	first := bigtable.NewCondMutation(bigtable.ColumnFilter(columnCall), nil, m)
	for {
		err := retryAtomic(ctx, func() error {
			return table.Apply(ctx, key, first, bigtable.GetCondMutationResult(&known))
		})
		if err != nil || !known {
			return err
		}
		row, err := table.ReadRow(ctx, key, bigtable.RowFilter(bigtable.LatestNFilter(1)))
		if err != nil {
			return err
		}
		for _, item := range row[familyCall] {
			if len(item.Value) != 8 {
				return fmt.Errorf("call %s: %x is no time", key, item.Value)
			}
			c.Time = int64(binary.BigEndian.Uint64(item.Value))
			return nil
		}
	}
}

// Forget removes calls whose remembered time is still that of the call.
func (s Calls) Forget(ctx context.Context, app string, calls []Call) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxCalls)
	for _, c := range calls {
		now := bigEndian(c.Time)
		same := bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.ValueRangeFilter(now, append(now, 0)))
		g.Go(func() error {
			return retryAtomic(ctx, func() error {
				return s.tables.of(app, c.User).calls.Apply(ctx, callKey(app, c), bigtable.NewCondMutation(same, deletion(), nil))
			})
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("forget %d calls of %s: %w", len(calls), app, err)
	}
	return nil
}

// ForgetExcluded forgets the calls of events that the rows of their users exclude. One that a
// deletion covers by its receipt alone stays: another delivery of it, received later, may count.
func (s Calls) ForgetExcluded(ctx context.Context, app string, events []LogEvent, of func(user string) User) error {
	var calls []Call
	for i := range events {
		e := &events[i]
		if e.Call == "" {
			continue
		}
		if row := of(e.User); e.Time <= row.DeletedUntil || row.OptedOut.Has(e.Type) {
			calls = append(calls, Call{User: e.User, ID: e.Call, Time: e.Time})
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return s.Forget(ctx, app, calls)
}

// Known returns those calls that are remembered with the time that they have.
func (s Calls) Known(ctx context.Context, app string, calls []Call) (map[Call]bool, error) {
	known := map[Call]bool{}
	byKey := make(map[string]Call, len(calls))
	for _, keys := range keyChunks(calls, func(c Call) string { return callKey(app, c) }, byKey) {
		err := s.scan(ctx, app, keys, func(c Call) error {
			if byKey[callKey(app, c)] == c {
				known[c] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}

// scan calls fn with calls in the order of their keys.
func (s Calls) scan(ctx context.Context, app string, rows bigtable.RowSet, fn func(Call) error) error {
	err := s.readRows(ctx, s.tables.of(app, allUsers).calls, rows, func(r *rowstream.Row) error {
		key, value := string(r.Key), r.Cells[0].Value // the newest version comes first
		if len(value) != 8 {
			return fmt.Errorf("call %s: %x is no time", key, value)
		}
		user := userOf(key)
		return fn(Call{User: user, ID: key[len(userKey(app, user)):], Time: int64(binary.BigEndian.Uint64(value))})
	})
	if err != nil {
		return fmt.Errorf("read the calls of %s: %w", app, err)
	}
	return nil
}

// ForgetUser forgets all calls of a user.
func (s Calls) ForgetUser(ctx context.Context, app, user string) error {
	return s.purge(ctx, app, user, math.MaxInt64)
}

// purge forgets the calls of a user up to a time. A call that is remembered again in between
// has a later time, and stays.
func (s Calls) purge(ctx context.Context, app, user string, until int64) error {
	var old []Call
	err := s.ofUser(ctx, app, user, func(c Call) error {
		if c.Time <= until {
			old = append(old, c)
		}
		return nil
	})
	if err != nil || len(old) == 0 {
		return err
	}
	return s.Forget(ctx, app, old)
}

func (s Calls) ofUser(ctx context.Context, app, user string, fn func(Call) error) error {
	prefix := userKey(app, user)
	return s.scan(ctx, app, bigtable.NewRange(prefix, prefixEnd(prefix)), fn)
}

// copyFrom copies the calls of a user that another region remembers, as they are. What this
// region remembers already is the same, or was deleted.
func (s Calls) copyFrom(ctx context.Context, from *Store, app, user string) error {
	var all []Call
	err := from.Calls.ofUser(ctx, app, user, func(c Call) error {
		all = append(all, c)
		return nil
	})
	if err != nil || len(all) == 0 {
		return err
	}
	return s.Remember(ctx, app, all)
}
