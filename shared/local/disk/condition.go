package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Condition is what can be seen of a folder while an engine uses it.
type Condition struct {
	Format string // the number that the folder has
	Reads  string // the number that this version reads
	Free   uint64 // bytes of room on its disk
	Least  uint64 // bytes of room below which an engine refuses events
}

// Look returns the condition of a folder. It opens and writes nothing in it.
func Look(dir string) (c Condition, err error) {
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return c, fmt.Errorf("%s is no data folder that can be read: %w", dir, err)
	}
	c.Format, c.Reads = strings.TrimSpace(string(text)), strconv.Itoa(folderFormat)
	usage, err := diskUsage(vfs.Default, dir)
	c.Free, c.Least = usage.AvailBytes, leastForEvents(usage)
	return c, err
}

// Free returns the bytes of room on the disk of a folder.
func Free(dir string) (uint64, error) {
	usage, err := diskUsage(vfs.Default, dir)
	return usage.AvailBytes, err
}

func diskUsage(fs vfs.FS, dir string) (vfs.DiskUsage, error) {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil {
		return usage, fmt.Errorf("ask for the free room of %s: %w", dir, err)
	}
	return usage, nil
}

// Room that is left when an engine refuses events, beside reserve: for what it has accepted and not processed
// yet, for deletions, and for compactions, which write new tables before they delete the old ones. A
// larger disk holds larger tables, up to a point.
const (
	acceptedBytes  = 128 << 20
	compactedShare = 50 // one in so many bytes of the disk
	compactedBytes = 4 << 30
)

// leastForEvents is how many bytes must be free for new events.
func leastForEvents(of vfs.DiskUsage) uint64 {
	return reserve + acceptedBytes + min(of.TotalBytes/compactedShare, compactedBytes)
}

// NearlyFull returns an error in words if the disk has no room for new events, as opposed to all else
// that is written: see ErrFull.
func (d *Disk) NearlyFull() error {
	if d.dir == "" {
		return nil
	}
	return nearlyFull(d.fs, d.dir)
}

func nearlyFull(fs vfs.FS, dir string) error {
	usage, err := diskUsage(fs, dir)
	if least := leastForEvents(usage); err == nil && usage.AvailBytes < least {
		return fmt.Errorf("the disk of this engine is nearly full: %d MB are free, and new events need %d MB",
			usage.AvailBytes>>20, least>>20)
	}
	return err
}

// Try returns what would keep an engine from using a folder, or from taking events with it, each in words. It leaves
// the folder as it is, and makes none.
func Try(dir string) (faults []error) {
	for _, err := range []error{Writable(dir), tryRoom(dir), tryContent(dir)} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// existing returns a folder, or if there is none the one in which it would be made.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// Writable returns why this user cannot write a folder or make it, or nil.
func Writable(dir string) error {
	dir = existing(dir)
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory: name another folder", dir)
	}
	f, err := os.CreateTemp(dir, ".try-")
	if err != nil {
		return notPermitted(dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func tryRoom(dir string) error {
	if err := nearlyFull(vfs.Default, existing(dir)); err != nil {
		return fmt.Errorf("%w: free some, or use a larger disk", err)
	}
	return nil
}

// tryContent returns what is wrong with a folder that exists and can be read.
func tryContent(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil // Writable says it, or an engine makes the folder
	}
	if err := checkContent(dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, LockFile)); err == nil { // or else nobody has used it
		lock, err := lockFolder(vfs.Default, dir)
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, formatFile)); err == nil {
		if err := (&Disk{dir: dir}).checkFormat(); err != nil {
			return err
		}
	}
	if info.Mode().Perm()&0o077 != 0 && os.Getuid() >= 0 { // Windows has neither
		return fmt.Errorf("other users of this machine may read the data folder %s, which holds keys: chmod 700 %[1]s", dir)
	}
	return nil
}
