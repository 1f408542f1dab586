package local

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory makes the Go runtime collect garbage more often near 80 % of the memory, unless GOMEMLIMIT
// is set. The rest is for memory that the runtime does not manage and for the file cache.
func limitMemory(root fs.FS, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if all := memory(root); all > 0 {
		debug.SetMemoryLimit(all / 10 * 8)
		log.Info("memory", "limit", all/10*8, "of", all)
	}
}

// memory returns how many bytes the process may use: those of the machine, or fewer by a control
// group above it. 0: nobody says.
func memory(root fs.FS) int64 {
	least := int64(0)
	take := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		var kilobytes int64
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kilobytes); err == nil {
			take(kilobytes << 10)
		}
	}
	limit := func(file string) {
		if text, err := fs.ReadFile(root, file); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
			take(n)
		}
	}
	limit("sys/fs/cgroup/memory/memory.limit_in_bytes") // version 1
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	_, group, _ := strings.Cut(string(text), "0::")
	group, _, _ = strings.Cut(group, "\n")
	for group = path.Join("sys/fs/cgroup", group); group != "sys/fs" && group != "."; group = path.Dir(group) {
		limit(path.Join(group, "memory.max"))
	}
	return least
}
