package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Names in the folder.
const (
	VersionFile = "version"        // that of the last program that Prove was called for
	beforeDir   = "before-upgrade" // the folder as that program has left it
)

// keepBefore copies the folder within itself if another version was proven with it last, for the way back. A copy
// of that version stays: it is of a time before others have used the folder.
func (d *Disk) keepBefore(version string, log *slog.Logger) error {
	if d.version = version; version == "" {
		return nil
	}
	var err error
	d.proven, err = provenWith(d.dir)
	files, listErr := d.fs.List(filepath.Join(d.dir, engineDir))
	switch {
	case err != nil:
		return err
	case errors.Is(listErr, os.ErrNotExist): // a new folder
		return d.Prove()
	case listErr != nil:
		return fmt.Errorf("open the data folder: %w", listErr)
	case d.proven == version:
		return nil
	}
	if d.hasBefore() { // of now, or of a process that ended before it could remove it
		of, err := provenWith(filepath.Join(d.dir, beforeDir))
		if err != nil || of == d.proven {
			return err
		}
	}
	if err := d.copyBefore(files); err != nil {
		return errors.Join(fmt.Errorf("copy the data folder %s within itself before this version uses it: %w: correct "+
			"that, or go on with the version before; nothing is changed", d.dir, err), d.removeBefore())
	}
	log.Info("the data folder is copied within itself, until this version is proven with it", "copy",
		filepath.Join(d.dir, beforeDir), "before", d.proven, "now", version)
	return nil
}

// Prove says that this version works with the folder. Then there is no way back to the version before but a backup.
func (d *Disk) Prove() error {
	if d.dir == "" || d.version == "" || d.version == d.proven && !d.hasBefore() {
		return nil
	}
	if err := d.WriteFile(VersionFile, []byte(d.version+"\n")); err != nil {
		return err
	}
	d.proven = d.version
	return d.removeBefore()
}

// provenWith reads VersionFile of a folder; empty if there is none.
func provenWith(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, VersionFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read the data folder: %w", err)
	}
	return strings.TrimSpace(string(text)), err
}

// hasBefore reports whether there is a whole copy.
func (d *Disk) hasBefore() bool {
	_, err := os.Stat(filepath.Join(d.dir, beforeDir, formatFile))
	return err == nil
}

// removeBefore removes the copy, which is none from the first step on.
func (d *Disk) removeBefore() error {
	dir := filepath.Join(d.dir, beforeDir)
	err := os.Remove(filepath.Join(dir, formatFile))
	if err == nil {
		err = syncDir(vfs.Default, dir)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = errors.Join(vfs.Default.RemoveAll(dir), d.fs.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("remove the copy of the data folder: %w", err)
	}
	return nil
}

// copyBefore makes the copy. Most of it are links, which take no room: tables never change, and WriteFile replaces
// the files that it writes.
func (d *Disk) copyBefore(database []string) error {
	to := filepath.Join(d.dir, beforeDir)
	err := errors.Join(d.removeBefore(), os.Mkdir(to, 0o700), d.fs.MkdirAll(filepath.Join(to, engineDir), 0o700))
	if err != nil {
		return err
	}
	for _, name := range database {
		take := vfs.Copy
		if ext := filepath.Ext(name); ext == ".sst" || ext == ".blob" {
			take = vfs.LinkOrCopy
		}
		if err := take(d.fs, filepath.Join(d.dir, engineDir, name), filepath.Join(to, engineDir, name)); err != nil {
			return err
		}
	}
	err = filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(d.dir, path)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case name == engineDir || name == beforeDir:
			return fs.SkipDir
		case name == "." || name == formatFile || name == LockFile:
			return nil
		case entry.IsDir():
			return os.Mkdir(filepath.Join(to, name), 0o700)
		}
		return vfs.LinkOrCopy(vfs.Default, path, filepath.Join(to, name))
	})
	if err != nil {
		return err
	}
	// Without the file that makes it a data folder it is none, so that one comes when all else is on the disk.
	if err := errors.Join(syncDir(d.fs, filepath.Join(to, engineDir)), syncDir(vfs.Default, to)); err != nil {
		return err
	}
	return errors.Join(vfs.LinkOrCopy(vfs.Default, filepath.Join(d.dir, formatFile), filepath.Join(to, formatFile)),
		syncDir(vfs.Default, to), syncDir(vfs.Default, d.dir))
}
