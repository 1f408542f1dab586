package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// inspection is a folder that is read past its damage.
type inspection struct {
	dir    string // of Pebble's files
	fs     *patchedFS
	o      *pebble.Options
	damage []string
}

// Inspect reads a folder that may be damaged, and writes nothing. It calls each with all keys and
// values that can be read, which are valid until it returns, and returns what is damaged, a
// sentence for each file. An error says that the folder cannot be read at all, or is that of
// each. Keys behind a lost deletion are there again.
func Inspect(dir string, join Merge, each func(key, value []byte) error) (damage []string, err error) {
	if _, err := os.Stat(filepath.Join(dir, formatFile)); err != nil {
		return nil, fmt.Errorf("%s is no data folder of the engine: %w", dir, err)
	}
	lock, err := lockFolder(vfs.Default, dir)
	if errors.Is(err, errReadOnly) {
		lock, err = io.NopCloser(nil), nil // so nobody writes it
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := (&Disk{dir: dir}).checkFormat(); err != nil {
		return nil, err
	}
	i := &inspection{dir: filepath.Join(dir, engineDir), fs: newPatchedFS()}
	i.o = options(i.fs, join, slog.New(slog.DiscardHandler))
	i.o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}} // an error says it
	i.o.ReadOnly, i.o.DisableConsistencyCheck = true, true
	i.o.CacheSize = 8 << 20 // each block is read once
	i.o.EnsureDefaults()
	for _, look := range []func() error{i.options, i.logs, i.tables} {
		if err := look(); err != nil {
			return i.damage, err
		}
	}
	db, err := i.open()
	if err != nil {
		return i.damage, err
	}
	all := &Disk{dir: dir, db: pebbleEngine{db}}
	defer func() { err = errors.Join(err, db.Close()) }()
	return i.damage, all.Each(nil, each)
}

func (i *inspection) found(name, format string, args ...any) {
	i.damage = append(i.damage, filepath.Join(engineDir, name)+": "+fmt.Sprintf(format, args...))
}

// files returns the names of files with a prefix and a suffix, with their numbers.
func (i *inspection) files(prefix, suffix string) ([]numbered, error) {
	names, err := i.fs.List(i.dir)
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	var all []numbered
	for _, name := range names {
		middle, ok := strings.CutPrefix(name, prefix)
		middle, is := strings.CutSuffix(middle, suffix)
		if n, err := strconv.ParseUint(middle, 10, 64); ok && is && err == nil {
			all = append(all, numbered{name, n})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

type numbered struct {
	name   string
	number uint64
}

// options hides a file of options that cannot be read: the options are those of this version.
func (i *inspection) options() error {
	files, err := i.files("OPTIONS-", "")
	if err != nil || len(files) == 0 {
		return err
	}
	name := files[len(files)-1].name
	text, err := os.ReadFile(filepath.Join(i.dir, name))
	if err == nil {
		err = i.o.CheckCompatibility(i.dir, string(text))
	}
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "name from file") {
		return fmt.Errorf("the data folder was made by another version of the engine: start it with that one, and "+
			"carry its apps over with affinity dump (%w)", err)
	}
	i.found(name, "the options of the database cannot be read (%v); nothing of the data is in them", err)
	for _, f := range files {
		i.fs.hidden[f.name] = true
	}
	return nil
}

// logs replaces damaged logs by their readable records.
func (i *inspection) logs() error {
	files, err := i.files("", ".log")
	if err != nil {
		return err
	}
	for n, f := range files {
		log, err := os.ReadFile(filepath.Join(i.dir, f.name))
		if err != nil {
			i.found(f.name, "cannot be read (%v): the writes in it are lost", err)
			i.fs.hidden[f.name] = true
			continue
		}
		if !damagedLog(log, f.number, n == len(files)-1) {
			continue
		}
		records, lost := readableRecords(log, uint32(f.number))
		i.found(f.name, "the log of the latest writes is damaged: %d writes can be read, and %d bytes cannot",
			len(records), lost)
		if err := i.fs.patch(f.name, func(file vfs.File) error { return writeLog(file, records) }); err != nil {
			return err
		}
	}
	return nil
}

// missingTable finds the number of a table in an error of Pebble about a missing one.
var missingTable = regexp.MustCompile(`file (\d+) \(type sstable\)`)

// list returns the tables that the list of files names.
func (i *inspection) list() ([]pebble.SSTableInfo, error) {
	for {
		db, err := i.open()
		if err != nil {
			return nil, err
		}
		levels, err := db.SSTables()
		err = errors.Join(err, db.Close())
		if err == nil {
			return slices.Concat(levels...), nil
		}
		// Pebble lists no tables while one is missing, so an empty one takes its place.
		number := missingTable.FindStringSubmatch(err.Error())
		if !errors.Is(err, os.ErrNotExist) || number == nil {
			return nil, fmt.Errorf("list the tables of the data folder: %w", err)
		}
		if err := i.fs.patch(number[1]+".sst", vfs.File.Close); err != nil {
			return nil, err
		}
	}
}

// tables replaces damaged tables by what can be read of them, and missing ones by empty ones.
func (i *inspection) tables() error {
	all, err := i.list()
	if err != nil {
		return err
	}
	for _, t := range all {
		name := fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum))
		r, fault := openTable(filepath.Join(i.dir, name), i.o)
		if fault != nil {
			var lost bool
			err = i.fs.patch(name, func(f vfs.File) (err error) { lost, err = copyTable(f, r, i.o); return err })
			switch {
			case errors.Is(fault, os.ErrNotExist):
				i.found(name, "is missing: its %d bytes of data are lost", t.Size)
			case r == nil:
				i.found(name, "cannot be read (%v): its %d bytes of data are lost", fault, t.Size)
			case lost:
				i.found(name, "is damaged (%v): those of its %d bytes that cannot be read are lost", fault, t.Size)
			default:
				i.found(name, "is damaged (%v), but all of its data can be read", fault)
			}
		}
		if r != nil {
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *inspection) open() (*pebble.DB, error) {
	o := *i.o
	db, err := pebble.Open(i.dir, &o)
	if err != nil {
		return nil, fmt.Errorf("the list of the files of the data folder cannot be read, and without it nothing: use a "+
			"copy of the folder, or an affinity dump (%w)", err)
	}
	return db, nil
}
