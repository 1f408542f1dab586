package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/must"
)

var silent = slog.New(slog.DiscardHandler)

func joinLines(parts [][]byte) ([]byte, error) { return bytes.Join(parts, []byte("\n")), nil }

func opened(t *testing.T, dir string) *Disk {
	t.Helper()
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	must.CloseAtEnd(t, d)
	return d
}

func set(d *Disk, key, value string) error {
	b := d.NewBatch()
	b.Set([]byte(key), []byte(value))
	return d.Commit(b)
}

func value(t *testing.T, d *Disk, key string) (text string) {
	t.Helper()
	if _, err := d.Get([]byte(key), func(v []byte) error { text = string(v); return nil }); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	opened(t, dir)
	_, err := Open(dir, joinLines, silent)
	if err == nil || !strings.Contains(err.Error(), dir+" is in use by another process") {
		t.Errorf("opened twice: %v, want an error that says so", err)
	}
}

func TestFolderOfAnotherUser(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write every folder; TestImage of scripts/release tries it as another user")
	}
	dir := t.TempDir()
	must.Succeed(t, os.Chmod(dir, 0o500))
	if _, err := Open(dir, joinLines, silent); err == nil || !strings.Contains(err.Error(), "may not write the folder "+dir) {
		t.Errorf("opened a folder that nobody may write: %v, want an error that says so", err)
	}
}

func TestOtherFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	must.Succeed(t, errors.Join(d.Close(), os.WriteFile(filepath.Join(dir, formatFile), []byte("1\n"), 0o600)))
	if _, err = Open(dir, joinLines, silent); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`has format "1" and this version reads format %d`, folderFormat)) {
		t.Errorf("%v, want an error that names both formats", err)
	}
}

func TestFolderOfAnotherKindIsRefused(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "holiday.jpg"), nil, 0o600))
	if _, err := Open(dir, joinLines, silent); err == nil || !strings.Contains(err.Error(), "holiday.jpg") {
		t.Errorf("%v, want an error that names the file", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want it as it was", entries, err)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := opened(t, dir)
	must.Succeed(t, d.WriteFile("secret", []byte("x")))
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "secret"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

// A crash may leave half of a write at the end of the log. It was not acknowledged.
func TestTornEndIsRecovered(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	must.Succeed(t, errors.Join(set(d, "kept", "1"), set(d, "torn", strings.Repeat("x", 1000))))
	crashed := filepath.Join(t.TempDir(), "crashed")
	err = os.CopyFS(crashed, os.DirFS(dir))
	for errors.Is(err, fs.ErrNotExist) { // Pebble has deleted a file of its first opening in the meantime
		err = errors.Join(os.RemoveAll(crashed), os.CopyFS(crashed, os.DirFS(dir)))
	}
	must.Succeed(t, errors.Join(err, d.Close()))
	logs, err := filepath.Glob(filepath.Join(crashed, engineDir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log in the copy: %v", err)
	}
	last := slices.Max(logs)
	content, err := os.ReadFile(last)
	must.Succeed(t, err)
	if end := bytes.LastIndexByte(content, 'x'); end < 0 || os.Truncate(last, int64(end-100)) != nil {
		t.Fatal("the log does not hold the last write")
	}
	again := opened(t, crashed)
	if got := value(t, again, "kept"); got != "1" {
		t.Errorf("the write before is %q", got)
	}
	if got := value(t, again, "torn"); got != "" {
		t.Errorf("half a write is there: %d bytes", len(got))
	}
}

// fullFS is a disk that has room, until it is full.
type fullFS struct {
	vfs.FS
	full bool
}

func (f *fullFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if f.full {
		return vfs.DiskUsage{AvailBytes: reserve - 1}, nil
	}
	return f.FS.GetDiskUsage(path)
}

func TestFullDiskRefusesWritesAndKeepsAll(t *testing.T) {
	dir, fs := t.TempDir(), &fullFS{FS: vfs.Default}
	d, err := OpenWith(dir, Settings{Files: fs}, joinLines, silent)
	must.Succeed(t, err)
	must.Succeed(t, set(d, "before", "1"))
	fs.full = true
	if err := set(d, "during", "1"); !errors.Is(err, ErrFull) {
		t.Errorf("a write on a full disk: %v, want %v", err, ErrFull)
	}
	if value(t, d, "before") != "1" || value(t, d, "during") != "" {
		t.Error("reads on a full disk do not answer what was acknowledged")
	}
	fs.full = false
	if err := errors.Join(set(d, "after", "1"), d.Close()); err != nil {
		t.Errorf("a write once there is room again: %v", err)
	}
	again := opened(t, dir)
	if value(t, again, "before") != "1" || value(t, again, "after") != "1" {
		t.Error("acknowledged writes are lost")
	}
}

func TestPartsSortAndReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 0, 6)
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		rest := part.Draw(t, "rest")
		x, y := AppendPart(nil, a), AppendPart(nil, b)
		if bytes.Compare(x, y) != bytes.Compare(a, b) {
			t.Fatalf("%x and %x sort otherwise than %x and %x", x, y, a, b)
		}
		if bytes.HasPrefix(x, y) && !bytes.Equal(a, b) {
			t.Fatalf("%x begins with %x", x, y)
		}
		read, left, ok := CutPart(append(bytes.Clone(x), rest...))
		if !ok || !bytes.Equal(read, a) || !bytes.Equal(left, rest) {
			t.Fatalf("read %x and %x (%v), want %x and %x", read, left, ok, a, rest)
		}
		if after := After(append([]byte("p"), x...)); bytes.Compare(after, append(append([]byte("p"), x...), rest...)) <= 0 {
			t.Fatalf("%x is not behind %x", after, x)
		}
	})
}

// Parts join in their order, in memory, in files and over a restart.
func TestPartsOfAValueJoin(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	join := func(d *Disk, part string) {
		b := d.NewBatch()
		b.Join([]byte("k"), []byte(part))
		must.Succeed(t, d.Commit(b))
	}
	join(d, "1")
	must.Succeed(t, d.db.Flush())
	join(d, "2")
	join(d, "3")
	if got := value(t, d, "k"); got != "1\n2\n3" {
		t.Errorf("joined %q", got)
	}
	must.Succeed(t, d.Close())
	if got := value(t, opened(t, dir), "k"); got != "1\n2\n3" {
		t.Errorf("joined after a restart %q", got)
	}
}

// A Disk in memory answers as one in a folder does, and keeps no file.
func TestInMemory(t *testing.T) {
	d, err := InMemory(joinLines, silent)
	must.Succeed(t, err)
	for _, part := range []string{"1", "2"} {
		b := d.NewBatch()
		b.Join([]byte("k"), []byte(part))
		must.Succeed(t, errors.Join(d.Commit(b), d.db.Flush()))
	}
	if got := value(t, d, "k"); got != "1\n2" {
		t.Errorf("joined %q", got)
	}
	if err := d.WriteFile("secret", []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := d.ReadFile("secret"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of a Disk in memory: %v, want none", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
