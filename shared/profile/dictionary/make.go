package dictionary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

const (
	// age is the youngest age of a dictionary that another one may follow.
	age = 24 * time.Hour
	// minUsers is the number of users of a sample from which it stands for an app.
	minUsers = 20
	// A dictionary must make the blocks of users who had no part in it smaller by this
	// share: the first by a twentieth, another one by a tenth.
	firstGain, nextGain = 0.05, 0.1
	// maxGenerations is how many dictionaries an app keeps at most.
	maxGenerations = 64
	// margin is how much longer than the retention a dictionary stays: clocks differ, and
	// events are up to some minutes ahead.
	margin = 48 * time.Hour
)

// User is a user of a sample with events in the order of their log.
type User struct {
	Token  string
	Events []affinity.Event
}

// Generation returns the number of a dictionary that is made at a time: hours. So hardly
// a number is given twice, even after a dictionary was lost or restored from a backup: a
// block holds the checksum of its dictionary, too. It takes 3 bytes in a block.
func Generation(at time.Time) int64 { return at.Unix() / 3600 }

func madeAt(generation int64) time.Time { return time.Unix(generation*3600, 0) }

// Renew makes the next dictionary of an app from a sample of its users, if the newest one
// is a day old and another one pays, and deletes those that no block in the window can
// name any more. It reports whether it made one. If another process made one at the same
// time, that one counts.
func (c *Cache) Renew(ctx context.Context, app string, retentionDays int,
	sample func(context.Context) ([]User, error)) (bool, error) {
	generations, err := c.store.Dictionaries(ctx, app, maxGenerations+maxGenerations)
	if err != nil {
		return false, err
	}
	now := c.now()
	if len(generations) > 0 && now.Sub(madeAt(generations[0])) < age {
		return false, nil
	}
	users, err := sample(ctx)
	if err != nil {
		return false, fmt.Errorf("sample users of %s: %w", app, err)
	}
	current, err := c.look(ctx, app, nil)
	if err != nil {
		return false, err
	}
	next := choose(users, current, Generation(now))
	if next == nil {
		return false, c.drop(ctx, app, retentionDays, generations)
	}
	if _, err := c.store.CreateDictionary(ctx, app, next.Generation(), next.AppendBinary(nil)); err != nil {
		return false, err
	}
	stored, err := c.look(ctx, app, nil) // of this process or another one
	if err != nil {
		return false, err
	}
	c.newest.Set(app, stored)
	c.log.LogAttrs(ctx, slog.LevelInfo, "a dictionary is made", slog.String("app", app),
		slog.Int64("generation", next.Generation()),
		slog.Int("terms", next.Len()), slog.Int("bytes", next.Bytes()), slog.Int("users", len(users)))
	return true, c.drop(ctx, app, retentionDays, append([]int64{next.Generation()}, generations...))
}

// drop deletes dictionaries. Blocks name the newest dictionary of the time of their fold.
// So once the next one is older than the retention, all events of such blocks have left
// the window. Without a retention, or with very many dictionaries, the oldest goes, and
// blocks that name it cost a reading of the log.
func (c *Cache) drop(ctx context.Context, app string, retentionDays int, generations []int64) error {
	kept := c.now().Add(-margin).AddDate(0, 0, -retentionDays)
	var failed error
	for i := 1; i < len(generations); i++ {
		if i >= maxGenerations || retentionDays > 0 && madeAt(generations[i-1]).Before(kept) {
			failed = errors.Join(failed, c.store.DeleteDictionary(ctx, app, generations[i]))
		}
	}
	return failed
}

// choose returns the dictionary of a sample, nil if it does not pay. Half of the users
// make one that is judged by the blocks of the others.
func choose(users []User, current *history.Dictionary, generation int64) *history.Dictionary {
	if len(users) < minUsers {
		return nil
	}
	all, half := history.NewVocabulary(), history.NewVocabulary()
	var judges []User
	for i, u := range users {
		for _, e := range u.Events {
			if all.Add(u.Token, e); i%2 == 0 {
				half.Add(u.Token, e)
			}
		}
		if i%2 == 1 {
			judges = append(judges, u)
		}
	}
	gain := firstGain
	if current != nil {
		gain = nextGain
	}
	if float64(blockBytes(judges, half.Dictionary(generation, history.Limits{}))) > (1-gain)*float64(
		blockBytes(judges, current)) {
		return nil
	}
	return all.Dictionary(generation, history.Limits{})
}

// blockBytes returns the size of the blocks of users with a dictionary, which may be nil.
func blockBytes(users []User, d *history.Dictionary) int {
	size, b, buffer := 0, history.NewBuilder(), []byte(nil)
	b.Use(d)
	for _, u := range users {
		for _, e := range u.Events {
			if e.ObjectIDs = nil; !b.Add(e) {
				buffer = b.AppendBlock(buffer[:0])
				size += len(buffer)
				b.Add(e)
			}
		}
		if b.Len() > 0 {
			buffer = b.AppendBlock(buffer[:0])
			size += len(buffer)
		}
	}
	return size
}
