package migration

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// batchRows and batchBytes bound what is copied by one request.
	batchRows  = 1000
	batchBytes = 4 << 20
	// batchesAhead are read or written while another is.
	batchesAhead = 3
)

// batch is some rows that follow each other.
type batch struct {
	entries []store.Entry
	after   string // the place behind them
	done    chan struct{}
	err     error
	result  job.Progress
}

// backfill copies a stretch of the log to the other schema.
func (s *sweep) backfill(ctx context.Context) error {
	if !s.app.Log.Writes(s.to) {
		return fmt.Errorf("%w: %s is not written", job.ErrFailed, s.to)
	}
	limiter, err := s.limiter(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ordered, read := make(chan *batch, batchesAhead), make(chan error, 1)
	go func() {
		defer close(ordered)
		read <- s.readBatches(ctx, limiter, ordered)
	}()
	err = s.await(ordered)
	stop()
	for b := range ordered { // those under way: nothing is written after this has returned
		<-b.done
	}
	if ended := <-read; err == nil {
		err = ended
	}
	return s.ended(err)
}

// await takes batches into the result in their order, until one has failed or the
// time is over.
func (s *sweep) await(ordered <-chan *batch) error {
	for b := range ordered {
		<-b.done
		if b.err != nil {
			return b.err
		}
		s.result.Visited += b.result.Visited
		s.result.Events += b.result.Events
		s.result.Changed += b.result.Changed
		s.result.Faulty += b.result.Faulty
		room := max(0, job.MaxFaults-len(s.result.Faults))
		s.result.Faults = append(s.result.Faults, b.result.Faults[:min(room, len(b.result.Faults))]...)
		if err := s.reached(b.after); err != nil {
			return err
		}
	}
	return nil
}

// limiter is this task's share of the rate, which the shards in work have in
// common. Its burst is what a batch may hold, a second's worth at most.
func (s *sweep) limiter(ctx context.Context) (*rate.Limiter, error) {
	if s.job.Rate == 0 {
		return rate.NewLimiter(rate.Inf, batchRows), nil
	}
	open, err := s.jobs.ShardsIn(ctx, s.app.ID, s.job.ID, job.ShardOpen, max(1, s.job.Lanes))
	if err != nil {
		return nil, fmt.Errorf("look for the shards of %s: %w", s.job.ID, err)
	}
	share := float64(s.job.Rate) / float64(max(1, len(open)))
	return rate.NewLimiter(rate.Limit(share), min(batchRows, max(1, int(share)))), nil
}

// readBatches reads the stretch and has each batch copied while the next is read.
func (s *sweep) readBatches(ctx context.Context, limiter *rate.Limiter, ordered chan<- *batch) error {
	next, size, user := &batch{}, 0, s.part.Within()
	send := func() error {
		b := next
		b.after, b.done = b.entries[len(b.entries)-1].After(), make(chan struct{})
		next, size = &batch{}, 0
		if err := limiter.WaitN(ctx, len(b.entries)); err != nil {
			return fmt.Errorf("wait to copy more: %w", err)
		}
		select {
		case ordered <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		go func() {
			defer close(b.done)
			b.err = s.copy(ctx, b)
		}()
		return nil
	}
	err := s.log.Scan(ctx, s.from, s.part, s.since, func(e store.Entry) error {
		if e.Fault == nil && e.User != user {
			user = e.User
			next.result.Visited++
		}
		next.entries = append(next.entries, e)
		if size += e.Size() + len(e.Original); len(next.entries) < limiter.Burst() && size < batchBytes {
			return nil
		}
		return send()
	})
	if err == nil && len(next.entries) > 0 {
		err = send()
	}
	return err
}

// copy writes the rows of a batch in the other schema. Afterwards it looks whether
// their users have been deleted: the purge may have come by before the copies.
func (s *sweep) copy(ctx context.Context, b *batch) error {
	d := newDecoder()
	events := make([]store.LogEvent, 0, len(b.entries))
	keys := make([]string, 0, len(b.entries))
	for i := range b.entries {
		ev, err := d.event(b.entries[i])
		if err != nil {
			s.fault(&b.result, "does not decode: %v", err)
			continue
		}
		events, keys = append(events, ev), append(keys, b.entries[i].Key())
	}
	b.result.Events = int64(len(b.entries))
	if len(events) == 0 {
		return nil
	}
	if err := s.fence(ctx); err != nil {
		return err
	}
	if err := s.log.Copy(ctx, s.to, events); err != nil {
		return err
	}
	gone, err := s.deleted(ctx, events[0].User, events[len(events)-1].User)
	if err != nil {
		return err
	}
	var buried []string
	for i := range events {
		if gone.covers(&events[i]) {
			buried = append(buried, keys[i])
		}
	}
	b.result.Changed = int64(len(events) - len(buried))
	return s.log.DeleteEntries(ctx, s.to, buried)
}

// tombstones are those of some users, in ms.
type tombstones map[string]int64

func (t tombstones) covers(e *store.LogEvent) bool {
	until := t[e.User]
	return until != 0 && e.Time <= until
}

// deleted are the tombstones of the users from one to another.
func (s *sweep) deleted(ctx context.Context, first, last string) (tombstones, error) {
	gone := tombstones{}
	err := s.store.ScanTombstones(ctx, s.app.ID, first, last, func(user string, until int64) error {
		gone[user] = until
		return nil
	})
	return gone, err
}
