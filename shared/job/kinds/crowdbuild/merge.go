package crowdbuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// replaced reports whether an index has statistics of a newer generation. Its
// build may already have dropped the rows of this one.
func (t *task) replaced(ctx context.Context, index string) (bool, error) {
	m, _, err := crowd.ReadManifest(ctx, t.Store.Crowd, t.runner.Log, t.app.ID, index)
	if errors.Is(err, wire.ErrNewer) {
		return true, nil // by a newer version of the engine, since the job began
	}
	return m.Current.Supersedes(t.params.Generation, t.now()), err
}

// merge merges the runs of buckets of an index, from the last checkpoint on.
func (t *task) merge(ctx context.Context) (job.Progress, error) {
	from, err := parsePlace(t.shard.Next, len(t.params.Indexes))
	if err != nil {
		return job.Progress{}, err
	}
	to, err := parsePlace(t.shard.To, len(t.params.Indexes))
	if err != nil {
		return job.Progress{}, err
	}
	index := t.params.Indexes[from.index]
	if replaced, err := t.replaced(ctx, index); err != nil {
		return job.Progress{}, err
	} else if replaced {
		return t.done()
	}
	chosen, _, err := t.runs(ctx, index)
	if err != nil {
		return job.Progress{}, err
	}
	own, err := t.own(ctx, index, chosen)
	if err != nil {
		return job.Progress{}, err
	}
	m := &merger{task: t, own: own, writer: t.Store.Crowd.NewCrowdWriter(ctx, t.params.ref(t.app.ID, index)),
		index: from.index, next: from.bucket}
	err = t.Store.Crowd.ScanCrowdRuns(ctx, t.params.ref(t.app.ID, index), from.bucket, to.bucket,
		func(bucket int, run string, cells [][]byte) error {
			if _, ok := chosen[run]; !ok {
				return nil
			}
			if bucket != m.bucket {
				if err := m.endBucket(); err != nil {
					return err
				}
				m.bucket = bucket
			}
			m.cells = append(m.cells, cells...)
			return nil
		})
	if err == nil {
		err = m.endBucket()
	}
	if errors.Is(err, errPause) {
		return job.Progress{Next: place{from.index, m.next}.String()}, nil
	}
	if err != nil {
		return job.Progress{}, err
	}
	return t.done()
}

// own reads what the objects of an index count of sets.
func (t *task) own(ctx context.Context, index string, chosen runs) (*hashed[int64], error) {
	o := newHashed[int64]()
	return o, t.Store.Crowd.ScanCrowdRuns(ctx, t.params.ref(t.app.ID, index), ownBucket, ownBucket+1,
		func(_ int, run string, cells [][]byte) error {
			if _, ok := chosen[run]; !ok {
				return nil
			}
			return eachObject(cells, func(id string, parts []crowd.Partial) error {
				for _, p := range parts {
					o.add(id, p.Own)
				}
				return nil
			})
		})
}

// merger merges one bucket after the other.
type merger struct {
	*task
	own    *hashed[int64]
	writer *store.CrowdWriter
	index  int
	bucket int
	next   int // the first bucket that is not merged
	cells  [][]byte
}

// endBucket writes the statistics of the objects of the current bucket. It
// returns errPause if the time is over.
func (m *merger) endBucket() error {
	if len(m.cells) == 0 {
		return nil
	}
	var counts []crowd.Counted
	err := eachObject(m.cells, func(id string, parts []crowd.Partial) error {
		count, recent, o := crowd.Merge(parts, m.own.of)
		counts = append(counts, crowd.Counted{ObjectID: id, Count: count, Recent: recent})
		return m.writer.Object(id, o.AppendBinary(nil))
	})
	if err != nil {
		return err
	}
	if err := m.writer.Counts(m.bucket, slices.Collect(crowd.PackCounts(counts))); err != nil {
		return err
	}
	if err := m.writer.Flush(); err != nil {
		return err
	}
	m.next, m.cells = m.bucket+1, nil
	if err := m.progress(job.Progress{Next: place{m.index, m.next}.String()}); err != nil {
		return err
	}
	if !m.now().Before(m.until) {
		return errPause
	}
	return nil
}

// eachObject calls fn for each object of the cells of runs, in order, with what
// the runs say of it. It decodes one object of each cell at a time.
func eachObject(cells [][]byte, fn func(id string, parts []crowd.Partial) error) error {
	type head struct {
		reader *crowd.PartReader
		part   crowd.Partial
	}
	var heads []*head
	advance := func(h *head) (bool, error) {
		part, ok, err := h.reader.Next()
		h.part = part
		return ok, err
	}
	for _, cell := range cells {
		r, err := crowd.NewPartReader(cell)
		if err != nil {
			return err
		}
		h := &head{reader: r}
		if ok, err := advance(h); err != nil {
			return err
		} else if ok {
			heads = append(heads, h)
		}
	}
	for len(heads) > 0 {
		id := heads[0].part.ObjectID
		for _, h := range heads {
			id = min(id, h.part.ObjectID)
		}
		var parts []crowd.Partial
		left := heads[:0]
		for _, h := range heads {
			ok := true
			if h.part.ObjectID == id {
				parts = append(parts, h.part)
				var err error
				if ok, err = advance(h); err != nil {
					return err
				}
			}
			if ok {
				left = append(left, h)
			}
		}
		heads = left
		if err := fn(id, parts); err != nil {
			return err
		}
	}
	return nil
}

// frequencies counts the objects of an index and those that carry each filter, and lists the
// objects that users turn to most of each filter.
func (t *task) frequencies(ctx context.Context, index string) (job.Progress, error) {
	if replaced, err := t.replaced(ctx, index); err != nil {
		return job.Progress{}, err
	} else if replaced {
		return t.done()
	}
	counts, err := t.counts(ctx, index)
	if err != nil {
		return job.Progress{}, err
	}
	likes := crowd.NewLikes(t.MaxFilters)
	found, objects, err := t.countFilters(ctx, index, func(id string, filters []event.Filter) {
		likes.Add(id, counts.of(id), filters)
	})
	if err != nil {
		return job.Progress{}, err
	}
	w, n := t.Store.Crowd.NewCrowdWriter(ctx, t.params.ref(t.app.ID, index)), 0
	if bound := found.Bound(); bound > 0 {
		t.runner.Log.LogAttrs(ctx, slog.LevelWarn,
			"document frequencies are not exact: the index has too many different filters",
			slog.String("app", t.app.ID), slog.String("index", index), slog.Int("bound", bound))
	}
	if bound := likes.Bound(); bound > 0 {
		t.runner.Log.LogAttrs(ctx, slog.LevelWarn,
			"the most popular objects are not listed for each filter: the index has too many different filters",
			slog.String("app", t.app.ID), slog.String("index", index), slog.Int("bound", bound))
	}
	for f, objects := range likes.All() {
		if err := w.Liked(f, crowd.AppendLiked(nil, objects)); err != nil {
			return job.Progress{}, err
		}
	}
	for cell := range crowd.PackFrequencies(found.Frequencies()) {
		if err := w.Frequencies(n, cell); err != nil {
			return job.Progress{}, err
		}
		n++
	}
	header, err := encodeCatalog(objects)
	if err != nil {
		return job.Progress{}, err
	}
	if err := w.RunHeader(catalogName, header); err != nil {
		return job.Progress{}, err
	}
	return t.done()
}

// maxStale is how many objects of other settings are read at a time.
const maxStale = 500

// countFilters counts the objects of an index and those that carry each filter, and calls each
// with the filters of each object.
// Filters that were stored under other settings count as the current ones derive
// them from the records.
func (t *task) countFilters(ctx context.Context, index string,
	each func(id string, filters []event.Filter)) (found *crowd.FilterCounter, objects int, err error) {
	settings, err := t.Settings.IndexSettings(ctx, t.app.ID, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return nil, 0, fmt.Errorf("read settings of index %s/%s: %w", t.app.ID, index, err)
	}
	found = crowd.NewFilterCounter(t.MaxFilters)
	var stale []store.ObjectRef
	derive := func() error {
		err := t.Store.Catalog.ScanObjects(ctx, t.app.ID, stale, func(ref store.ObjectRef, o store.Object) error {
			filters, err := catalog.Filters(o.Record, settings)
			if err != nil {
				return fmt.Errorf("filters of object %q of %s/%s: %w", ref.ID, t.app.ID, index, err)
			}
			objects++
			found.Add(filters)
			each(ref.ID, filters)
			return nil
		})
		stale = stale[:0]
		return err
	}
	err = t.Store.Catalog.ScanObjectFilters(ctx, t.app.ID, index, func(id string, f store.ObjectFilters) error {
		if f.SettingsVersion != settings.Version {
			if stale = append(stale, store.ObjectRef{Index: index, ID: id}); len(stale) < maxStale {
				return nil
			}
			return derive()
		}
		objects++
		found.Add(f.Filters)
		each(id, f.Filters)
		return nil
	})
	if err == nil && len(stale) > 0 {
		err = derive()
	}
	return found, objects, err
}

// maxSwaps bounds the attempts to swap a manifest that other builds keep
// changing.
const maxSwaps = 10

// swap makes the generation of the job the current one of each index, and drops
// older ones.
func (t *task) swap(ctx context.Context) (job.Progress, error) {
	totals, err := t.runner.Jobs.Totals(ctx, t.app.ID, t.job.ID)
	if err != nil {
		return job.Progress{}, fmt.Errorf("read the totals of %s: %w", t.job.ID, err)
	}
	for _, index := range t.params.Indexes {
		if err := t.swapIndex(ctx, index, totals); err != nil {
			return job.Progress{}, err
		}
	}
	return t.done()
}

func (t *task) swapIndex(ctx context.Context, index string, totals job.Totals) error {
	for range maxSwaps {
		m, stored, err := crowd.ReadManifest(ctx, t.Store.Crowd, t.runner.Log, t.app.ID, index)
		switch {
		case errors.Is(err, wire.ErrNewer): // see replaced
			return nil
		case err != nil:
			return err
		case m.Current.Supersedes(t.params.Generation, t.now()): // a newer build has ended before
			return nil
		case m.Current.Name == t.params.Generation:
			return t.drop(ctx, index, m)
		}
		current, err := t.generation(ctx, index, totals)
		if err != nil {
			return err
		}
		if _, err := crowd.SwapManifest(ctx, t.Store.Crowd, t.app.ID, index, stored,
			crowd.Manifest{Current: current, Previous: m.Current.Name}); err != nil {
			return err
		}
	}
	return fmt.Errorf("swap crowd statistics of %s/%s: they changed %d times", t.app.ID, index, maxSwaps)
}

// generation describes the finished generation of an index.
func (t *task) generation(ctx context.Context, index string, totals job.Totals) (crowd.Generation, error) {
	chosen, objects, err := t.runs(ctx, index)
	if err == nil && objects < 0 {
		err = fmt.Errorf("the objects of %s/%s are not counted", t.app.ID, index)
	}
	if err != nil {
		return crowd.Generation{}, err
	}
	p := t.params
	g := crowd.Generation{
		Name: p.Generation, Job: t.job.ID, AsOf: p.AsOf.UnixMilli(), BuiltAt: t.now().UnixMilli(), HalfLife: p.HalfLife,
		ScoringVersion: p.ScoringVersion, Objects: objects, Share: p.Share, Read: totals.Counts[job.CountEvents],
	}
	for _, r := range chosen {
		g.Events += r.Events
		g.Users += r.Users
	}
	return g, nil
}

// drop deletes what the current generation no longer needs: its runs, and
// generations before the previous one.
func (t *task) drop(ctx context.Context, index string, m crowd.Manifest) error {
	dropped := 0
	for _, region := range t.app.Everywhere() {
		at := t.Store.In(region).Crowd
		if err := at.DropCrowdRuns(ctx, t.params.ref(t.app.ID, index)); err != nil {
			return err
		}
		err := at.DropCrowd(ctx, t.app.ID, index, func(generation string) bool {
			// Newer ones are being built.
			obsolete := crowd.ValidGeneration(generation) && generation < m.Current.Name && generation != m.Previous
			if obsolete {
				dropped++
			}
			return obsolete
		})
		if err != nil {
			return err
		}
	}
	t.runner.Log.LogAttrs(ctx, slog.LevelInfo, "crowd statistics swapped", slog.String("app", t.app.ID),
		slog.String("index", index),
		slog.Int("objects", m.Current.Objects), slog.Int64("events", m.Current.Events), slog.Int("dropped", dropped))
	return nil
}
