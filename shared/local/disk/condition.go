package disk

import (
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
	Least  uint64 // bytes of room below which an engine refuses writes
}

// Look returns the condition of a folder. It opens and writes nothing in it.
func Look(dir string) (c Condition, err error) {
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return c, fmt.Errorf("%s is no data folder that can be read: %w", dir, err)
	}
	c.Format, c.Reads = strings.TrimSpace(string(text)), strconv.Itoa(folderFormat)
	c.Least = reserve
	c.Free, err = Free(dir)
	return c, err
}

// Free returns the bytes of room on the disk of a folder.
func Free(dir string) (uint64, error) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	if err != nil {
		return 0, fmt.Errorf("ask for the room on the disk of %s: %w", dir, err)
	}
	return usage.AvailBytes, nil
}
