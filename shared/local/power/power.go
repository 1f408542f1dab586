// Package power is a disk in memory that loses what is not synced when the power fails, for tests.
package power

import (
	"errors"
	"math/rand/v2"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the disk.
type FS struct{ *vfs.MemFS }

// NewFS returns a disk with a folder, which is on it for good, as its parents are.
func NewFS(dir string) (FS, error) {
	fs := FS{vfs.NewCrashableMem()}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return fs, err
	}
	for ; ; dir = filepath.Dir(dir) {
		f, err := fs.OpenDir(dir)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil || dir == filepath.Dir(dir) {
			return fs, err
		}
	}
}

// GetDiskUsage says that the disk has room.
func (FS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}, nil
}

// Fail returns the disk as a failure of the power would leave it now: with all that is synced, and with each
// other page with a chance of percent in 100.
func (f FS) Fail(percent int, seed uint64) FS {
	return FS{f.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 0))})}
}
