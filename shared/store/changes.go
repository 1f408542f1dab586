package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// The list of changes says whose stored profile may have changed, and when. Queries
// over many profiles read it: they know the users whose profiles they have seen, and
// ask who changed since. Package profile says when a writer adds an entry.
//
// Keys of one app begin with one of changeSalts salts, so that the writes of an instant
// reach as many places of the table. All entries of a user have the same salt.

// changeSalts is the number of salts: one hex digit.
const changeSalts = 16

// ChangeDays is how long entries are kept. Bigtable drops them then; a local stack
// calls Changes.Drop.
const ChangeDays = 9

// ChangeSlot is a stretch of SlotWidth of time, numbered from 1970.
type ChangeSlot int64

// SlotWidth is how long a slot is.
const SlotWidth = 10 * time.Second

// SlotOf returns the slot of an instant. Before 1970 it is 0.
func SlotOf(t time.Time) ChangeSlot {
	return ChangeSlot(max(t.Unix(), 0) / int64(SlotWidth/time.Second))
}

// cutMargin is how much earlier than its clock a process asks for changes: 5 s for which
// a write may take after its entry, and 10 s by which two clocks may differ.
const cutMargin = 15 * time.Second

// CutAt returns the slot since which a process must ask for changes that has begun to read
// stored profiles at an instant of its clock. A user who is not listed since then still has
// the profile that it has read.
func CutAt(began time.Time) ChangeSlot { return SlotOf(began.Add(-cutMargin)) }

// Start returns the first instant of a slot.
func (s ChangeSlot) Start() time.Time { return time.Unix(int64(s)*int64(SlotWidth/time.Second), 0) }

// ChangesReach reports whether the list still has all entries from a slot on, at an
// instant, and the latest slot of its readers is not ahead of it. It leaves an hour for
// reading entries and for clocks that differ. A slot that is ahead is that of a reader whose
// clock was wrong: the entries since then lie before it.
func ChangesReach(since, latest ChangeSlot, now time.Time) bool {
	return since > SlotOf(now.Add(time.Hour-ChangeDays*24*time.Hour)) && latest <= SlotOf(now)
}

// Add adds users of an app to the list of a slot. A user who is there already
// stays there.
func (s Changes) Add(ctx context.Context, app string, slot ChangeSlot, users []string) error {
	b := newBulk(ctx)
	b.retry = true
	m := bigtable.NewMutation()
	m.Set(familyChange, "", bigtable.Time(slot.Start()), nil)
	for _, user := range users {
		if err := b.add(s.tables.of(app, user).changes, changeKey(app, user, slot), m, 0); err != nil {
			return fmt.Errorf("list changes of %s: %w", app, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("list changes of %s: %w", app, err)
	}
	return nil
}

// List returns the users who are listed in a slot or a later one, each with the
// latest of their slots. If there are more than limit it stops, and more is true: the
// users are then some of them, in no order. A limit of 0 is none.
func (s Changes) List(ctx context.Context, app string, since ChangeSlot,
	limit int) (users map[string]ChangeSlot, more bool, err error) {
	users = map[string]ChangeSlot{}
	ranges := make(bigtable.RowRangeList, changeSalts)
	for salt := range ranges {
		prefix := changePrefix(app, salt)
		ranges[salt] = bigtable.NewRange(prefix+slotKey(since), prefixEnd(prefix))
	}
	err = s.readRows(ctx, s.tables.of(app, allUsers).changes, ranges, func(r *rowstream.Row) error {
		slot, user, err := parseChange(app, r.Key)
		if err != nil {
			return err
		}
		before, listed := users[string(user)]
		if !listed && limit > 0 && len(users) == limit {
			return errMoreChanges
		}
		if !listed || slot > before {
			users[string(user)] = slot
		}
		return nil
	}, keysOnly)
	if errors.Is(err, errMoreChanges) {
		return users, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read changes of %s: %w", app, err)
	}
	return users, false, nil
}

// errMoreChanges ends a read that has met too many users.
var errMoreChanges = errors.New("more users than the limit")

// Drop deletes the entries of an app in slots before one, and returns how many.
func (s Changes) Drop(ctx context.Context, app string, before ChangeSlot) (int, error) {
	table, n := s.tables.of(app, allUsers).changes, 0
	for salt := range changeSalts {
		prefix := changePrefix(app, salt)
		for {
			keys, err := scanKeys(ctx, table, bigtable.NewRange(prefix, prefix+slotKey(before)), bulkRows)
			if err == nil && len(keys) > 0 {
				err = deleteKeys(ctx, table, keys)
			}
			if err != nil {
				return n, fmt.Errorf("drop changes of %s: %w", app, err)
			}
			if n += len(keys); len(keys) < bulkRows {
				break
			}
		}
	}
	return n, nil
}

func changePrefix(app string, salt int) string { return fmt.Sprintf("%s,%x,", app, salt) }

func slotKey(s ChangeSlot) string { return fmt.Sprintf("%08x", int64(s)) }

func changeKey(app, user string, slot ChangeSlot) string {
	h := fnv.New32a()
	h.Write([]byte(user))
	return changePrefix(app, int(h.Sum32()%changeSalts)) + slotKey(slot) + "," + user
}

// parseChange returns the slot and the user in a key of an app. The user aliases it.
func parseChange(app string, key []byte) (ChangeSlot, []byte, error) {
	const digits = 8
	from := len(app) + len(",0,")
	if len(key) <= from+digits || key[from+digits] != ',' {
		return 0, nil, fmt.Errorf("row %q: not of the form app,salt,slot,user", key)
	}
	slot, err := strconv.ParseInt(string(key[from:from+digits]), 16, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("row %q: %w", key, err)
	}
	return ChangeSlot(slot), key[from+digits+1:], nil
}
