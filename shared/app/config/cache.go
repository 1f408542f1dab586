package config

import (
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
)

const (
	// maxStale is how old an answer may be that getStale returns while the backend
	// fails.
	maxStale = 5 * time.Minute
	// waitTimeout is how long getStale lets a read run before it returns an old answer.
	waitTimeout = time.Second
	// maxStrangers is how many reads of getStale and prefetch run at a time for keys
	// that the cache does not know: anybody can guess those. While the backend hangs,
	// guesses cost no more than these. The keys of get are known to exist, or belong
	// to a client whose key is good.
	maxStrangers = 100
)

// answers keeps the answers of reads. A Cached holds it behind an interface because of what a
// build costs, as package cache does.
type answers[K comparable, V any] interface {
	// get returns the answer of a read that began less than the TTL ago. Otherwise it starts
	// a new read.
	get(ctx context.Context, key K, read reader[V]) (V, error)
	// getStale is get, except that it returns an answer of up to maxStale ago if the new read
	// fails, or runs for longer than waitTimeout.
	getStale(ctx context.Context, key K, read reader[V]) (V, error)
	// prefetch starts a read, unless an answer is there or on its way.
	prefetch(ctx context.Context, key K, read reader[V])
	// holds reports whether the last read of a key found something. It reads nothing.
	holds(key K) bool
	// Evict makes the next get start a new read.
	Evict(key K)
}

// kept are answers. It keeps those that found something apart from those that did not, so that
// guesses evict nothing that exists.
type kept[K comparable, V any] struct {
	cache.Reads[K, answer[V]]
	ttl time.Duration // 0: nothing is kept
	app func(K) string
}

// answer is what a read has found.
type answer[V any] struct {
	value V
	err   error // ErrNotFound, as the reader said it
}

// newAnswers returns a cache of at most size answers that found something, and of
// as many that did not. app is whose reads fail together.
func newAnswers[K comparable, V any](size int, ttl time.Duration, now func() time.Time,
	app func(K) string) answers[K, V] {
	return kept[K, V]{cache.NewReads(cache.Options[K, answer[V]]{
		Entries: size, Absent: size, Nothing: func(a answer[V]) bool { return a.err != nil },
		Fresh: ttl, Stale: maxStale, Wait: waitTimeout, Guesses: maxStrangers, Now: now,
	}), ttl, app}
}

type reader[V any] func(context.Context) (V, error)

func (a kept[K, V]) get(ctx context.Context, key K, read reader[V]) (V, error) {
	return a.one(ctx, key, read, cache.Ask[K, answer[V]]{Exact: true})
}

func (a kept[K, V]) getStale(ctx context.Context, key K, read reader[V]) (V, error) {
	return a.one(ctx, key, read, cache.Ask[K, answer[V]]{Guess: true})
}

func (a kept[K, V]) one(ctx context.Context, key K, read reader[V], ask cache.Ask[K, answer[V]]) (V, error) {
	if a.ttl <= 0 {
		return read(ctx)
	}
	ask.Group, ask.Load = a.app(key), loader(key, read)
	found, err := a.One(ctx, key, ask)
	if err == nil {
		err = found.err
	}
	return found.value, err
}

// loader reads one key. That there is nothing is an answer too.
func loader[K comparable, V any](key K, read reader[V]) cache.Loader[K, answer[V]] {
	return func(ctx context.Context, _ []K) (map[K]answer[V], error) {
		value, err := read(ctx)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		return map[K]answer[V]{key: {value, err}}, nil
	}
}

func (a kept[K, V]) holds(key K) bool {
	_, ok := a.Last(key)
	return ok
}

func (a kept[K, V]) prefetch(ctx context.Context, key K, read reader[V]) {
	if a.ttl > 0 {
		a.Prefetch(ctx, key, cache.Ask[K, answer[V]]{Guess: true, Load: loader(key, read)})
	}
}
