package page

import (
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// recordTTL is how long a change or a deletion of a record may go unnoticed, as in
	// ingest and in a ranking.
	recordTTL = 5 * time.Second
	// recordsWait is how long a page waits for records, all together.
	recordsWait = 500 * time.Millisecond
	// recordsBytes bounds the records in memory.
	recordsBytes = 48 << 20
)

// recordKey names what a page shows of an object.
type recordKey struct {
	app, index, id string
	date           string // the attribute by which the feed goes
	post           bool   // the post of WordPress, not the record
}

// record is what a page shows of an object. Without text there is nothing to show: the
// catalog does not hold the object, or it has no post.
type record struct {
	text  []byte // as it was stored
	at    int64  // ms, of the date attribute
	dated bool
}

func recordSize(k recordKey, r record) int {
	return len(k.app) + len(k.index) + len(k.id) + len(k.date) + len(r.text)
}

// records returns what a page shows of candidates, by objectID. An object whose read has
// not ended in time is not in the map; late says so.
func (r *Reader) records(ctx context.Context, app string, q Request, ids []string,
	late <-chan struct{}) (map[string]record, error) {
	keys := make([]recordKey, len(ids))
	for i, id := range ids {
		keys[i] = recordKey{app, q.Feed.Index, id, q.Feed.Date, q.Format == feed.WordPress}
	}
	found, err := r.kept.Get(ctx, cache.Ask[recordKey, record]{Group: app, Keys: keys, Late: late, Load: r.readRecords})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	byID := make(map[string]record, len(found))
	for i, e := range found {
		if e != nil {
			byID[ids[i]] = e.Value
		}
	}
	return byID, err
}

// readRecords reads records of one index.
func (r *Reader) readRecords(ctx context.Context, keys []recordKey) (map[recordKey]record, error) {
	first := keys[0]
	read := make(map[recordKey]record, len(keys)) // what it leaves out does not exist
	refs := make([]store.ObjectRef, len(keys))
	for i, k := range keys {
		refs[i] = store.ObjectRef{Index: first.index, ID: k.id}
	}
	err := r.store.ScanRecords(ctx, first.app, refs, func(ref store.ObjectRef, text []byte) error {
		if err := admission.Take(ctx, int64(len(text))); err != nil {
			return err
		}
		k := first
		k.id = ref.ID
		var got record
		got.at, got.dated = catalog.Date(text, k.date)
		if got.text = text; k.post {
			got.text = catalog.Post(text)
		}
		read[k] = got
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %d records of %s/%s: %w", len(keys), first.app, first.index, err)
	}
	return read, nil
}
