package ranker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// pairsWait is how long a request waits for pairs. They are some rows, which
	// are read for every new last instant of a user.
	pairsWait = time.Second
	// pairsRetry is how long the requests for an index go without pairs after
	// these could not be read in time.
	pairsRetry = 5 * time.Second

	pairBytes  = 16 << 20
	likedBytes = 4 << 20
	// maxFailed bounds the indexes whose failures are remembered.
	maxFailed = 1000
)

// indexStatistics are the statistics of an index in one generation. The zero
// value stands for an index without statistics.
type indexStatistics struct {
	ref         store.CrowdRef
	asOf        int64 // ms
	counts      map[string]float64
	highest     float64
	frequencies *ranking.Frequencies
	popular     []string // the objects with the highest counts, the highest first
	rising      []crowd.Scored
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
	*indexes
	store     *store.Store
	pairs     cache.Reads[pairsKey, linked]
	likes     cache.Reads[likedKey, []crowd.Scored]
	pairsWait time.Duration
	failed    cache.Map[indexName, time.Time] // when pairs could not be read
}

func newStatistics(s *store.Store, log *slog.Logger, now func() time.Time) *statistics {
	return &statistics{
		indexes: newIndexes(stored{s.Crowd, log}, indexBytes, log, now), store: s,
		pairs: cache.NewReads(cache.Options[pairsKey, linked]{
			Bytes: pairBytes, Size: pairsSize, Fresh: cache.Forever, Now: now,
			Own: func(k pairsKey) pairsKey { k.id = strings.Clone(k.id); return k },
		}),
		likes:     newLikes(now),
		pairsWait: pairsWait,
		failed:    cache.New[indexName, time.Time](maxFailed),
	}
}

// linked are the links of an object as rankings take them, by crowd.Kind.
type linked struct {
	events float64
	lists  [crowd.Kinds][]ranking.Pair
}

func linkedOf(o crowd.Object) linked {
	l := linked{events: float64(o.Events)}
	for kind, links := range o.Links {
		l.lists[kind] = make([]ranking.Pair, len(links))
		for i, p := range links {
			l.lists[kind][i] = ranking.Hashed(p.ObjectID, float64(p.Count))
		}
	}
	return l
}

func pairsSize(k pairsKey, o linked) int {
	size := len(k.id)
	for _, links := range o.lists {
		for _, p := range links {
			size += len(p.ObjectID) + 40
		}
	}
	return size
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

// history returns the objects of the user's session that bring in others. held are the
// undecided objects that the catalog holds.
func (x indexStatistics) history(session affinity.Session, held map[string]bool) []ranking.Past {
	return ranking.History(session, x.ref.Index, func(id string) bool { return x.knows(id) || held[id] }, x.knows)
}

// neighbours reads the links of objects that the statistics know. Those that are
// not cached are read in one batch. If they cannot be read, or not in time, it
// returns none, and so do the next calls for some seconds. The error is that of
// ctx.
func (s *statistics) neighbours(ctx context.Context, x indexStatistics,
	past []ranking.Past) ([]ranking.Neighbours, error) {
	ref := x.ref
	name := indexName{ref.App, ref.Index}
	if failed, ok := s.failed.Get(name); ok && s.now().Sub(failed) < pairsRetry || len(past) == 0 {
		return nil, nil
	}
	short, cancel := context.WithTimeout(ctx, s.pairsWait)
	defer cancel()
	keys := make([]pairsKey, len(past))
	for i, p := range past {
		keys[i] = pairsKey{ref, p.ObjectID}
	}
	found, err := s.pairs.Get(short, cache.Ask[pairsKey, linked]{Group: name.app, Keys: keys, Exact: true,
		Load: s.readPairs})
	if err != nil {
		if ctx.Err() == nil {
			s.withoutPairs(ctx, name, err)
		}
		return nil, ctx.Err()
	}
	all := make([]ranking.Neighbours, len(past))
	for i, e := range found {
		all[i] = ranking.Neighbours{Past: past[i], Events: e.Value.events}
		for kind, list := range all[i].Lists() {
			*list = e.Value.lists[kind]
		}
		all[i].Bought = e.Value.lists[crowd.Bought]
	}
	return all, nil
}

// readPairs reads objects of one generation.
func (s *statistics) readPairs(ctx context.Context, keys []pairsKey) (map[pairsKey]linked, error) {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.id
	}
	stored, err := s.store.Crowd.ReadCrowdObjects(ctx, keys[0].CrowdRef, ids)
	if err != nil {
		return nil, err
	}
	objects, err := crowd.ParseObjects(stored)
	found := make(map[pairsKey]linked, len(objects))
	for id, o := range objects {
		found[pairsKey{keys[0].CrowdRef, id}] = linkedOf(o)
	}
	return found, err
}

// withoutPairs remembers that the pairs of an index cannot be read. The first of
// several requests logs it.
func (s *statistics) withoutPairs(ctx context.Context, name indexName, err error) {
	now := s.now()
	failed, ok := s.failed.Peek(name)
	s.failed.Set(name, now)
	if !ok || now.Sub(failed) >= pairsRetry {
		s.warn(ctx, name.app, name.index, "pairs of an index cannot be read, ranking without them", err)
	}
}
