package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// Options say how a backup is written.
type Options struct {
	Keep int  // how many backups the folder holds at most, the newest ones; 0: all
	Key  *Key // that encrypts the files; nil: none does
	// Paced leaves the disk and the processors to an engine that serves: the copy rests three times as long as it works.
	Paced bool
}

// Written is a backup that is whole and on the disk.
type Written struct {
	Dir      string
	Manifest Manifest
	New      int64 // bytes that no earlier backup had
}

// Write makes a backup in a folder, which holds all backups of one engine, and then removes old ones. A backup
// that the end of the process cuts short has no manifest and another name, and the next Write removes it.
func Write(place string, s Source, o Options) (done Written, err error) {
	if err := os.MkdirAll(place, 0o700); err != nil {
		return done, fmt.Errorf("make the folder of backups: %w", err)
	}
	lock, err := vfs.Default.Lock(filepath.Join(place, disk.LockFile))
	if err != nil {
		return done, fmt.Errorf("another backup is being written to %s, or this user may not write there: wait until it "+
			"has ended, or name another folder (%w)", place, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := removePartial(place); err != nil {
		return done, err
	}
	name := s.Time.UTC().Format(nameForm)
	m := Manifest{Format: format, About: s.About, Keys: o.Key.public()}
	w := &writer{dir: filepath.Join(place, name+partial), key: o.Key, paced: o.Paced, earlier: map[string]earlierFile{},
		done: Written{Dir: filepath.Join(place, name), Manifest: m}}
	if _, err := os.Stat(w.done.Dir); err == nil {
		return done, fmt.Errorf("the backup %s exists: its moment has one already", w.done.Dir)
	}
	w.learn(place)
	if err := w.write(s); err != nil {
		return done, errors.Join(fmt.Errorf("write the backup %s: %w", name, err), os.RemoveAll(w.dir))
	}
	return w.done, keep(place, o.Keep)
}

// removePartial removes what other calls have left that did not end.
func removePartial(place string) error {
	entries, err := os.ReadDir(place)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "Z"+partial) && e.IsDir() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(place, e.Name())))
		}
	}
	return err
}

// keep removes all but the newest n backups. One that is removed loses its name first.
func keep(place string, n int) error {
	names, err := list(place)
	if n == 0 || len(names) <= n {
		return err
	}
	for _, name := range names[n:] {
		dir := filepath.Join(place, name)
		if err := errors.Join(os.Rename(dir, dir+partial), os.RemoveAll(dir+partial)); err != nil {
			return fmt.Errorf("the backup is whole, but an old one is not removed: %w", err)
		}
	}
	return nil
}

// writer writes a backup.
type writer struct {
	dir     string
	key     *Key
	paced   bool
	earlier map[string]earlierFile // files of the backup before, by their content
	done    Written
}

type earlierFile struct {
	File
	path string
}

// learn looks at the backup before, if it is encrypted for the same keys. A damaged one is not used.
func (w *writer) learn(place string) {
	dir, m, err := Load(place)
	if err != nil || !slices.Equal(m.Keys, w.done.Manifest.Keys) {
		return
	}
	for _, f := range m.Files {
		w.earlier[f.content()] = earlierFile{f, m.path(dir, f)}
	}
}

func (w *writer) write(s Source) error {
	if err := os.MkdirAll(filepath.Join(w.dir, filesDir), 0o700); err != nil {
		return err
	}
	dirs := map[string]bool{w.dir: true}
	err := s.Each(func(name string, size int64, content io.Reader) error {
		if !local(name) {
			return fmt.Errorf("%q is no name within a data folder", name)
		}
		f := File{Name: name}
		path := w.done.Manifest.path(w.dir, f)
		for dir := filepath.Dir(path); !dirs[dir]; dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := w.file(path, &f, size, content); err != nil {
			return err
		}
		w.done.Manifest.Files = append(w.done.Manifest.Files, f)
		return nil
	})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(w.done.Manifest, "", " ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(w.dir, manifestFile), append(text, '\n')); err != nil {
		return err
	}
	for dir := range dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	if err := os.Rename(w.dir, w.done.Dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(w.done.Dir))
}

// file writes a file, or links that of the backup before.
func (w *writer) file(path string, f *File, size int64, content io.Reader) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	stored, plain := sha256.New(), sha256.New()
	into, err := w.key.seal(io.MultiWriter(out, stored))
	if err != nil {
		return err
	}
	if w.paced {
		content = &paced{Reader: content, out: out, began: time.Now()}
	}
	n, err := io.Copy(io.MultiWriter(into, plain), content)
	if err = errors.Join(err, into.Close()); err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("the file %s has changed: it had %d bytes, and %d came", f.Name, size, n)
	}
	said := hex.EncodeToString(plain.Sum(nil))
	f.SHA256 = hex.EncodeToString(stored.Sum(nil))
	if w.key != nil {
		f.Content = said
	}
	if old, ok := w.earlier[said]; ok && w.link(old, path, f) {
		return nil
	}
	info, err := out.Stat()
	if err != nil {
		return err
	}
	f.Size = info.Size()
	w.done.New += f.Size
	return out.Sync()
}

// paced is what is copied into a file, a step at a time. Each step is on the disk before the next one: one large sync
// would hold up those of the engine.
type paced struct {
	io.Reader
	out   *os.File
	step  int
	began time.Time
}

const (
	paceStep = 1 << 20 // bytes
	paceRest = 3       // times what a step took
)

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if p.step >= paceStep {
		if err := p.out.Sync(); err != nil {
			return 0, err
		}
		time.Sleep(paceRest * time.Since(p.began))
		p.step, p.began = 0, time.Now()
	}
	n, err := p.Reader.Read(b[:min(len(b), paceStep)])
	p.step += n
	return n, err
}

// link puts the file of the backup before in the place of an equal one, and reports whether it did. It reads
// that file once more: damage is not handed on.
func (w *writer) link(old earlierFile, path string, f *File) bool {
	sum, size, err := hashOf(old.path)
	if err != nil || sum != old.SHA256 || size != old.Size {
		return false
	}
	if os.Link(old.path, path+partial) != nil { // a file system without hard links has both
		return false
	}
	if os.Rename(path+partial, path) != nil {
		_ = os.Remove(path + partial)
		return false
	}
	f.Size, f.SHA256 = old.Size, old.SHA256
	return true
}

// hashOf returns the SHA-256 and the size of a file.
func hashOf(path string) (sum string, size int64, err error) {
	err = withFile(path, func(f *os.File, _ int64) error {
		h := sha256.New()
		size, err = io.Copy(h, f)
		sum = hex.EncodeToString(h.Sum(nil))
		return err
	})
	return sum, size, err
}

// writeFile writes a file that is on the disk when it returns.
func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := vfs.Default.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
