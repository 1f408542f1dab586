package measure

import (
	"context"
	"sync"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// target receives the profiles of one recompute.
type target struct {
	c       *client
	writes  bool
	version int64 // of the strategy, in the profiles

	mu    sync.Mutex
	total totals
}

// totals are the sums of a recompute.
type totals struct{ users, events int64 }

func newTarget(c *client, writes bool) *target {
	c.version++ // like a change of the strategy
	return &target{c: c, writes: writes, version: c.version}
}

func (t *target) add(o totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total.users += o.users
	t.total.events += o.events
}

// output collects the encoded profiles of one worker's users. The readers of logs
// use it; the engine's recompute writes its profiles itself.
type output struct {
	target *target
	total  totals
	buffer []byte
	writes []store.ProfileWrite
}

func (t *target) output() *output { return &output{target: t} }

// add adds the profile of a user whose events are all scored.
func (o *output) add(user string, sc *affinity.Scorer, events int) error {
	o.total.users++
	o.total.events += int64(events)
	start := len(o.buffer)
	o.buffer = sc.AppendProfile(o.buffer, o.target.version)
	if !o.target.writes {
		o.buffer = o.buffer[:0]
		return nil
	}
	value := o.buffer[start:]
	brief, err := summary(value)
	o.writes = append(o.writes, store.ProfileWrite{
		// Users in these tables have no row before their first profile.
		User: user, Row: store.User{Ticket: 1}, Version: o.target.version,
		Value: value[:len(value):len(value)], Summary: brief,
	})
	return err
}

// summary is a stored profile without its affinities.
func summary(value []byte) ([]byte, error) {
	p, err := affinity.ParseProfile(value, 1)
	if err != nil {
		return nil, err
	}
	p.Affinities = nil
	return p.AppendBinary(nil), nil
}

// flush writes the profiles of a shard.
func (o *output) flush(ctx context.Context) error {
	o.target.add(o.total)
	o.total = totals{}
	if len(o.writes) == 0 {
		return nil
	}
	err := o.target.c.store.Users.WriteProfiles(ctx, appID, o.writes)
	o.buffer, o.writes = o.buffer[:0], o.writes[:0]
	return err
}

// sum is the sum of a profile's scores.
func sum(p affinity.Profile) float64 {
	s := 0.0
	for _, a := range p.Affinities {
		s += a.Scores[0]
	}
	return s
}
