package ranker

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// objectTTL is how long a change of an object may go unnoticed, as in ingest.
	objectTTL = 5 * time.Second
	// objectStale is the same while the store fails, or does not answer within objectWait.
	objectStale = 10 * time.Minute
	objectWait  = 200 * time.Millisecond
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

func hashOf(k objectKey) uint64 { return k.from.Value().hash ^ maphash.String(seed, k.id) }

// source says where objects come from, and how they are read.
type source struct {
	app, index string
	settings   int64  // version of the settings
	date       string // attribute by which freshness goes; empty: none
	hash       uint64 // of the other fields
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
	cache  cache.Reads[objectKey, object]
}

func newObjects(s *store.Store, c *config.Cached, log *slog.Logger, now func() time.Time) *objects {
	return &objects{store: s, config: c, cache: cache.NewReads(cache.Options[objectKey, object]{
		Bytes: objectBytes, Size: objectSize, Hash: hashOf, Fresh: objectTTL, Ahead: true, Stale: objectStale,
		Wait: objectWait, Now: now,
		Own: func(k objectKey) objectKey {
			return objectKey{k.from,
				strings.Clone(k.id)}
		}, // the request's body must not stay in memory
		Paused: func(ctx context.Context, app string, err error) {
			log.LogAttrs(ctx, slog.LevelError, "objects of an app cannot be read in time, ranking by those in memory",
				slog.String("app", app), slog.Any("error", err))
		},
	})}
}

// fill sets the filters of candidates, and their dates if date names an
// attribute. Objects that are not cached are read in one batch.
func (o *objects) fill(ctx context.Context, app, index, date string, candidates []ranking.Candidate) error {
	settings, err := o.config.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	from := source{app: app, index: index, settings: settings.Version, date: date}
	from.hash = maphash.Comparable(seed, from)
	handle, keys := unique.Make(from), make([]objectKey, len(candidates))
	for i := range candidates {
		keys[i] = objectKey{handle, candidates[i].ObjectID}
	}
	found, err := o.cache.Get(ctx, cache.Ask[objectKey, object]{
		Group: app, Keys: keys,
		Load: func(ctx context.Context, keys []objectKey) (map[objectKey]object, error) {
			return o.read(ctx, settings, keys)
		},
	})
	if err != nil && (len(found) == 0 || slices.Contains(found, nil)) {
		return fmt.Errorf("read candidates of %s/%s: %w", app, index, err)
	}
	for i, e := range found {
		c := &candidates[i]
		c.Object, c.Published, c.Dated = e.Value.filters, e.Value.published, e.Value.dated
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
func (o *objects) read(ctx context.Context, settings catalog.Settings, keys []objectKey) (map[objectKey]object, error) {
	from, bytes, found := keys[0].from.Value(), 0, make(map[objectKey]object, len(keys))
	refs := make([]store.ObjectRef, len(keys))
	for i, k := range keys {
		refs[i] = store.ObjectRef{Index: from.index, ID: k.id}
	}
	keep := func(id string, o object) error {
		k := objectKey{keys[0].from, id}
		found[k] = o
		size := objectSize(k, o)
		if bytes += size; bytes > candidateBytes {
			return tooRich(candidateBytes)
		}
		return admission.Take(ctx, int64(size))
	}
	if from.date == "" {
		var stale []store.ObjectRef
		err := o.store.Catalog.ScanFilters(ctx, from.app, refs, func(ref store.ObjectRef, f store.ObjectFilters) error {
			if f.SettingsVersion != settings.Version {
				stale = append(stale, ref)
				return nil
			}
			return keep(ref.ID, object{filters: ranking.Compile(f.Filters)})
		})
		if err != nil {
			return nil, err
		}
		refs = stale
	}
	if len(refs) == 0 {
		return found, nil
	}
	// The records have the dates, and the filters of objects that were stored
	// before the settings changed.
	return found, o.store.Catalog.ScanObjects(ctx, from.app, refs, func(ref store.ObjectRef, x store.Object) error {
		filters := x.Filters.Filters
		if x.Filters.SettingsVersion != settings.Version {
			var err error
			if filters, err = catalog.Filters(x.Record, settings); err != nil {
				return fmt.Errorf("filters of object %q of %s/%s: %w", ref.ID, from.app, ref.Index, err)
			}
		}
		one := object{filters: ranking.Compile(filters)}
		if from.date != "" {
			one.published, one.dated = catalog.Date(x.Record, from.date)
		}
		return keep(ref.ID, one)
	})
}
