package ranker

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// objectTTL is how long a change of an object may go unnoticed, as in ingest.
	objectTTL = 5 * time.Second
	// objectBytes bounds the objects in memory.
	objectBytes = 64 << 20
	// candidateBytes bounds the objects of one request, whose candidates stay in
	// memory until they are ranked, and explainedBytes those of a request that asks for
	// the features: each filter may become a part of one. 5,000 candidates of sixty
	// filters take 10 MB.
	candidateBytes = 32 << 20
	explainedBytes = 8 << 20
	// explainWeight is how many bytes an explained request takes for each byte of its
	// objects: the parts of features, and their text in the answer.
	explainWeight = 8
)

// tooRich refuses candidates whose objects take more than limit bytes.
func tooRich(limit int) error {
	return fault.New(fault.Invalid, "the filters of the candidates take more than %d bytes: send fewer candidates", limit)
}

// seed hashes keys. Hashes stay in the process.
var seed = maphash.MakeSeed()

// objectKey names an object.
type objectKey struct {
	from unique.Handle[source] // which is compared fast
	id   string
}

// source says where objects come from, and how they are read.
type source struct {
	app, index string
	settings   int64  // version of the settings
	date       string // attribute by which freshness goes; empty: none
}

// object is what a ranking needs of a catalog object. The zero value stands for
// an object that the catalog does not hold.
type object struct {
	filters   *ranking.Object
	published int64 // ms
	dated     bool
}

func objectSize(k objectKey, o object) int {
	size := len(k.id)
	if o.filters != nil {
		size += o.filters.Size()
	}
	return size
}

// objects reads candidates from the catalog through a cache.
type objects struct {
	store  *store.Store
	config *config.Cached
	cache  *cache[objectKey, object]
}

func newObjects(s *store.Store, c *config.Cached, now func() time.Time) *objects {
	return &objects{store: s, config: c, cache: newCache(objectTTL, objectBytes, now, objectSize)}
}

// fill sets the filters of candidates, and their dates if date names an
// attribute. Objects that are not cached are read in one batch.
func (o *objects) fill(ctx context.Context, app, index, date string, candidates []ranking.Candidate) error {
	settings, err := o.config.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	from := unique.Make(source{app, index, settings.Version, date})
	hash := maphash.Comparable(seed, from)
	err = o.cache.get(ctx, wanted[objectKey, object]{
		n:    len(candidates),
		key:  func(i int) objectKey { return objectKey{from, candidates[i].ObjectID} },
		hash: func(i int) uint64 { return hash ^ maphash.String(seed, candidates[i].ObjectID) },
		keep: func(k objectKey) objectKey { return objectKey{k.from, strings.Clone(k.id)} }, // the request's body must not stay in memory
		read: func(ctx context.Context, keys []objectKey, into []object) error {
			return o.read(ctx, settings, keys, into)
		},
		take: func(i int, found object) {
			c := &candidates[i]
			c.Object, c.Published, c.Dated = found.filters, found.published, found.dated
		},
	})
	if err != nil {
		return fmt.Errorf("read candidates of %s/%s: %w", app, index, err)
	}
	return nil
}

// admitExplained takes the memory of the answer of an explained request from the gate of the
// process. It refuses candidates with too many filters.
func admitExplained(ctx context.Context, candidates []ranking.Candidate) error {
	bytes := 0
	for i := range candidates {
		if o := candidates[i].Object; o != nil {
			bytes += o.Size()
		}
	}
	if bytes > explainedBytes {
		return tooRich(explainedBytes)
	}
	return admission.Take(ctx, explainWeight*int64(bytes))
}

// admitDiversified takes the memory in which diversity compares candidates from the gate of
// the process.
func admitDiversified(ctx context.Context, candidates []ranking.Candidate) error {
	return admission.Take(ctx, ranking.DiversityBytes(candidates))
}

// held returns those of some objects that the catalog holds. An object may occur
// twice.
func (o *objects) held(ctx context.Context, app, index string, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	candidates, held := make([]ranking.Candidate, len(ids)), map[string]bool{}
	for i, id := range ids {
		candidates[i].ObjectID = id
	}
	if err := o.fill(ctx, app, index, "", candidates); err != nil {
		return nil, err
	}
	for _, c := range candidates {
		if c.Object != nil {
			held[c.ObjectID] = true
		}
	}
	return held, nil
}

// read reads objects of one source. It takes their memory from the gate of the
// process, for the request that the context belongs to.
func (o *objects) read(ctx context.Context, settings catalog.Settings, keys []objectKey, into []object) error {
	from, at, bytes := keys[0].from.Value(), make(map[store.ObjectRef]int, len(keys)), 0
	refs := make([]store.ObjectRef, len(keys))
	for i, k := range keys {
		refs[i] = store.ObjectRef{Index: from.index, ID: k.id}
		at[refs[i]] = i
	}
	keep := func(i int, o object) error {
		into[i] = o
		if bytes += objectSize(keys[i], o); bytes > candidateBytes {
			return tooRich(candidateBytes)
		}
		return admission.Take(ctx, int64(objectSize(keys[i], o)))
	}
	if from.date == "" {
		var stale []store.ObjectRef
		err := o.store.ScanFilters(ctx, from.app, refs, func(ref store.ObjectRef, f store.ObjectFilters) error {
			if f.SettingsVersion != settings.Version {
				stale = append(stale, ref)
				return nil
			}
			return keep(at[ref], object{filters: ranking.Compile(f.Filters)})
		})
		if err != nil {
			return err
		}
		refs = stale
	}
	if len(refs) == 0 {
		return nil
	}
	// The records have the dates, and the filters of objects that were stored
	// before the settings changed.
	return o.store.ScanObjects(ctx, from.app, refs, func(ref store.ObjectRef, x store.Object) error {
		filters := x.Filters.Filters
		if x.Filters.SettingsVersion != settings.Version {
			var err error
			if filters, err = catalog.Filters(x.Record, settings); err != nil {
				return fmt.Errorf("filters of object %q of %s/%s: %w", ref.ID, from.app, ref.Index, err)
			}
		}
		found := object{filters: ranking.Compile(filters)}
		if from.date != "" {
			found.published, found.dated = catalog.Date(x.Record, from.date)
		}
		return keep(at[ref], found)
	})
}
