package rerank

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/crowd"
	"github.com/affinityengine/affinity/shared/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// manifestTTL is how long a request may use statistics that newer ones have
	// replaced.
	manifestTTL = 5 * time.Second

	manifestBytes = 1 << 20
	indexBytes    = 128 << 20 // an index of a million objects takes about 100 MB
	pairBytes     = 16 << 20
)

// indexName names an index of an app.
type indexName struct{ app, index string }

// indexStatistics are the statistics of an index in one generation. The zero
// value stands for an index without statistics.
type indexStatistics struct {
	ref         store.CrowdRef
	asOf        int64 // ms
	counts      map[string]float64
	highest     float64
	frequencies *ranking.Frequencies
	size        int
}

// of returns the counts of candidates.
func (x indexStatistics) of(candidates []ranking.Candidate) []float64 {
	counts := make([]float64, len(candidates))
	for i := range candidates {
		counts[i] = x.counts[candidates[i].ObjectID]
	}
	return counts
}

// pairsKey names an object of a generation.
type pairsKey struct {
	store.CrowdRef
	id string
}

// statistics reads crowd statistics through caches.
type statistics struct {
	store     *store.Store
	log       *slog.Logger
	manifests *cache[indexName, crowd.Generation]
	indexes   *cache[store.CrowdRef, indexStatistics]
	pairs     *cache[pairsKey, crowd.Object]
}

func newStatistics(s *store.Store, log *slog.Logger, now func() time.Time) *statistics {
	return &statistics{
		store: s, log: log,
		manifests: newCache(manifestTTL, manifestBytes, now, func(n indexName, g crowd.Generation) int {
			return len(n.index) + len(g.Name) + len(g.Job)
		}),
		indexes: newCache(forever, indexBytes, now, func(r store.CrowdRef, x indexStatistics) int { return len(r.Index) + x.size }),
		pairs:   newCache(forever, pairBytes, now, pairsSize),
	}
}

func pairsSize(k pairsKey, o crowd.Object) int {
	size := len(k.id)
	for _, p := range o.Pairs {
		size += len(p.ObjectID) + 24
	}
	return size
}

// read returns the statistics of the current generation of an index. If they
// cannot be read, it returns none: an order without statistics is better than no
// order. The error is that of ctx.
func (s *statistics) read(ctx context.Context, app, index string) (indexStatistics, error) {
	name := indexName{app, strings.Clone(index)}
	g, err := get(ctx, s.manifests, name, func(ctx context.Context) (crowd.Generation, error) {
		m, _, err := s.store.ReadCrowdManifest(ctx, name.app, name.index)
		return m.Current, err
	})
	if err != nil || g.Name == "" {
		return indexStatistics{}, s.without(ctx, app, index, err)
	}
	ref := store.CrowdRef{App: name.app, Index: name.index, Generation: g.Name}
	x, err := get(ctx, s.indexes, ref, func(ctx context.Context) (indexStatistics, error) {
		x, err := s.store.ReadCrowdIndex(ctx, name.app, name.index, g)
		return indexStatistics{
			ref: ref, asOf: x.AsOf, counts: x.Counts, highest: x.Highest,
			frequencies: &ranking.Frequencies{Objects: x.Objects, Filters: x.Frequencies}, size: x.Size(),
		}, err
	})
	return x, s.without(ctx, app, index, err)
}

// without logs that an order lacks statistics, unless err is nil or the caller
// has left. It returns the error of ctx.
func (s *statistics) without(ctx context.Context, app, index string, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	s.log.LogAttrs(ctx, slog.LevelError, "statistics of an index cannot be read, ranking without them",
		slog.String("app", app), slog.String("index", index), slog.Any("error", err))
	return nil
}

// get returns the value of one key.
func get[K comparable, V any](ctx context.Context, c *cache[K, V], key K, read func(context.Context) (V, error)) (V, error) {
	values, err := c.get(ctx, 1, func(int) K { return key }, func(k K) K { return k },
		func(ctx context.Context, _ []K, into []V) (err error) {
			into[0], err = read(ctx)
			return err
		})
	if err != nil {
		var none V
		return none, err
	}
	return values[0], nil
}

// undecided returns the objects that decide which instant is the user's last one
// and that the statistics do not know: only the catalog says whether it holds
// them. Without any known object there are no pairs, and nothing to decide.
func (x indexStatistics) undecided(session affinity.Session) []string {
	var ids []string
	var instant int64
	newer := 0                         // objects of newer instants
	for _, e := range session.Events { // newest first
		if e.Index != x.ref.Index {
			continue
		}
		if e.Time != instant {
			instant, newer = e.Time, len(ids)
		}
		if slices.ContainsFunc(e.ObjectIDs, x.knows) {
			return ids[:newer]
		}
		ids = append(ids, e.ObjectIDs...)
	}
	return nil
}

// knows reports whether the statistics count an object. The catalog held it when
// they were built.
func (x indexStatistics) knows(id string) bool {
	_, ok := x.counts[id]
	return ok
}

// lastObjects returns the objects of the user's last instant that the statistics
// know. held are the undecided objects that the catalog holds.
func (x indexStatistics) lastObjects(session affinity.Session, held map[string]bool) []string {
	ids := ranking.LastObjects(session, x.ref.Index, func(id string) bool { return x.knows(id) || held[id] })
	return slices.DeleteFunc(ids, func(id string) bool { return !x.knows(id) })
}

// neighbours reads the pairs of objects that the statistics know. Those that are
// not cached are read in one batch. The error is that of ctx, as in read.
func (s *statistics) neighbours(ctx context.Context, x indexStatistics, ids []string) ([]ranking.Neighbours, error) {
	ref := x.ref
	found, err := s.pairs.get(ctx, len(ids),
		func(i int) pairsKey { return pairsKey{ref, ids[i]} },
		func(k pairsKey) pairsKey { k.id = strings.Clone(k.id); return k },
		func(ctx context.Context, keys []pairsKey, into []crowd.Object) error {
			missing := make([]string, len(keys))
			for i, k := range keys {
				missing[i] = k.id
			}
			objects, err := s.store.ReadCrowdObjects(ctx, ref, missing)
			for i, id := range missing {
				into[i] = objects[id]
			}
			return err
		})
	if err != nil {
		return nil, s.without(ctx, ref.App, ref.Index, err)
	}
	all := make([]ranking.Neighbours, 0, len(ids))
	for i, o := range found {
		n := ranking.Neighbours{ObjectID: ids[i], Events: float64(o.Events), Pairs: make([]ranking.Pair, len(o.Pairs))}
		for j, p := range o.Pairs {
			n.Pairs[j] = ranking.Pair{ObjectID: p.ObjectID, Count: float64(p.Count)}
		}
		all = append(all, n)
	}
	return all, nil
}
