package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/affinityengine/affinity/shared/local/must"
)

// newFolder makes a closed folder: keys a... in a table, keys b... in the synced part of the log,
// and parts of the value of joined in both.
func newFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	write := func(prefix string, n int) {
		for i := range n {
			b := d.NewBatch()
			b.Set(fmt.Appendf(nil, "%s%04d", prefix, i), bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 500))
			if i == 0 {
				b.Join([]byte("joined"), []byte(prefix))
			}
			must.Succeed(t, d.Commit(b))
		}
	}
	write("a", 600)
	must.Succeed(t, d.db.Flush())
	write("b", 300)
	must.Succeed(t, d.late.sync())
	write("c", 1)
	must.Succeed(t, errors.Join(d.late.sync(), d.Close()))
	return dir
}

// content returns what can be read of a folder, and its damage.
func content(t *testing.T, dir string) (map[string]string, []string) {
	t.Helper()
	all := map[string]string{}
	damage, err := Inspect(dir, joinLines, func(key, value []byte) error { all[string(key)] = string(value); return nil })
	must.Succeed(t, err)
	return all, damage
}

// newest returns the newest file of Pebble with an ending that holds a text.
func newest(t *testing.T, dir, pattern, text string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, engineDir, pattern))
	must.Succeed(t, err)
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if file, err := os.ReadFile(name); err == nil && bytes.Contains(file, []byte(text)) {
			return name
		}
	}
	t.Fatalf("no %s with %s among %v", pattern, text, names)
	return ""
}

// flip changes one bit of the first place of a text in a file.
func flip(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.ReadFile(path)
	must.Succeed(t, err)
	at := bytes.Index(file, []byte(text))
	if at < 0 {
		t.Fatalf("%s does not hold %s", path, text)
	}
	file[at] ^= 0x40
	must.Succeed(t, os.WriteFile(path, file, 0o600))
}

func cut(t *testing.T, path string, part int64) {
	t.Helper()
	info, err := os.Stat(path)
	must.Succeed(t, errors.Join(err, os.Truncate(path, info.Size()*part/100)))
}

func TestDamagedFolders(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(*testing.T, string)
		says    string // of the damage; "": there is none
		opens   bool   // all the same
		a, b, c int    // at least so many keys come back
	}{
		"none":                      {func(*testing.T, string) {}, "", true, 600, 300, 1},
		"no options":                {func(t *testing.T, dir string) { must.Succeed(t, os.Remove(newest(t, dir, "OPTIONS-*", "merger"))) }, "", true, 600, 300, 1},
		"options cut":               {func(t *testing.T, dir string) { cut(t, newest(t, dir, "OPTIONS-*", "merger"), 37) }, "OPTIONS-", false, 600, 300, 1},
		"bit in the synced log":     {func(t *testing.T, dir string) { flip(t, newest(t, dir, "*.log", "b0100"), "b0100") }, "the log of the latest writes is damaged: 300 writes", false, 600, 299, 1},
		"block of the log zeroed":   {zeroBlock, "the log of the latest writes is damaged", false, 600, 230, 1},
		"torn end of the log":       {func(t *testing.T, dir string) { cut(t, newest(t, dir, "*.log", "c0000"), 99) }, "", true, 600, 290, 0},
		"table cut":                 {func(t *testing.T, dir string) { cut(t, newest(t, dir, "*.sst", "a0000"), 50) }, "cannot be read", false, 0, 300, 1},
		"table missing":             {func(t *testing.T, dir string) { must.Succeed(t, os.Remove(newest(t, dir, "*.sst", "a0000"))) }, "is missing", false, 0, 300, 1},
		"bit in a block of a table": {tableBit, "is damaged", true, 300, 300, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newFolder(t)
			before, damage := content(t, dir)
			if len(before) != 902 || len(damage) != 0 {
				t.Fatalf("%d keys and damage %q before", len(before), damage)
			}
			c.damage(t, dir)
			files := listing(t, dir)
			after, damage := content(t, dir)
			if text := strings.Join(damage, "\n"); c.says == "" && text != "" || !strings.Contains(text, c.says) {
				t.Errorf("damage %q, want %q", text, c.says)
			}
			if !maps.Equal(files, listing(t, dir)) {
				t.Error("the folder is not as it was")
			}
			got := map[byte]int{}
			for key, value := range after {
				got[key[0]]++
				if want := before[key]; value != want && key != "joined" {
					t.Errorf("%s has another value", key)
				}
			}
			if got['a'] < c.a || got['b'] < c.b || got['c'] < c.c {
				t.Errorf("%d, %d and %d keys, want at least %d, %d and %d", got['a'], got['b'], got['c'], c.a, c.b, c.c)
			}
			if name == "bit in a block of a table" {
				return // the engine opens it, and ends once it has read the block
			}
			d, err := Open(dir, joinLines, silent)
			if err == nil {
				err = d.Close()
			}
			if c.opens != (err == nil) || !c.opens && !strings.Contains(err.Error(), "affinity data salvage "+dir) {
				t.Errorf("opens: %v, want %v", err, c.opens)
			}
		})
	}
}

// zeroBlock zeroes a block in the middle of the log.
func zeroBlock(t *testing.T, dir string) {
	path := newest(t, dir, "*.log", "b0000")
	file, err := os.ReadFile(path)
	must.Succeed(t, err)
	clear(file[3*logBlock : 4*logBlock])
	must.Succeed(t, os.WriteFile(path, file, 0o600))
}

// tableBit damages a block near the start of the table of keys a....
func tableBit(t *testing.T, dir string) {
	path := newest(t, dir, "*.sst", "a0000")
	file, err := os.ReadFile(path)
	must.Succeed(t, err)
	file[len(file)/4] ^= 1
	must.Succeed(t, os.WriteFile(path, file, 0o600))
}

// listing returns the files of a folder but its lock, with their content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must.Succeed(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

// refusingFS refuses the lock of a folder.
type refusingFS struct {
	vfs.FS
	err error
}

func (f refusingFS) Lock(string) (io.Closer, error) { return nil, f.err }

func TestFoldersThatDoNotOpen(t *testing.T) {
	for name, c := range map[string]struct {
		fs   vfs.FS
		says string
	}{
		"read-only file system": {refusingFS{vfs.Default, &os.PathError{Op: "open", Path: "lock", Err: syscall.EROFS}}, "mounted read-only: mount it writable"},
		"another owner":         {refusingFS{vfs.Default, &os.PathError{Op: "open", Path: "lock", Err: syscall.EACCES}}, "change its owner"},
		"locked":                {refusingFS{vfs.Default, syscall.EAGAIN}, "is in use by another process: end that process"},
		"no room for the lock":  {refusingFS{vfs.Default, &os.PathError{Op: "open", Path: "lock", Err: syscall.ENOSPC}}, "make the lock"},
		"little room":           {&fullFS{FS: vfs.Default, full: true}, "free some, or copy the folder to a larger disk"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := OpenWith(t.TempDir(), Settings{Files: c.fs}, joinLines, silent); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want an error with %q", err, c.says)
			}
		})
	}
}

func TestInspectRefuses(t *testing.T) {
	none := func([]byte, []byte) error { return nil }
	if _, err := Inspect(t.TempDir(), joinLines, none); err == nil || !strings.Contains(err.Error(), "is no data folder") {
		t.Errorf("an empty folder: %v", err)
	}
	dir := newFolder(t)
	d := opened(t, dir)
	if _, err := Inspect(dir, joinLines, none); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a folder in use: %v", err)
	}
	must.Succeed(t, d.WriteFile(formatFile, []byte("1\n")))
	other := newFolder(t)
	must.Succeed(t, os.WriteFile(filepath.Join(other, formatFile), []byte("1\n"), 0o600))
	if _, err := Inspect(other, joinLines, none); err == nil || !strings.Contains(err.Error(), `has format "1"`) {
		t.Errorf("another format: %v", err)
	}
	lost := newFolder(t)
	for _, name := range must1(filepath.Glob(filepath.Join(lost, engineDir, "MANIFEST-*"))) {
		must.Succeed(t, os.Truncate(name, 0))
	}
	if _, err := Inspect(lost, joinLines, none); err == nil || !strings.Contains(err.Error(), "use a copy of the folder") {
		t.Errorf("no list of files: %v", err)
	}
	merged := newFolder(t)
	options := newest(t, merged, "OPTIONS-*", "affinity.rows")
	text, err := os.ReadFile(options)
	must.Succeed(t, errors.Join(err, os.WriteFile(options, bytes.ReplaceAll(text, []byte("affinity.rows"), []byte("another.rows")), 0o600)))
	if _, err := Inspect(merged, joinLines, none); err == nil || !strings.Contains(err.Error(), "another version of the engine") {
		t.Errorf("another merger: %v", err)
	}
}

func must1(names []string, err error) []string {
	if err != nil {
		panic(err)
	}
	return names
}
