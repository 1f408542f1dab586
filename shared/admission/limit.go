package admission

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// Process returns the gate of this process: all its requests share it. Its
// capacity is Capacity of MemoryLimit.
var Process = sync.OnceValue(func() *Gate { return NewGate(Capacity(MemoryLimit())) })

// Capacity is how many bytes requests may hold in a process with a soft limit of
// memory: four ninths. Deployments set the soft limit, GOMEMLIMIT, to nine tenths
// of the memory of an instance, so requests hold at most 40 % of it. The rest is
// for caches, connections, and garbage that is not collected yet.
func Capacity(limit int64) int64 { return limit / 9 * 4 }

// defaultLimit is the memory, in bytes, of a process on which nobody set a limit.
const defaultLimit = 2 << 30

// MemoryLimit is the soft limit of this process's memory in bytes: GOMEMLIMIT if
// it is set, nine tenths of the limit of the control group if there is one, and
// otherwise 2 GiB.
func MemoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	if limit, ok := ownGroup(); ok {
		return limit / 10 * 9
	}
	return defaultLimit
}

// ownGroup is the limit of the process's own control group. The files of all groups above it are read once.
var ownGroup = sync.OnceValues(func() (int64, bool) { return groupLimit("/proc/self/cgroup", "/sys/fs/cgroup") })

// groupLimit returns the memory limit in bytes of the control group (version 2)
// that a file like /proc/self/cgroup names: the smallest of the group and of the
// groups that it is in, up to root.
func groupLimit(self, root string) (limit int64, ok bool) {
	text, err := os.ReadFile(self)
	if err != nil {
		return 0, false
	}
	group := ""
	for line := range strings.Lines(string(text)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			group = path
		}
	}
	for dir := filepath.Join("/", group); ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(root, dir, "memory.max"))
		if n, syntax := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && syntax == nil &&
			(!ok || n < limit) {
			limit, ok = n, true
		}
		if dir == "/" {
			return limit, ok
		}
	}
}
