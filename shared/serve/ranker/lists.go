package ranker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/store"
)

// listName names a list of objects of an index: the newest by an attribute that holds an
// instant, or without an attribute the first by objectID.
type listName struct {
	indexName
	date string
}

// lists are objects of indexes that recommendations take without statistics. It is safe for
// concurrent use.
type lists struct {
	store *store.Store
	now   func() time.Time // the engine's clock, by which an object is dated in the future
	cache cache.Reads[listName, []string]
}

// newLists returns lists whose cache goes by the clock of the machine.
func newLists(s *store.Store, now, machine func() time.Time) *lists {
	return &lists{s, now, cache.NewReads(cache.Options[listName, []string]{
		Bytes: namesBytes, Fresh: checkEvery, Ahead: true, Stale: objectStale, Wait: objectWait, Now: machine,
		Own: func(n listName) listName {
			return listName{indexName{n.app, strings.Clone(n.index)}, strings.Clone(n.date)}
		},
		Size: func(n listName, ids []string) int {
			size := len(n.app) + len(n.index) + len(n.date)
			for _, id := range ids {
				size += 16 + len(id)
			}
			return size
		},
	})}
}

// of returns the objectIDs of a list.
func (l *lists) of(ctx context.Context, name listName) ([]string, error) {
	return l.cache.One(ctx, name, cache.Ask[listName, []string]{Group: name.app,
		Load: func(ctx context.Context, names []listName) (map[listName][]string, error) {
			read := l.first
			if names[0].date != "" {
				read = l.newest
			}
			ids, err := read(ctx, names[0])
			return map[listName][]string{names[0]: ids}, err
		}})
}

// first reads the first objects of an index, at most maxPopular.
func (l *lists) first(ctx context.Context, name listName) (ids []string, err error) {
	err = l.store.Catalog.ScanObjectIDs(ctx, name.app, name.index, func(id string) error {
		if ids = append(ids, id); len(ids) == maxPopular {
			return errRead
		}
		return nil
	})
	if errors.Is(err, errRead) {
		err = nil
	}
	return ids, err
}

// newest reads the newest objects of an index, at most fillStep. One that has another date by
// now, or none, may be among them.
func (l *lists) newest(ctx context.Context, name listName) ([]string, error) {
	dated, _, err := l.store.Catalog.ListDated(ctx, name.app, store.DatedQuery{
		Index: name.index, Attribute: name.date, Newest: l.now().UnixMilli(), Limit: fillStep,
	})
	if err != nil {
		return nil, fmt.Errorf("list the newest objects: %w", err)
	}
	ids := make([]string, len(dated))
	for i, o := range dated {
		ids[i] = o.ID
	}
	return ids, nil
}

// newest returns the newest objects of an index by the attribute by which the strategy's
// freshness goes. There are none unless a feed names the attribute: the dates of others are
// not listed.
func (o *Orderer) newest(ctx context.Context, app config.App, index string) ([]string, error) {
	date := dateOf(app.Strategy)
	if _, listed := app.Dates[index][date]; !listed {
		return nil, nil
	}
	return o.lists.of(ctx, listName{indexName{app.ID, index}, date})
}
