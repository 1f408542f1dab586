package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkpointDir holds, in a folder, a copy of the folder that is being saved.
const checkpointDir = "checkpoint"

// ErrInMemory says that there is no folder.
var ErrInMemory = errors.New(
	"the engine keeps everything in memory, so there is no data folder: start it with --data DIR")

// Format is the number of the form in which this version keeps a folder.
func Format() string { return strconv.Itoa(folderFormat) }

// Checkpoint makes a data folder within the folder, which holds the database as it is at one moment of the
// call, and copies of the named files. Every Commit that returned before the call is in it. The files of the
// database are hard links where they never change, so that the copy takes the room of the log alone, and that
// of what the database replaces while the copy is there. The next Checkpoint and the next Open replace or
// remove it. One call at a time.
func (d *Disk) Checkpoint(files ...string) (dir string, err error) {
	if d.dir == "" {
		return "", ErrInMemory
	}
	if err := errors.Join(d.room(), d.RemoveCheckpoint()); err != nil {
		return "", err
	}
	dir = filepath.Join(d.dir, checkpointDir)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy the data folder within itself: %w", err), d.RemoveCheckpoint())
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	// Tables in place of most of the log: they are links, and to open the copy takes less memory.
	if err := d.db.Flush(); err != nil {
		return "", err
	}
	if err := d.db.Checkpoint(filepath.Join(dir, engineDir), pebble.WithFlushedWAL()); err != nil {
		return "", err
	}
	for _, name := range append(files, formatFile) {
		to := filepath.Join(dir, name)
		text, err := os.ReadFile(filepath.Join(d.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700)); err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	return dir, nil
}

// RemoveCheckpoint removes what Checkpoint has made.
func (d *Disk) RemoveCheckpoint() error { return removeCheckpoint(d.dir) }

func removeCheckpoint(dir string) error {
	return vfs.Default.RemoveAll(filepath.Join(dir, checkpointDir))
}

// inCheckpoint reports whether a file of a database is that of a copy.
func inCheckpoint(name string) bool {
	return filepath.Base(filepath.Dir(filepath.Dir(name))) == checkpointDir
}
