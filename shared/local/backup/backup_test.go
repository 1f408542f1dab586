package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/backup"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/must"
)

// content is that of a small data folder.
var content = map[string]string{
	"cipher.key": "secret", "db/000001.sst": strings.Repeat("rows of the database ", 200), "db/000002.log": "",
	"format": "9\n", "acme/shop.example.com": "a certificate",
}

func about(minute int) backup.About {
	at := time.Date(2026, 12, 1, 6, minute, 0, 0, time.UTC)
	return backup.About{Version: "1.2.3", Folder: disk.Format(), Time: at, Values: 3}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// source is a data folder of the content in use.
func source(t *testing.T, minute int) backup.Source {
	t.Helper()
	dir := folder(t, content)
	must.Succeed(t, os.WriteFile(filepath.Join(dir, disk.LockFile), nil, 0o600))
	return backup.Folder(t.Context(), dir, about(minute))
}

// filesOf returns what a folder holds.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		must.Succeed(t, relErr)
		files[name] = string(text)
		return err
	})
	must.Succeed(t, err)
	return files
}

func write(t *testing.T, place string, s backup.Source, o backup.Options) backup.Written {
	t.Helper()
	done, err := backup.Write(place, s, o)
	must.Succeed(t, err)
	return done
}

// restore loads, verifies and restores a backup, and returns the first error.
func restore(from, to string, key *backup.Key) error {
	dir, m, err := backup.Load(from)
	if err == nil {
		err = backup.Verify(dir, m, key)
	}
	if err == nil {
		err = backup.Restore(dir, m, to, key)
	}
	return err
}

// newKey returns a key, and the same with its public half alone.
func newKey(t *testing.T) (key, public *backup.Key) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	text, err := backup.MakeKey(file)
	must.Succeed(t, err)
	key, err = backup.ReadKey(file)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(file+".pub", []byte(text+"\n"), 0o600))
	public, err = backup.ReadKey(file + ".pub")
	must.Succeed(t, err)
	return key, public
}

// says ends the test unless an error has a text.
func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one that says %q", err, text)
	}
}

// What is restored is what was saved, and two backups have what they have in common once.
func TestRestoredIsSaved(t *testing.T) {
	key, public := newKey(t)
	for name, keys := range map[string][2]*backup.Key{"plain": {}, "encrypted": {public, key}} {
		t.Run(name, func(t *testing.T) {
			place, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
			first := write(t, place, source(t, 1), backup.Options{Key: keys[0]})
			second := write(t, place, source(t, 2), backup.Options{Key: keys[0], Paced: true})
			if first.New != first.Manifest.Bytes() || second.New != 0 {
				t.Errorf("of %d bytes %d and %d are new", first.Manifest.Bytes(), first.New, second.New)
			}
			must.Succeed(t, restore(place, data, keys[1]))
			if diff := cmp.Diff(content, filesOf(t, data)); diff != "" {
				t.Errorf("restored (-saved +restored):\n%s", diff)
			}
			if dir, m, err := backup.Load(place); err != nil || dir != second.Dir || !cmp.Equal(m.About, about(2)) {
				t.Errorf("the newest backup is %s of %v (%v), want %s", dir, m.About, err, second.Dir)
			}
			for name, text := range filesOf(t, filepath.Join(first.Dir, "files")) {
				if saved := content[strings.TrimSuffix(name, ".age")]; saved != "" && (text == saved) == (keys[0] != nil) {
					t.Errorf("%s is not encrypted as its key says", name)
				}
			}
		})
	}
}

// Damage of any file is found, and leaves no data folder. It is not handed on to the next backup.
func TestTornBackup(t *testing.T) {
	key, _ := newKey(t)
	for _, k := range []*backup.Key{nil, key} {
		place := t.TempDir()
		whole := write(t, place, source(t, 1), backup.Options{Key: k})
		for name, text := range filesOf(t, whole.Dir) {
			for what, damaged := range map[string][]byte{"cut": []byte(text[:len(text)/2]), "missing": nil,
				"changed": append([]byte{^(text + "x")[0]}, (text + "x")[1:]...)} {
				path, to := filepath.Join(whole.Dir, name), filepath.Join(t.TempDir(), "data")
				if damaged == nil {
					must.Succeed(t, os.Remove(path))
				} else if string(damaged) == text {
					continue
				} else {
					must.Succeed(t, os.WriteFile(path, damaged, 0o600))
				}
				if err := restore(whole.Dir, to, k); err == nil || name != "manifest.json" && !strings.Contains(err.Error(), "is torn") {
					t.Errorf("%s is %s: %v", name, what, err)
				}
				if dir, m, err := backup.Load(whole.Dir); err == nil {
					if err := backup.Restore(dir, m, to, k); err == nil || len(filesOf(t, to)) > 0 {
						t.Errorf("%s is %s: restored (%v)", name, what, err)
					}
				}
				if what == "changed" {
					next := write(t, place, source(t, 2), backup.Options{Key: k})
					if err := restore(next.Dir, to, k); err != nil {
						t.Errorf("%s is changed in the backup before: %v", name, err)
					}
					must.Succeed(t, os.RemoveAll(next.Dir))
				}
				must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	key, public := newKey(t)
	other, _ := newKey(t)
	place, used := t.TempDir(), folder(t, content)
	plain, to := write(t, t.TempDir(), source(t, 1), backup.Options{}), filepath.Join(t.TempDir(), "data")
	whole := write(t, place, source(t, 1), backup.Options{Key: key})
	says(t, restore(place, to, nil), "is encrypted: give --backup-key FILE with the secret key of age1")
	says(t, restore(place, to, other), "is not the one of the backup: give the secret key of age1")
	says(t, restore(place, to, public), "has only public keys: give the secret key of age1")
	says(t, restore(plain.Dir, used, nil), "already: name a new or an empty one")
	says(t, restore(t.TempDir(), to, nil), "is no whole backup and holds none: name a folder that")
	_, err := backup.Write(place, source(t, 1), backup.Options{})
	says(t, err, "its moment has one already")
	manifest := filesOf(t, plain.Dir)["manifest.json"]
	for _, c := range []struct{ old, changed, says string }{
		{`"format": 1`, `"format": 2`, "has format 2 and this version reads format 1: use version 1.2.3"},
		{`"folder": "` + disk.Format(), `"folder": "99`, "holds a data folder of format 99 and this version reads format"},
		{`"name": "format"`, `"name": "../format"`, "which is not within a data folder"},
		{`"name": "format"`, `"name": "lock"`, "which is not within a data folder"},
	} {
		changed := strings.Replace(manifest, c.old, c.changed, 1)
		must.Succeed(t, os.WriteFile(filepath.Join(plain.Dir, "manifest.json"), []byte(changed), 0o600))
		says(t, restore(plain.Dir, to, nil), c.says)
	}
	for name, text := range map[string]string{"empty": "# nothing\n", "bad": "AGE-SECRET-KEY-1SECRET\n"} {
		file := filepath.Join(t.TempDir(), name)
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := backup.ReadKey(file); err == nil || strings.Contains(err.Error(), "1SECRET") {
			t.Errorf("key file %s: %v", name, err)
		}
	}
	if len(whole.Manifest.Keys) != 1 {
		t.Errorf("keys %v", whole.Manifest.Keys)
	}
}

// Old backups go when a new one is whole, and another folder of the place stays.
func TestRetention(t *testing.T) {
	place := t.TempDir()
	must.Succeed(t, os.Mkdir(filepath.Join(place, "mine"), 0o700))
	var dirs []string
	for minute := range 5 {
		dirs = append(dirs, write(t, place, source(t, minute), backup.Options{Keep: 3}).Dir)
	}
	left, err := filepath.Glob(filepath.Join(place, "2*"))
	if diff := cmp.Diff(dirs[2:], left); diff != "" || err != nil {
		t.Errorf("left (-want +got):\n%s %v", diff, err)
	}
	if _, err := os.Stat(filepath.Join(place, "mine")); err != nil {
		t.Error(err)
	}
	if last, err := backup.Last(place); err != nil || !last.Equal(about(4).Time) {
		t.Errorf("the last backup is of %v (%v)", last, err)
	}
	must.Succeed(t, restore(place, filepath.Join(t.TempDir(), "data"), nil))
}

// killedVariable is how many files a process writes before it kills itself.
const killedVariable = "AFFINITY_TEST_KILLED_BACKUP"

// A backup that a kill cuts short does not look whole, and the next one removes it.
func TestKilledBackup(t *testing.T) {
	if text := os.Getenv(killedVariable); text != "" {
		number, _ := strconv.Atoi(text)
		s := source(t, 1)
		each := s.Each
		s.Each = func(take func(string, int64, io.Reader) error) error {
			n := 0
			return each(func(name string, size int64, r io.Reader) error {
				if n++; n > number {
					self, err := os.FindProcess(os.Getpid())
					must.Succeed(t, err)
					must.Succeed(t, self.Kill())
					select {}
				}
				return take(name, size, r)
			})
		}
		_, err := backup.Write(os.Getenv("AFFINITY_TEST_PLACE"), s, backup.Options{})
		t.Fatal("not killed: ", err)
	}
	for _, number := range []int{0, 2, len(content) - 1} {
		place := t.TempDir()
		child := exec.Command(os.Args[0], "-test.run=^TestKilledBackup$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", killedVariable, number), "AFFINITY_TEST_PLACE="+place)
		out, err := child.CombinedOutput()
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the child ended by itself: %v\n%s", err, out)
		}
		left, err := filepath.Glob(filepath.Join(place, "*.partial"))
		if len(left) != 1 || err != nil {
			t.Fatalf("a backup killed after %d files leaves %v (%v)", number, left, err)
		}
		if _, _, err := backup.Load(place); err == nil {
			t.Errorf("a backup killed after %d files looks whole", number)
		}
		if _, _, err := backup.Load(left[0]); err == nil {
			t.Errorf("%s looks whole", left[0])
		}
		write(t, place, source(t, 1), backup.Options{})
		if left, _ := filepath.Glob(filepath.Join(place, "*.partial")); len(left) > 0 {
			t.Errorf("%v is still there", left)
		}
		must.Succeed(t, restore(place, filepath.Join(t.TempDir(), "data"), nil))
	}
}

// A stream says the same as its source, and one that is cut anywhere makes no backup.
func TestStream(t *testing.T) {
	var stream bytes.Buffer
	must.Succeed(t, backup.Send(&stream, source(t, 1)))
	receive := func(place string, length int) error {
		s, err := backup.Receive(io.LimitReader(bytes.NewReader(stream.Bytes()), int64(length)))
		if err == nil {
			_, err = backup.Write(place, s, backup.Options{})
		}
		return err
	}
	place, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	must.Succeed(t, receive(place, stream.Len()))
	must.Succeed(t, restore(place, data, nil))
	if diff := cmp.Diff(content, filesOf(t, data)); diff != "" {
		t.Errorf("restored (-saved +restored):\n%s", diff)
	}
	// The mark of the end is the header of an empty file, before the two empty blocks of a tar.
	for length := 0; length < stream.Len()-1024; length += 1021 {
		place := t.TempDir()
		if err := receive(place, length); err == nil {
			t.Fatalf("%d of %d bytes make a backup", length, stream.Len())
		}
		if names := slices.Collect(maps.Keys(filesOf(t, place))); len(names) > 1 {
			t.Fatalf("%d of %d bytes leave %v", length, stream.Len(), names)
		}
	}
}

// A reader that is asked to end leaves nothing.
func TestCanceledBackup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	place, s := t.TempDir(), backup.Folder(ctx, folder(t, content), about(1))
	cancel()
	_, err := backup.Write(place, s, backup.Options{})
	says(t, err, context.Canceled.Error())
	if names := slices.Collect(maps.Keys(filesOf(t, place))); len(names) > 1 {
		t.Errorf("leaves %v", names)
	}
}
