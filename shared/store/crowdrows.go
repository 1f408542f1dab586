package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
)

// CrowdRef names a generation of the statistics of an index.
type CrowdRef struct{ App, Index, Generation string }

func (r CrowdRef) key(kind, name string) string {
	return crowdKey(r.App, r.Index, r.Generation, kind, name)
}

// rows returns the rows of one kind.
func (r CrowdRef) rows(kind string) bigtable.RowRange { return bigtable.PrefixRange(r.key(kind, "")) }

// String returns the form in which errors and log lines name statistics.
func (r CrowdRef) String() string { return r.App + "/" + r.Index + " " + r.Generation }

// ReadCrowdIndex streams the statistics of all objects of a generation: the cells of counts, then those
// of document frequencies. It returns the first error of either function.
func (s Crowd) ReadCrowdIndex(ctx context.Context, ref CrowdRef, counts, frequencies func(cell []byte) error) error {
	for _, part := range []struct {
		kind string
		add  func([]byte) error
	}{{crowdCounts, counts}, {crowdFrequencies, frequencies}} {
		err := s.scanCrowd(ctx, ref, ref.rows(part.kind), func(_ string, cells []bigtable.ReadItem) error {
			for _, cell := range cells {
				if err := part.add(cell.Value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadCrowdObjects reads the pairs of objects in one request. It returns no entry
// for an object without statistics.
func (s Crowd) ReadCrowdObjects(ctx context.Context, ref CrowdRef, objectIDs []string) (map[string][]byte, error) {
	return readCrowd(ctx, s.db, ref, objectIDs, func(id string) string { return ref.key(crowdObject, id) })
}

// ReadCrowdLiked reads the objects of filters in one request. It returns no entry for a filter
// without any.
func (s Crowd) ReadCrowdLiked(ctx context.Context, ref CrowdRef, f []event.Filter) (map[event.Filter][]byte, error) {
	return readCrowd(ctx, s.db, ref, f, func(f event.Filter) string { return ref.key(crowdLiked, likedName(f)) })
}

// readCrowd reads the rows of items by key, and returns those that exist.
func readCrowd[T comparable](ctx context.Context, s *Store, ref CrowdRef, items []T,
	key func(T) string) (map[T][]byte, error) {
	found, byKey := make(map[T][]byte, len(items)), make(map[string]T, len(items))
	for _, keys := range keyChunks(items, key, byKey) {
		err := s.scanCrowd(ctx, ref, keys, func(key string, cells []bigtable.ReadItem) error {
			for _, cell := range cells {
				found[byKey[key]] = cell.Value
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// scanCrowd streams rows of a generation. It returns the first error from fn.
func (s *Store) scanCrowd(ctx context.Context, ref CrowdRef, rows bigtable.RowSet,
	fn func(key string, cells []bigtable.ReadItem) error) error {
	var failed error
	err := s.tables.of(ref.App, allUsers).crowd.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		if failed = fn(r.Key(), r[familyGeneration]); failed != nil {
			failed = fmt.Errorf("row %q: %w", r.Key(), failed)
		}
		return failed == nil
	}, newestCells)
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("read crowd statistics of %s: %w", ref, err)
	}
	return nil
}

// CrowdWriter writes rows of a generation in bulk. Nothing reads them before a
// manifest names the generation or, for a run, before its header is written.
type CrowdWriter struct {
	ref   CrowdRef
	table *bigtable.Table
	bulk  *bulk
}

// NewCrowdWriter returns a writer. The caller must call Flush at the end.
func (s Crowd) NewCrowdWriter(ctx context.Context, ref CrowdRef) *CrowdWriter {
	return &CrowdWriter{ref: ref, table: s.tables.of(ref.App, allUsers).crowd, bulk: newBulk(ctx)}
}

// write replaces a row.
func (w *CrowdWriter) write(kind, name string, cells [][]byte) error {
	m, size := bigtable.NewMutation(), 0
	m.DeleteCellsInFamily(familyGeneration)
	for i, cell := range cells {
		column := columnCrowd
		if len(cells) > 1 {
			column += hex4(i)
		}
		m.Set(familyGeneration, column, bigtable.Now(), cell)
		size += len(cell)
	}
	if err := w.bulk.add(w.table, w.ref.key(kind, name), m, size); err != nil {
		return fmt.Errorf("write crowd statistics of %s: %w", w.ref, err)
	}
	return nil
}

// Object writes the pairs of an object.
func (w *CrowdWriter) Object(id string, pairs []byte) error {
	return w.write(crowdObject, id, [][]byte{pairs})
}

// likedName returns the part of a key that names a filter. The value stands last.
func likedName(f event.Filter) string { return url.QueryEscape(f.Facet) + "," + f.Value }

// Liked writes the objects that users turn to most of those that carry a filter.
func (w *CrowdWriter) Liked(f event.Filter, objects []byte) error {
	return w.write(crowdLiked, likedName(f), [][]byte{objects})
}

// Counts writes the packed counts of the objects of a bucket.
func (w *CrowdWriter) Counts(bucket int, cells [][]byte) error {
	return w.write(crowdCounts, hex4(bucket), cells)
}

// Frequencies writes a cell of packed document frequencies.
func (w *CrowdWriter) Frequencies(n int, cell []byte) error {
	return w.write(crowdFrequencies, hex4(n), [][]byte{cell})
}

// RunParts writes the parts of a run that belong to a bucket.
func (w *CrowdWriter) RunParts(bucket int, run string, cells [][]byte) error {
	return w.write(crowdRun, hex4(bucket)+","+run, cells)
}

// RunHeader writes the header of a run, after all of its parts.
func (w *CrowdWriter) RunHeader(run string, header []byte) error {
	if err := w.Flush(); err != nil {
		return err
	}
	if err := w.write(crowdHeader, run, [][]byte{header}); err != nil {
		return err
	}
	return w.Flush()
}

// Flush writes the rows that wait.
func (w *CrowdWriter) Flush() error {
	if err := w.bulk.flush(); err != nil {
		return fmt.Errorf("write crowd statistics of %s: %w", w.ref, err)
	}
	return nil
}

// CrowdRunHeaders returns the headers of the complete runs of a generation.
func (s Crowd) CrowdRunHeaders(ctx context.Context, ref CrowdRef) (map[string][]byte, error) {
	headers, prefix := map[string][]byte{}, ref.key(crowdHeader, "")
	err := s.scanCrowd(ctx, ref, ref.rows(crowdHeader), func(key string, cells []bigtable.ReadItem) error {
		for _, cell := range cells {
			headers[strings.TrimPrefix(key, prefix)] = cell.Value
		}
		return nil
	})
	return headers, err
}

// ScanCrowdRuns streams the parts of runs in the buckets from one up to, but not
// including, another: by bucket, then run. fn may keep the cells.
func (s Crowd) ScanCrowdRuns(ctx context.Context, ref CrowdRef, from, to int,
	fn func(bucket int, run string, cells [][]byte) error) error {
	prefix := ref.key(crowdRun, "")
	rows := bigtable.NewRange(prefix+hex4(from), prefix+hex4(to))
	return s.scanCrowd(ctx, ref, rows, func(key string, items []bigtable.ReadItem) error {
		name, run, _ := strings.Cut(strings.TrimPrefix(key, prefix), ",")
		bucket, err := parseHex4(name)
		if err != nil {
			return err
		}
		cells := make([][]byte, len(items))
		for i, item := range items {
			cells[i] = item.Value
		}
		return fn(bucket, run, cells)
	})
}

// DropCrowdRuns deletes the headers and parts of the runs of a generation.
func (s Crowd) DropCrowdRuns(ctx context.Context, ref CrowdRef) error {
	if err := s.dropCrowd(ctx, ref, ref.rows(crowdHeader)); err != nil {
		return err
	}
	return s.dropCrowd(ctx, ref, ref.rows(crowdRun))
}

// DropCrowd deletes the generations of an index that obsolete selects, with all
// of their rows. crowd.ValidGeneration says what names one.
func (s Crowd) DropCrowd(ctx context.Context, app, index string, obsolete func(generation string) bool) error {
	prefix := indexPrefix(app, index)
	from, end := prefix+"\x00", prefixEnd(prefix) // behind the manifest
	for from < end {
		next := ""
		err := s.tables.of(app, allUsers).crowd.ReadRows(ctx, bigtable.NewRange(from, end), func(r bigtable.Row) bool {
			next = r.Key()
			return false
		}, keysOnly, bigtable.LimitRows(1))
		if err != nil {
			return fmt.Errorf("list crowd statistics of %s/%s: %w", app, index, err)
		}
		if next == "" {
			return nil
		}
		generation, _, _ := strings.Cut(strings.TrimPrefix(next, prefix), ",")
		of := prefix + generation + ","
		from = prefixEnd(of)
		if !obsolete(generation) {
			continue
		}
		if err := s.dropCrowd(ctx, CrowdRef{app, index, generation}, bigtable.PrefixRange(of)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) dropCrowd(ctx context.Context, ref CrowdRef, rows bigtable.RowRange) error {
	b, table := newBulk(ctx), s.tables.of(ref.App, allUsers).crowd
	var failed error
	err := table.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		m := bigtable.NewMutation()
		m.DeleteRow()
		failed = b.add(table, r.Key(), m, 0)
		return failed == nil
	}, keysOnly)
	if err := errors.Join(err, failed, b.flush()); err != nil {
		return fmt.Errorf("drop crowd statistics of %s: %w", ref, err)
	}
	return nil
}
