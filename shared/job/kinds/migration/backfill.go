package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/time/rate"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// batchRows and batchBytes bound what one request copies.
	batchRows  = 1000
	batchBytes = 4 << 20
	// batchesAhead is how many batches may be in work while await waits for an
	// earlier one.
	batchesAhead = 3
)

// batch is a run of consecutive rows.
type batch struct {
	entries []store.Entry
	after   string // the place behind the last row
	done    chan struct{}
	err     error
	counts  Counts
	faults  []string
}

// backfill copies a range of the log to the other schema.
func (p *pass) backfill(ctx context.Context) error {
	if !p.app.Log.Writes(p.to) {
		return fmt.Errorf("%w: %s is not written", job.ErrFailed, p.to)
	}
	limiter, err := p.limiter(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ordered, read := make(chan *batch, batchesAhead), make(chan error, 1)
	go func() {
		defer close(ordered)
		read <- p.readBatches(ctx, limiter, ordered)
	}()
	err = p.await(ordered)
	stop()
	for b := range ordered { // wait for the copies in work: nothing may write after the return
		<-b.done
	}
	if ended := <-read; err == nil {
		err = ended
	}
	return p.ended(err)
}

// await adds up batches in their order, until a batch fails or the time is
// over.
func (p *pass) await(ordered <-chan *batch) error {
	var total job.Counts
	for b := range ordered {
		<-b.done
		if b.err != nil {
			return b.err
		}
		total = total.Plus(job.Count(b.counts))
		room := max(0, job.MaxFaults-len(p.result.Faults))
		p.result.Faults = append(p.result.Faults, b.faults[:min(room, len(b.faults))]...)
		if err := p.reached(b.after, total); err != nil {
			return err
		}
	}
	return nil
}

// limiter returns this task's share of the rate, which the shards in flight
// share equally. Its burst is one batch, or the rows of one second if they are
// fewer.
func (p *pass) limiter(ctx context.Context) (*rate.Limiter, error) {
	if p.params.Rate == 0 {
		return rate.NewLimiter(rate.Inf, batchRows), nil
	}
	open, err := p.jobs.ShardsIn(ctx, p.app.ID, p.job.ID, job.ShardOpen, max(1, p.job.Concurrency))
	if err != nil {
		return nil, fmt.Errorf("read the open shards of %s: %w", p.job.ID, err)
	}
	share := float64(p.params.Rate) / float64(max(1, len(open)))
	return rate.NewLimiter(rate.Limit(share), min(batchRows, max(1, int(share)))), nil
}

// readBatches reads the range, and starts to copy each batch while it reads the
// next one.
func (p *pass) readBatches(ctx context.Context, limiter *rate.Limiter, ordered chan<- *batch) error {
	next, size, user := &batch{}, 0, p.rows.Within()
	send := func() error {
		b := next
		b.after, b.done = b.entries[len(b.entries)-1].After(), make(chan struct{})
		next, size = &batch{}, 0
		if err := limiter.WaitN(ctx, len(b.entries)); err != nil {
			return fmt.Errorf("wait for the rate limit: %w", err)
		}
		select {
		case ordered <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		go func() {
			defer close(b.done)
			b.err = p.copy(ctx, b)
		}()
		return nil
	}
	err := p.log.Scan(ctx, p.from, p.rows, p.params.SinceMillis(), func(e store.Entry) error {
		if e.Fault == nil && e.User != user {
			user = e.User
			next.counts.Users++
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

// copy writes the rows of a batch to the other schema. Then it removes the
// copies of deleted events, because the purge may have passed before the copies
// existed.
func (p *pass) copy(ctx context.Context, b *batch) error {
	d := store.NewLogDecoder()
	events := make([]store.LogEvent, 0, len(b.entries))
	keys := make([]string, 0, len(b.entries))
	for i := range b.entries {
		ev, err := d.Written(b.entries[i])
		if err != nil {
			b.counts.Faulty++
			b.faults = addFault(b.faults, "does not decode: %v", err)
			continue
		}
		events, keys = append(events, ev), append(keys, b.entries[i].Key())
	}
	b.counts.Rows = int64(len(b.entries))
	if len(events) == 0 {
		return nil
	}
	if err := p.checkCurrent(ctx); err != nil {
		return err
	}
	err := p.log.Copy(ctx, p.to, events)
	refused, ok := errors.AsType[store.RefusedEvents](err)
	if err != nil && !ok {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		b.counts.Faulty++
		b.faults = addFault(b.faults, "%s: %s refuses it: %v", key, p.to, refused[key])
	}
	stones, err := p.tombstones(ctx, events[0].User, events[len(events)-1].User)
	if err != nil {
		return err
	}
	events = without(events, keys, refused)
	deleted := stones.covered(events)
	b.counts.Changed = int64(len(events) - len(deleted))
	return p.log.DropExcludedFrom(ctx, p.to, deleted, stones.of)
}

// tombstones holds the rows of users who were deleted or have opted out.
type tombstones map[string]store.User

func (t tombstones) of(user string) store.User { return t[user] }

// cover reports whether an event is deleted, or its user has opted out of all types. An
// event of one of some types is left to the process that has written it.
func (t tombstones) cover(e *store.LogEvent) bool {
	return t[e.User].Tombstone().Covers(e.Time, e.ReceivedAt())
}

// without returns the events whose rows are not refused. keys are those of the events.
func without(events []store.LogEvent, keys []string, refused store.RefusedEvents) []store.LogEvent {
	if len(refused) == 0 {
		return events
	}
	var rest []store.LogEvent
	for i := range events {
		if refused[keys[i]] == nil {
			rest = append(rest, events[i])
		}
	}
	return rest
}

// covered returns the deleted events.
func (t tombstones) covered(events []store.LogEvent) []store.LogEvent {
	var deleted []store.LogEvent
	for i := range events {
		if t.cover(&events[i]) {
			deleted = append(deleted, events[i])
		}
	}
	return deleted
}

// tombstones reads the tombstones of the users from first to last.
func (p *pass) tombstones(ctx context.Context, first, last string) (tombstones, error) {
	all := tombstones{}
	err := p.store.Users.ScanExcluded(ctx, p.app.ID, first, last, func(user string, row store.User) error {
		all[user] = row
		return nil
	})
	return all, err
}
