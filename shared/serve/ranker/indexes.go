package ranker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

// How long a request waits for statistics, counted from the start of the read. A
// read that has already taken longer is not waited for, so a slow table delays
// the requests of one read, and not every request.
const (
	// firstWait is for an index of which the instance knows nothing yet: without
	// it, the first requests of each instance would get another order than the
	// next ones. A million objects take about a second, an ordinary shop some
	// milliseconds.
	firstWait = 2 * time.Second
	// nextWait is for all later reads, during which the statistics that the
	// instance holds, or none, can serve.
	nextWait = 100 * time.Millisecond
)

const (
	// checkEvery is how long a request may use statistics that newer ones have
	// replaced.
	checkEvery = 5 * time.Second
	checkAhead = time.Second // before the end of that time, for an index that is used
	// An error is kept for retryFirst, after further ones for twice as long as
	// before, up to retryLast.
	retryFirst = 5 * time.Second
	retryLast  = 2 * time.Minute

	// indexBytes bounds the statistics in memory, and also those that are read at
	// a time, so an instance holds at most twice as much. An index of a million
	// objects takes about 100 MB.
	indexBytes = 128 << 20
	// readTimeout ends a read that the backend does not answer.
	readTimeout = 10 * time.Second
	// maxPopular is how many objects of an index fill up recommendations.
	maxPopular = 1_000
	// slotBytes estimates what an index takes beside its statistics.
	slotBytes = 512
)

// indexName names an index of an app.
type indexName struct{ app, index string }

// indexes holds statistics of indexes. It is safe for concurrent use.
type indexes struct {
	source              indexSource
	log                 *slog.Logger
	now                 func() time.Time
	firstWait, nextWait time.Duration
	maxBytes            int
	reading             chan struct{} // holds one token: one index is read at a time

	mu    sync.Mutex
	slots cache.Map[indexName, *slot]
}

// indexSource reads statistics.
type indexSource interface {
	manifest(ctx context.Context, name indexName) (crowd.Manifest, error)
	index(ctx context.Context, ref store.CrowdRef, g crowd.Generation, maxBytes int) (crowd.Index, error)
}

// stored reads the statistics of a store.
type stored struct {
	store.Crowd
	log *slog.Logger
}

func (s stored) manifest(ctx context.Context, name indexName) (crowd.Manifest, error) {
	m, _, err := crowd.ReadManifest(ctx, s.Crowd, s.log, name.app, name.index)
	return m, err
}

func (s stored) index(ctx context.Context, ref store.CrowdRef, g crowd.Generation, maxBytes int) (crowd.Index, error) {
	return g.ReadIndex(maxBytes, func(counts, frequencies func([]byte) error) error {
		return s.ReadCrowdIndex(ctx, ref, counts, frequencies)
	})
}

// slot is what an instance knows of an index.
type slot struct {
	held    indexStatistics
	refused string // the generation that exceeds the memory, or ""
	known   bool   // a read has ended, or was waited for in vain
	next    time.Time
	retry   time.Duration // the last one, 0 after a success
	read    *indexRead    // nil: none is under way
}

// indexRead is a read of the statistics of one index.
type indexRead struct {
	late <-chan time.Time
	done chan struct{}
	once sync.Once // logs that requests went on without it
}

func newIndexes(source indexSource, maxBytes int, log *slog.Logger, now func() time.Time) *indexes {
	return &indexes{
		source: source, log: log, now: now, firstWait: firstWait, nextWait: nextWait, maxBytes: maxBytes,
		reading: make(chan struct{}, 1),
		slots: cache.NewSized(maxBytes, func(name indexName,
			s *slot) int {
			return slotBytes + len(name.app) + len(name.index) + s.held.size
		}),
	}
}

// get returns the statistics of an index. If they cannot be read, or not in
// time, it returns those that it holds, or none: an order without statistics is
// better than no order. The error is that of ctx.
func (x *indexes) get(ctx context.Context, app, index string) (indexStatistics, error) {
	s, read := x.look(ctx, indexName{app, index})
	if read != nil {
		select {
		case <-read.done:
		case <-read.late:
			read.once.Do(func() { x.warn(ctx, app, index, "statistics of an index are slow, ranking without newer ones", nil) })
		case <-ctx.Done():
			return indexStatistics{}, ctx.Err()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s.known = true
	return s.held, nil
}

// look returns the slot of an index, and the read to wait for. It starts one if
// it is time, or a little earlier for an index that is used: then nobody waits.
func (x *indexes) look(ctx context.Context, name indexName) (*slot, *indexRead) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, ok := x.slots.Get(name)
	now := x.now()
	valid := ok && now.Before(s.next)
	switch {
	case valid && (s.read != nil || s.retry > 0 || now.Before(s.next.Add(-checkAhead))):
		return s, nil
	case ok && s.read != nil:
		return s, s.read
	}
	name.index = strings.Clone(name.index) // the request's body must not stay in memory
	if !ok {
		s = &slot{}
		x.slots.Set(name, s)
	}
	wait := x.nextWait
	if !s.known {
		wait = x.firstWait
	}
	s.read = &indexRead{late: closedAfter(wait), done: make(chan struct{})}
	detached, end := deadline.Detach(ctx, deadline.Longest)
	go func() { defer end(); x.refresh(detached, name, s) }()
	if valid {
		return s, nil
	}
	return s, s.read
}

// closedAfter returns a channel that is closed after some time.
func closedAfter(d time.Duration) <-chan time.Time {
	c := make(chan time.Time)
	time.AfterFunc(d, func() { close(c) })
	return c
}

// refresh reads the current statistics of an index into its slot.
func (x *indexes) refresh(ctx context.Context, name indexName, s *slot) {
	x.mu.Lock()
	held, refused := s.held, s.refused
	x.mu.Unlock()
	began := x.now()
	got, err := x.current(ctx, name, held, refused)
	x.mu.Lock()
	defer x.mu.Unlock()
	done := s.read.done
	s.read, s.known = nil, true
	switch {
	case err == nil:
		s.held, s.next, s.retry = got, began.Add(checkEvery), 0
		if got.ref.Generation != "" {
			s.refused = ""
		}
	case errors.Is(err, crowd.ErrTooLarge):
		s.held, s.refused, s.next, s.retry = indexStatistics{}, got.ref.Generation, began.Add(checkEvery), 0
	default:
		s.retry = min(max(2*s.retry, retryFirst), retryLast)
		s.next = x.now().Add(s.retry)
	}
	if err != nil {
		x.warn(ctx, name.app, name.index, "statistics of an index cannot be read, ranking without newer ones", err)
	}
	if kept, ok := x.slots.Peek(name); ok && kept == s {
		x.slots.Set(name, s) // it has another size now
	}
	close(done)
}

// current returns the current statistics of an index: held, if they still are.
// The error is crowd.ErrTooLarge, with the generation, if they are too large
// for the memory. A refused generation is not read again.
func (x *indexes) current(ctx context.Context, name indexName, held indexStatistics,
	refused string) (indexStatistics, error) {
	short, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	m, err := x.source.manifest(short, name)
	g := m.Current
	switch {
	case err != nil:
		return indexStatistics{}, err
	case g.Name == "" || g.Name == refused:
		return indexStatistics{}, nil
	case g.Name == held.ref.Generation:
		return held, nil
	}
	x.reading <- struct{}{}
	defer func() { <-x.reading }()
	long, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ref := store.CrowdRef{App: name.app, Index: name.index, Generation: g.Name}
	i, err := x.source.index(long, ref, g, x.maxBytes)
	if err != nil {
		return indexStatistics{ref: ref}, err
	}
	popular, rising := mostCounted(i.Counts), i.Rising()
	return indexStatistics{
		ref: ref, asOf: i.AsOf, counts: i.Counts, highest: i.Highest, popular: popular, rising: rising,
		frequencies: &ranking.Frequencies{Objects: i.Objects, Filters: i.Frequencies}, size: i.Size() + 16*len(popular),
	}, nil
}

// mostCounted returns the objects with the highest counts, the highest first.
func mostCounted(counts map[string]float64) []string {
	var best []crowd.Scored
	least := 0.0 // of the best so far, once they are enough
	cut := func() {
		slices.SortFunc(best, crowd.Better)
		if len(best) >= maxPopular {
			best, least = best[:maxPopular], best[maxPopular-1].Score
		}
	}
	for id, n := range counts {
		if n < least {
			continue
		}
		if best = append(best, crowd.Scored{ObjectID: id, Score: n}); len(best) == 2*maxPopular {
			cut()
		}
	}
	cut()
	ids := make([]string, len(best))
	for i, o := range best {
		ids[i] = o.ObjectID
	}
	return ids
}

func (x *indexes) warn(ctx context.Context, app, index, message string, err error) {
	attributes := []slog.Attr{slog.String("app", app), slog.String("index", index)}
	if err != nil {
		attributes = append(attributes, slog.Any("error", err))
	}
	x.log.LogAttrs(ctx, slog.LevelError, message, attributes...)
}
