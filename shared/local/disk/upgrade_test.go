package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/affinityengine/affinity/shared/local/must"
)

// used opens a folder with a program of this version, changes it, and closes it. The program has then not proven itself.
func used(t *testing.T, dir, version string, change func(d *Disk)) {
	t.Helper()
	d, err := OpenWith(dir, Settings{Version: version}, joinLines, silent)
	must.Succeed(t, err)
	change(d)
	must.Succeed(t, d.Close())
}

// broken ends a test unless opening a folder says why it fails.
func broken(t *testing.T, dir string, how Settings, want string) {
	t.Helper()
	if _, err := OpenWith(dir, how, joinLines, silent); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("opened: %v, want an error that says %q", err, want)
	}
}

// The copy is the folder as the last proven version has left it, whatever other versions do with the folder until
// one of them is proven.
func TestWayBack(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	before := filepath.Join(dir, beforeDir)
	there := func(want bool) {
		t.Helper()
		if _, err := os.Stat(before); (err == nil) != want {
			t.Errorf("a copy is there: %v, want %v (%v)", err == nil, want, err)
		}
	}
	change := func(key, value string) func(d *Disk) {
		return func(d *Disk) { must.Succeed(t, set(d, key, value)) }
	}
	used(t, dir, "1", func(d *Disk) {
		must.Succeed(t, errors.Join(set(d, "table", "1"), d.db.Flush(), set(d, "log", "1"), d.WriteFile("secret", []byte("1")),
			os.Mkdir(filepath.Join(dir, "acme"), 0o700), d.WriteFile("acme/account", []byte("1"))))
	})
	used(t, dir, "1", change("log", "2")) // it was proven when it made the folder
	there(false)
	used(t, dir, "2", func(d *Disk) {
		must.Succeed(t, errors.Join(set(d, "table", "2"), set(d, "log", "3"), d.db.Flush(), d.WriteFile("secret", []byte("2"))))
	})
	used(t, dir, "3", change("table", "3"))
	used(t, dir, "2", change("table", "4"))
	there(true)

	// The error of a program that reads an older format alone names the copy.
	format := filepath.Join(dir, formatFile)
	must.Succeed(t, errors.Join(os.Remove(format), os.WriteFile(format, []byte("999\n"), 0o600)))
	broken(t, dir, Settings{Version: "1"}, "a newer version has used it: install that one again, or put the copy of before, "+before)
	must.Succeed(t, errors.Join(os.Rename(before, filepath.Join(root, "before")), os.Rename(dir, filepath.Join(root, "newer")),
		os.Rename(filepath.Join(root, "before"), dir)))
	used(t, dir, "1", func(d *Disk) {
		secret, err := d.ReadFile("secret")
		account, accountErr := d.ReadFile("acme/account")
		must.Succeed(t, errors.Join(err, accountErr))
		if got := value(t, d, "table") + value(t, d, "log") + string(secret) + string(account); got != "1211" {
			t.Errorf("the copy holds %s, want 1211", got)
		}
	})
	there(false)

	used(t, dir, "2", func(d *Disk) { must.Succeed(t, d.Prove()) })
	there(false)
	used(t, dir, "2", func(d *Disk) { must.Succeed(t, d.Prove()) })
	must.Succeed(t, os.WriteFile(format, []byte("999\n"), 0o600))
	broken(t, dir, Settings{Version: "2"}, "a newer version has used it: install that one again, or restore a backup of before")
}

// A process that ends between the record of its version and the removal of the copy leaves one that is too old for the
// next version.
func TestOldCopyIsReplaced(t *testing.T) {
	dir, aside := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	before := filepath.Join(dir, beforeDir)
	used(t, dir, "1", func(d *Disk) { must.Succeed(t, set(d, "k", "1")) })
	used(t, dir, "2", func(d *Disk) {
		must.Succeed(t, errors.Join(set(d, "k", "2"), os.Rename(before, aside), d.Prove(), os.Rename(aside, before)))
	})
	used(t, dir, "3", func(d *Disk) { must.Succeed(t, set(d, "k", "3")) })
	if got := value(t, opened(t, before), "k"); got != "2" {
		t.Errorf("the copy holds %q, want what version 2 has left", got)
	}
}

// noCopies is a disk on which a copy of a log finds no room.
type noCopies struct{ vfs.FS }

func (f noCopies) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".log") && strings.Contains(name, beforeDir) {
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	return f.FS.Create(name, category)
}

// Without a whole copy another version does not begin, and a part of one is no copy.
func TestCopyIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	used(t, dir, "1", func(d *Disk) { must.Succeed(t, set(d, "k", "1")) })
	before := filepath.Join(dir, beforeDir)
	must.Succeed(t, errors.Join(os.MkdirAll(filepath.Join(before, engineDir), 0o700),
		os.WriteFile(filepath.Join(before, engineDir, "000001.sst"), nil, 0o600)))
	broken(t, dir, Settings{Version: "2", Files: noCopies{vfs.Default}}, "before this version uses it: create "+filepath.Join(before, engineDir))
	if _, err := os.Stat(before); !os.IsNotExist(err) {
		t.Errorf("a part of a copy stays: %v", err)
	}
	used(t, dir, "2", func(d *Disk) { must.Succeed(t, set(d, "k", "2")) })
	if got := value(t, opened(t, before), "k"); got != "1" {
		t.Errorf("the copy holds %q, want what the version before has written", got)
	}
}
