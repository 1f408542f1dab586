package ranker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	namesBytes = 4 << 20
	// spokenIndexes is how many indexes of an app are asked.
	spokenIndexes = 100
)

// newNames returns the indexes of apps that have statistics, by app. It keeps the names as long
// as statistics, so that the end of the first build shows within checkEvery.
func newNames(s *store.Store, now func() time.Time) *names {
	return &names{s, cache.NewReads(cache.Options[string, []string]{
		Bytes: namesBytes, Fresh: checkEvery, Ahead: true, Stale: objectStale, Wait: nextWait, Own: strings.Clone, Now: now,
		Size: func(app string, indexes []string) int {
			size := len(app)
			for _, name := range indexes {
				size += 16 + len(name)
			}
			return size
		},
	})}
}

type names struct {
	store *store.Store
	cache cache.Reads[string, []string]
}

func (n *names) of(ctx context.Context, app string) ([]string, error) {
	return n.cache.One(ctx, app, cache.Ask[string, []string]{Group: app,
		Load: func(ctx context.Context, apps []string) (map[string][]string, error) {
			indexes, err := n.store.Crowd.FirstCrowdIndexes(ctx, apps[0], spokenIndexes)
			return map[string][]string{apps[0]: indexes}, err
		}})
}

// Spoken returns a function that reports whether a catalog of the app holds a
// filter, by the document frequencies of its crowd statistics, or nil if it has
// none. Of a value that aliases lead to, a catalog may hold any of those. What
// users send never makes a filter known.
//
// It reads no pairs. An app's first hundred indexes count, as far as their
// statistics take half of the memory for statistics and are read within two
// seconds: what is not known in time is not spoken.
func (o *Orderer) Spoken(ctx context.Context, app config.App) (func(facet, value string) bool, error) {
	indexes, err := o.names.of(ctx, app.ID)
	if err != nil {
		return nil, fmt.Errorf("list crowd statistics: %w", err)
	}
	var all []*ranking.Frequencies
	size, began := 0, o.statistics.now()
	for _, index := range indexes {
		if size > o.statistics.maxBytes/2 || o.statistics.now().Sub(began) >= o.statistics.firstWait {
			break
		}
		x, err := o.statistics.get(ctx, app.ID, index)
		if err != nil {
			return nil, err
		}
		if x.frequencies != nil {
			all, size = append(all, x.frequencies), size+x.size
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	held := func(facet, value string) bool {
		for _, f := range all {
			if f.Filters[event.Filter{Facet: facet, Value: value}] > 0 {
				return true
			}
		}
		return false
	}
	merged := sync.OnceValue(func() map[event.Filter]bool {
		to := map[event.Filter]bool{}
		for facet, values := range app.Strategy.Aliases {
			for from, into := range values {
				if held(facet, from) {
					to[event.Filter{Facet: facet, Value: into}] = true
				}
			}
		}
		return to
	})
	return func(facet, value string) bool {
		return held(facet, value) || merged()[event.Filter{Facet: facet, Value: value}]
	}, nil
}
