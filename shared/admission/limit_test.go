package admission

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
)

func TestGroupLimit(t *testing.T) {
	for _, test := range []struct {
		name, self string
		files      map[string]string
		want       int64 // 0: none
	}{
		{"a container's root", "0::/\n", map[string]string{"memory.max": "536870912\n"}, 536870912},
		{"a group in a smaller one", "0::/a/b\n", map[string]string{"a/memory.max": "1000\n", "a/b/memory.max": "2000\n"}, 1000},
		{"a smaller group in a group", "0::/a/b\n", map[string]string{"a/memory.max": "2000\n", "a/b/memory.max": "1000\n"}, 1000},
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max\n"}, 0},
		{"limit above a group without one", "0::/a/b\n", map[string]string{"a/memory.max": "1000\n", "a/b/memory.max": "max\n"}, 1000},
		{"both versions", "4:memory:/x\n0::/a\n", map[string]string{"a/memory.max": "7\n"}, 7},
		{"no files", "0::/a\n", nil, 0},
		{"a path that leads out", "0::/../../a\n", map[string]string{"a/memory.max": "9\n"}, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			self := filepath.Join(root, "self")
			write := func(path, text string) {
				t.Helper()
				must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
			}
			write(self, test.self)
			for name, text := range test.files {
				write(filepath.Join(root, name), text)
			}
			if got, ok := groupLimit(self, root); got != test.want || ok != (test.want > 0) {
				t.Errorf("%d, %v; want %d", got, ok, test.want)
			}
		})
	}
	if _, ok := groupLimit(filepath.Join(t.TempDir(), "missing"), "/"); ok {
		t.Error("a limit without a file")
	}
}

// The capacity is 40 % of an instance whose soft limit is 90 % of its memory.
func TestCapacity(t *testing.T) {
	const memory = 512 << 20
	if got := Capacity(memory / 10 * 9); got < memory*39/100 || got > memory*40/100 {
		t.Errorf("capacity %d of an instance of %d bytes, want 40 %%", got, memory)
	}
}
