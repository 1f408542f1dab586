package ranker

import (
	"context"
	"errors"
	"slices"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// sampledFrom is how many objects of an index a sample is chosen from at most.
	sampledFrom = 2_000
	// sampleBytes bounds the filters of a sample.
	sampleBytes = 4 << 20
)

// errRead ends a reading of objects.
var errRead = errors.New("as many objects are read as are needed")

// SampleCandidates returns up to n objects of the app's first index that has some, evenly from its first 2,000 in the
// order of their IDs. What compares orders of users ranks them.
func SampleCandidates(ctx context.Context, objects store.Catalog, app string, n int) (index string,
	chosen []ranking.Candidate, err error) {
	indexes, err := objects.CatalogIndexes(ctx, app)
	if err != nil || len(indexes) == 0 {
		return "", nil, err
	}
	index = slices.Min(indexes)
	var ids []string
	err = objects.ScanObjectIDs(ctx, app, index, func(id string) error {
		if ids = append(ids, id); len(ids) == sampledFrom {
			return errRead
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRead) {
		return "", nil, err
	}
	refs := make([]store.ObjectRef, min(len(ids), n))
	for i := range refs {
		refs[i] = store.ObjectRef{Index: index, ID: ids[i*len(ids)/len(refs)]}
	}
	filters, err := objects.ReadFilters(ctx, app, refs)
	if err != nil {
		return "", nil, err
	}
	size := 0
	for _, ref := range refs {
		if size += filters[ref].Size(); size > sampleBytes {
			break
		}
		chosen = append(chosen, ranking.Candidate{ObjectID: ref.ID, Object: ranking.Compile(filters[ref].Filters)})
	}
	return index, chosen, admission.Take(ctx, int64(2*size))
}
