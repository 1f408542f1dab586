package measure

import (
	"context"
	"sync"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// target is where the profiles of one recompute go.
type target struct {
	c       *client
	writes  bool
	version int64 // of the strategy that the profiles say they are of

	mu    sync.Mutex
	total totals
}

// totals are what a recompute says it has done.
type totals struct{ users, events int64 }

func newTarget(c *client, writes bool) *target {
	c.version++ // as after a change of the strategy
	return &target{c: c, writes: writes, version: c.version}
}

func (t *target) add(o totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total.users += o.users
	t.total.events += o.events
}

// output collects the profiles of one worker's users, encoded. The readers of logs use it; a recompute from histories writes by
// itself.
type output struct {
	target *target
	total  totals
	buffer []byte
	writes []store.ProfileWrite
}

func (t *target) output() *output { return &output{target: t} }

// add takes the profile of a user whose events have all been scored.
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
		// Users of these tables have no row before the first profile is written.
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
	err := o.target.c.store.WriteProfiles(ctx, appID, o.writes)
	o.buffer, o.writes = o.buffer[:0], o.writes[:0]
	return err
}

// sum adds the scores of a profile up.
func sum(p affinity.Profile) float64 {
	s := 0.0
	for _, a := range p.Affinities {
		s += a.Scores[0]
	}
	return s
}
