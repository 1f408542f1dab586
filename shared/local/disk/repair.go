package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// patchedFS shows a folder with some of its files hidden or replaced. The folder itself is
// only read.
type patchedFS struct {
	vfs.FS
	hidden  map[string]bool
	patches *vfs.MemFS // the files that replace others, by their names
}

func newPatchedFS() *patchedFS {
	return &patchedFS{FS: vfs.Default, hidden: map[string]bool{}, patches: vfs.NewMem()}
}

// patch replaces a file by what write writes.
func (p *patchedFS) patch(name string, write func(vfs.File) error) error {
	f, err := p.patches.Create(filepath.Base(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return write(f)
}

func (p *patchedFS) of(name string) (vfs.FS, string) {
	if _, err := p.patches.Stat(filepath.Base(name)); err == nil {
		return p.patches, filepath.Base(name)
	}
	return p.FS, name
}

// Open opens a file for reading.
func (p *patchedFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	fs, name := p.of(name)
	return fs.Open(name, o...)
}

// Stat describes a file.
func (p *patchedFS) Stat(name string) (vfs.FileInfo, error) {
	fs, name := p.of(name)
	return fs.Stat(name)
}

// List returns the names of the files of a folder.
func (p *patchedFS) List(dir string) ([]string, error) {
	names, err := p.FS.List(dir)
	patches, patchesErr := p.patches.List("")
	names = slices.DeleteFunc(append(names, patches...), func(name string) bool { return p.hidden[name] })
	slices.Sort(names)
	return slices.Compact(names), errors.Join(err, patchesErr)
}

// Lock locks nothing: the folder's own lock is held, or nobody can write the folder.
func (p *patchedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// logReader returns a reader of a log of Pebble. Pebble does not export the type of the number.
func logReader[N ~uint64](newReader func(io.Reader, N) *record.Reader, log []byte, number uint64) *record.Reader {
	return newReader(bytes.NewReader(log), N(number))
}

// damagedLog reports whether Pebble refuses a log. What it takes for the end of the last log, it
// takes for damage in an earlier one.
func damagedLog(log []byte, number uint64, last bool) bool {
	r := logReader(record.NewReader, log, number)
	for {
		content, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, content)
		}
		if err != nil {
			return err != io.EOF && !(last && errors.Is(err, record.ErrUnexpectedEOF))
		}
	}
}

// readableRecords returns the whole records of a log, and how many bytes of damage lie before
// the last one. Behind damage it goes on with the next chunk, or else with the next block.
func readableRecords(log []byte, number uint32) (records [][]byte, lost int) {
	var parts []byte
	whole, bad := false, 0
	for at := 0; at+chunkHeader <= len(log); {
		left := logBlock - at%logBlock
		if left < chunkHeader {
			at += left
			continue
		}
		size, kind := chunkAt(log, at, number)
		if kind == 0 {
			next := at + left
			if _, after := chunkAt(log, at+size, number); size > 0 && after != 0 {
				next = at + size
			}
			bad += next - at
			at, whole = next, false
			continue
		}
		lost, bad = lost+bad, 0
		first, last := kind == firstKind || kind == firstKind+1, kind == firstKind || kind == lastKind
		if first {
			parts, whole = nil, true
		}
		if parts = append(parts, log[at+chunkHeader:at+size]...); whole && last {
			records = append(records, parts)
		} else if !whole {
			lost += size
		}
		whole = whole && !last
		at += size
	}
	return records, lost
}

// chunkAt returns the size and the kind of a chunk of a log. The kind is 0 if there is none, or a
// damaged one; the size is then that of its header, or 0 if that cannot be right.
func chunkAt(log []byte, at int, number uint32) (size int, kind byte) {
	if at+chunkHeader > len(log) {
		return 0, 0
	}
	kind = log[at+atKind]
	size = chunkHeader + int(binary.LittleEndian.Uint16(log[at+atLength:]))
	if kind < firstKind || kind > lastKind || at%logBlock+size > logBlock || at+size > len(log) {
		return 0, 0
	}
	if binary.LittleEndian.Uint32(log[at+atKind+1:]) != number ||
		checksum(log[at+atKind:at+size]) != binary.LittleEndian.Uint32(log[at:]) {
		return size, 0
	}
	return size, kind
}

// writeLog writes records as a log.
func writeLog(f vfs.File, records [][]byte) error {
	w := record.NewWriter(f)
	for _, r := range records {
		if _, err := w.WriteRecord(r); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), f.Close())
}

// openTable opens a table of Pebble and verifies all of it. The reader is nil if not even its
// index can be read.
func openTable(path string, o *pebble.Options) (*sstable.Reader, error) {
	f, err := vfs.Default.Open(path)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
	if err != nil {
		return nil, err // it has closed the file
	}
	return r, r.ValidateBlockChecksums()
}

// copyTable writes a table with what can be read of another one: the entries before its first
// damaged block, and those behind its last one. r is nil if nothing can be.
func copyTable(f vfs.File, r *sstable.Reader, o *pebble.Options) (lost bool, err error) {
	w := sstable.NewRawWriter(objstorageprovider.NewFileWritable(f),
		o.MakeWriterOptions(0, pebble.FormatValueSeparation.MaxTableFormat()))
	if r == nil {
		return true, w.Close()
	}
	all, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return true, w.Close()
	}
	type entry struct {
		key   pebble.InternalKey
		value []byte
	}
	var behind []entry // of the damage, the last first
	end := pebble.InternalKey{}
	for kv := all.First(); kv != nil && err == nil; kv = all.Next() {
		value, _, faulty := kv.Value(nil)
		if faulty != nil {
			break
		}
		end = kv.K.Clone()
		err = w.Add(kv.K, value, false)
	}
	if lost = all.Error() != nil; lost {
		for kv := all.Last(); kv != nil; kv = all.Prev() {
			value, _, faulty := kv.Value(nil)
			if faulty != nil || end.UserKey != nil && pebble.DefaultComparer.Compare(kv.K.UserKey, end.UserKey) <= 0 {
				break
			}
			behind = append(behind, entry{kv.K.Clone(), bytes.Clone(value)})
		}
	}
	for _, e := range slices.Backward(behind) {
		err = errors.Join(err, w.Add(e.key, e.value, false))
	}
	deleted, deletedErr := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	lost = lost || deletedErr != nil
	if deletedErr == nil && deleted != nil {
		span, spanErr := deleted.First()
		for ; span != nil && spanErr == nil; span, spanErr = deleted.Next() {
			err = errors.Join(err, w.EncodeSpan(*span))
		}
		lost = lost || spanErr != nil
		deleted.Close()
	}
	_ = all.Close() // its error is that of the damage
	if err != nil {
		return true, fmt.Errorf("copy a table: %w", errors.Join(err, w.Close()))
	}
	return lost, w.Close()
}
