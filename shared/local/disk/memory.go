package disk

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Of a Disk in memory. A block in the cache is there twice: compressed in its file, and not.
const (
	memoryCacheBytes    = 32 << 20
	memoryMemTableBytes = 16 << 20
)

// InMemory returns a Disk whose data end with it. It keeps no files, since these are for
// later processes.
func InMemory(join Merge, log *slog.Logger) (*Disk, error) {
	o := options(vfs.NewMem(), join, log)
	o.CacheSize, o.MemTableSize, o.DisableWAL = memoryCacheBytes, memoryMemTableBytes, true
	db, err := pebble.Open("", o)
	if err != nil {
		return nil, fmt.Errorf("open the data in memory: %w", err)
	}
	return &Disk{db: pebbleEngine{db}, sync: pebble.NoSync}, nil
}
