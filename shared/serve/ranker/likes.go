package ranker

import (
	"context"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/store"
)

// likedKey names a filter of a generation.
type likedKey struct {
	store.CrowdRef
	filter event.Filter
}

func newLikes(now func() time.Time) cache.Reads[likedKey, []crowd.Scored] {
	return cache.NewReads(cache.Options[likedKey, []crowd.Scored]{
		Bytes: likedBytes, Fresh: cache.Forever, Now: now,
		Size: func(k likedKey, objects []crowd.Scored) int {
			size := len(k.filter.Facet) + len(k.filter.Value)
			for _, o := range objects {
				size += len(o.ObjectID) + 24
			}
			return size
		},
		Own: func(k likedKey) likedKey {
			k.filter = event.Filter{Facet: strings.Clone(k.filter.Facet), Value: strings.Clone(k.filter.Value)}
			return k
		},
	})
}

// liked returns the objects with the highest counts of some filters, by filter. If they cannot be
// read, or not in time, there are none. The error is that of ctx.
func (s *statistics) liked(ctx context.Context, x indexStatistics, filters []event.Filter) ([][]crowd.Scored, error) {
	if len(filters) == 0 || x.ref.Generation == "" {
		return nil, nil
	}
	short, cancel := context.WithTimeout(ctx, s.pairsWait)
	defer cancel()
	keys := make([]likedKey, len(filters))
	for i, f := range filters {
		keys[i] = likedKey{x.ref, f}
	}
	found, err := s.likes.Get(short, cache.Ask[likedKey, []crowd.Scored]{Group: x.ref.App, Keys: keys, Exact: true,
		Load: s.readLiked})
	if err != nil {
		if ctx.Err() == nil {
			s.warn(ctx, x.ref.App, x.ref.Index, "the objects of filters cannot be read, recommending without them", err)
		}
		return nil, ctx.Err()
	}
	lists := make([][]crowd.Scored, len(found))
	for i, e := range found {
		lists[i] = e.Value
	}
	return lists, nil
}

// readLiked reads the lists of filters of one generation.
func (s *statistics) readLiked(ctx context.Context, keys []likedKey) (map[likedKey][]crowd.Scored, error) {
	filters := make([]event.Filter, len(keys))
	for i, k := range keys {
		filters[i] = k.filter
	}
	stored, err := s.store.Crowd.ReadCrowdLiked(ctx, keys[0].CrowdRef, filters)
	if err != nil {
		return nil, err
	}
	found := make(map[likedKey][]crowd.Scored, len(stored))
	for f, value := range stored {
		if found[likedKey{keys[0].CrowdRef, f}], err = crowd.ParseLiked(value); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// strongest returns the filters that the catalog may have of the user's n highest affinities: of a
// value that aliases lead to, all of these.
func strongest(in *input, n int) []event.Filter {
	var filters []event.Filter
	for _, a := range in.user.Affinities[:min(len(in.user.Affinities), n)] { // the highest first
		filters = append(filters, event.Filter{Facet: a.Facet, Value: a.Value})
		for from, to := range in.user.App.Strategy.Aliases[a.Facet] {
			if to == a.Value && len(filters) < 5*n {
				filters = append(filters, event.Filter{Facet: a.Facet, Value: from})
			}
		}
	}
	return filters
}
