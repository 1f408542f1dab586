// Package disk keeps the data of a local engine in a folder: an ordered map of
// keys to values (Pebble) that survives the end of the process at any moment. A failure
// of the machine may lose the last second (see lateFS), or, with Settings.Sync, only what
// Disk.Sync has not waited for. One process uses a folder at a time. InMemory is the same map
// without a folder.
//
// Pebble, bbolt and SQLite were compared with rows of the engine's size on one
// machine: 192,000, 45,000 and 15,000 events per second, with 114, 223 and 160 MB
// of memory at 300,000 events. bbolt and SQLite have fewer dependencies (3 and 9
// modules against 32). bbolt maps its file, so that its memory grows with the data.
package disk

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// folderFormat is the number of the form in which this version keeps a folder: of the options of
// Pebble, and of everything that the engine stores. Another number is refused.
const folderFormat = 10

// Names in the folder.
const (
	formatFile = "format"
	LockFile   = "lock" // held while a process uses the folder; empty
	engineDir  = "db"
)

// reserve is how many bytes must be free for a write: room to finish what is
// written already. Pebble ends the process if its log cannot be written.
const reserve = 128 << 20

const (
	cacheBytes    = 128 << 20
	memTableBytes = 64 << 20
)

// ErrFull says that a write was refused because the disk has too little room. What
// was written before is safe, and reads go on.
var ErrFull = fmt.Errorf("the disk of the data folder has less than %d MB of room: %w", reserve>>20, syscall.ENOSPC)

// Disk is an open folder, or the same in memory. It is safe for concurrent use.
type Disk struct {
	dir  string // "" in memory; then fs, lock and late are nil
	fs   vfs.FS
	lock io.Closer
	late *lateFS // nil with Settings.Sync, too
	db   engine
	sync *pebble.WriteOptions // how Commit writes
	group

	version, proven string // of Settings.Version, and of VersionFile
}

// Settings say how a folder is opened.
type Settings struct {
	// Sync makes Disk.Sync wait. Commit then waits for nothing, so that the end of the process, too, may lose what
	// Disk.Sync has not waited for.
	Sync bool
	// Version is that of the program. The folder is copied within itself before another version than the last one
	// that was proven with it uses it: see Disk.Prove. Empty: it is not.
	Version string
	// Files hold the database. Nil: those of the system.
	Files vfs.FS
}

// Open opens a folder, or makes it. It recovers what an earlier process had written
// when it ended. join joins what Batch.Join has added. log gets what Pebble reports as
// faults.
func Open(dir string, join Merge, log *slog.Logger) (*Disk, error) {
	return OpenWith(dir, Settings{}, join, log)
}

// OpenWith is Open with settings.
func OpenWith(dir string, how Settings, join Merge, log *slog.Logger) (*Disk, error) {
	fs := how.Files
	if fs == nil {
		fs = vfs.Default
	}
	// Only its owner may read the folder: it holds keys, and data about persons.
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = checkContent(dir)
	}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, notPermitted(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the data folder: %w", err)
	}
	lock, err := lockFolder(fs, dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir, fs: fs, lock: lock, sync: pebble.Sync}
	err = errors.Join(removeCheckpoint(dir), d.checkFormat(), d.room())
	if err == nil {
		err = d.keepBefore(how.Version, log)
	}
	if err != nil {
		if errors.Is(err, ErrFull) {
			err = fmt.Errorf("open the data folder %s: %w: free some, or copy the folder to a larger disk", dir, err)
		}
		return nil, errors.Join(err, lock.Close())
	}
	if how.Sync {
		d.sync = pebble.NoSync
	} else {
		d.late = newLateFS(fs, log)
		fs = d.late
	}
	if d.db, err = openEngine(filepath.Join(dir, engineDir), options(fs, join, log)); err != nil {
		d.late.close()
		return nil, errors.Join(fmt.Errorf("open the data folder %s: %w; `affinity data check %[1]s` says what is "+
			"damaged, and `affinity data salvage %[1]s NEW` copies what can be read to a new folder", dir, err), lock.Close())
	}
	if how.Sync {
		d.begin(d.db)
	}
	return d, nil
}

var errReadOnly = errors.New("it cannot be written")

// lockFolder keeps other processes out of a folder. The error is errReadOnly if this one cannot
// write the folder.
func lockFolder(fs vfs.FS, dir string) (io.Closer, error) {
	lock, err := fs.Lock(filepath.Join(dir, LockFile))
	switch {
	case err == nil:
		return lock, nil
	case errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("the data folder %s is on a file system that is mounted read-only: mount it writable, or "+
			"copy the folder to another disk (%w: %w)", dir, errReadOnly, err)
	case errors.Is(err, os.ErrPermission):
		return nil, notPermitted(dir, err)
	}
	if _, made := errors.AsType[*os.PathError](err); made {
		return nil, fmt.Errorf("make the lock of the data folder %s: %w", dir, err)
	}
	return nil, fmt.Errorf("the data folder %s is in use by another process: end that process, or use another folder "+
		"(%w)", dir, err)
}

func notPermitted(dir string, err error) error {
	return fmt.Errorf("this user may not write the folder %s: change its owner, or use another folder "+
		"(%w: %w)", dir, errReadOnly, err)
}

// openEngine opens the engine of a folder, and a new one twice: Pebble writes the first log of
// a new engine in an older form, in which damage looks like the end of the log.
func openEngine(dir string, o *pebble.Options) (engine, error) {
	_, err := o.FS.Stat(dir)
	db, openErr := pebble.Open(dir, o)
	if openErr != nil || err == nil {
		return pebbleEngine{db}, openErr
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	db, err = pebble.Open(dir, o)
	return pebbleEngine{db}, err
}

func options(fs vfs.FS, join Merge, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS: fs, FormatMajorVersion: pebble.FormatValueSeparation, Merger: merger(join), Logger: logger{log},
		CacheSize: cacheBytes, MemTableSize: memTableBytes, MemTableStopWritesThreshold: 4, L0CompactionThreshold: 4,
	}
	o.EventListener = &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
		log.Error("the data folder is damaged: `affinity data check` says what, and `affinity data salvage` copies what can "+
			"be read to a new folder", "error", info.String())
		os.Exit(1)
	}}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// checkContent refuses a folder that holds anything else.
func checkContent(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == formatFile {
			return nil
		}
	}
	for _, e := range entries {
		if e.Name() != LockFile { // a process that ended early leaves one
			return fmt.Errorf("the folder %s is no data folder of the engine: it holds %s and no file %s; use a new or "+
				"an empty one", dir, e.Name(), formatFile)
		}
	}
	return nil
}

// checkFormat reads the number of the folder's format, or writes it to a new folder.
func (d *Disk) checkFormat() error {
	text, err := os.ReadFile(filepath.Join(d.dir, formatFile))
	if errors.Is(err, os.ErrNotExist) {
		return d.WriteFile(formatFile, []byte(strconv.Itoa(folderFormat)+"\n"))
	}
	if err != nil {
		return fmt.Errorf("open the data folder: %w", err)
	}
	have := strings.TrimSpace(string(text))
	n, err := strconv.Atoi(have)
	if err == nil && n == folderFormat {
		return nil
	}
	remedy := "start it with the version that made it and carry its apps over with affinity dump, or use another folder"
	switch {
	case n > folderFormat && d.hasBefore():
		remedy = "a newer version has used it: install that one again, or put the copy of before, " +
			filepath.Join(d.dir, beforeDir) + ", in its place"
	case n > folderFormat:
		remedy = "a newer version has used it: install that one again, or restore a backup of before"
	}
	return fmt.Errorf("the data folder %s has format %q and this version reads format %d: %s", d.dir, have,
		folderFormat, remedy)
}

// ReadFile returns a file of the folder, or an error that is os.ErrNotExist.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	if d.dir == "" {
		return nil, os.ErrNotExist
	}
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	return data, nil
}

// WriteFile makes a file of the folder that only its owner may read. After a crash it
// is whole or not there.
func (d *Disk) WriteFile(name string, data []byte) error {
	if d.dir == "" {
		return nil
	}
	path := filepath.Join(d.dir, name)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the data folder: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the data folder: %w", err)
	}
	if err := syncDir(vfs.Default, d.dir); err != nil {
		return fmt.Errorf("write the data folder: %w", err)
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	folder, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// room returns ErrFull if the disk has too little of it.
func (d *Disk) room() error {
	if d.dir == "" {
		return nil
	}
	usage, err := diskUsage(d.fs, d.dir)
	if err == nil && usage.AvailBytes < reserve {
		err = ErrFull
	}
	return err
}

// Close closes the folder, so that another process can open it.
func (d *Disk) Close() error {
	d.end()
	err := d.db.Close()
	if d.dir == "" {
		return err
	}
	d.late.close()
	return errors.Join(err, d.lock.Close())
}

// logger passes on what Pebble says, but not its usual doings.
type logger struct{ log *slog.Logger }

func (logger) Infof(string, ...any) {}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("data folder", "error", fmt.Sprintf(format, args...))
}

// Fatalf ends the process: Pebble cannot go on. What was acknowledged is recovered by
// the next start.
func (l logger) Fatalf(format string, args ...any) {
	l.log.Error("the data folder cannot be written; nothing that was acknowledged is lost: repair the disk and "+
		"start again", "error", fmt.Sprintf(format, args...))
	exit(1)
}

// exit ends the process, but not a test.
var exit = os.Exit
