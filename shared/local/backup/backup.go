// Package backup keeps copies of a data folder of the engine. A backup is a folder: the file manifest.json, and
// below files/ the files of the data folder as they were at one moment. It gets its name once it is whole. Files
// that two backups of one place have in common are there once, as hard links. With a Key, age encrypts each file.
//
// The package reads and writes files alone. Package stack makes the copy that a backup holds.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// format is the number of the form of backups that this version writes and reads.
const format = 1

const (
	manifestFile = "manifest.json"
	filesDir     = "files"
	partial      = ".partial" // ends the name of a backup that is being written or removed
	sealed       = ".age"     // ends the name of an encrypted file
	nameForm     = "20060102T150405.000Z"
	lastFile     = "format" // without it no engine takes a folder for a data folder
)

// About says what a backup holds.
type About struct {
	Version string    `json:"version"` // of the engine that made it
	Commit  string    `json:"commit,omitempty"`
	Folder  string    `json:"folder"` // number of the format of the data folder
	Time    time.Time `json:"time"`   // what was acknowledged before is in the backup
	Values  int       `json:"values"` // that the database has, by disk.Inspect
}

// Manifest describes a backup.
type Manifest struct {
	Format int `json:"format"`
	About
	// Keys are the public keys that the files are encrypted for; empty: they are not encrypted.
	Keys  []string `json:"keys,omitempty"`
	Files []File   `json:"files"`
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"`   // in the data folder, with slashes; encrypted, the backup adds .age
	Size   int64  `json:"size"`   // in bytes, as it lies in the backup
	SHA256 string `json:"sha256"` // as it lies in the backup, in hexadecimal digits
	// Content is the SHA-256 before the encryption; empty without one.
	Content string `json:"content,omitempty"`
}

// content is the SHA-256 of what the file says.
func (f File) content() string {
	if f.Content != "" {
		return f.Content
	}
	return f.SHA256
}

// Bytes is the size of all files.
func (m Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// path is where a file of a backup lies.
func (m Manifest) path(dir string, f File) string {
	name := filepath.FromSlash(f.Name)
	if len(m.Keys) > 0 {
		name += sealed
	}
	return filepath.Join(dir, filesDir, name)
}

// Source is the content of a data folder at one moment. Each calls take with every file, in any order, until
// it fails; content ends after size bytes.
type Source struct {
	About
	Each func(take func(name string, size int64, content io.Reader) error) error
}

// Folder returns the content of a data folder that nobody changes. Reading it fails once ctx has ended.
func Folder(ctx context.Context, dir string, about About) Source {
	return Source{about, func(take func(string, int64, io.Reader) error) error {
		return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || path == filepath.Join(dir, disk.LockFile) {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			return withFile(path, func(f *os.File, size int64) error {
				return take(filepath.ToSlash(name), size, bounded{ctx, f})
			})
		})
	}}
}

// bounded reads until ctx ends.
type bounded struct {
	ctx context.Context
	io.Reader
}

func (b bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// withFile calls do with an open file and its size.
func withFile(path string, do func(f *os.File, size int64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = do(f, info.Size())
	}
	return errors.Join(err, f.Close())
}

// list returns the names of the whole backups in a folder, the newest first. A folder that does not exist has none.
func list(place string) (names []string, err error) {
	entries, err := os.ReadDir(place)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if _, err := time.Parse(nameForm, e.Name()); err != nil || !e.IsDir() {
			continue
		}
		if _, err := os.Stat(filepath.Join(place, e.Name(), manifestFile)); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, err
}

// Load returns the folder of a backup and its manifest. from is the backup, or a folder with several, of which
// it takes the newest.
func Load(from string) (dir string, m Manifest, err error) {
	dir = from
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		names, listErr := list(from)
		if listErr != nil {
			return dir, m, listErr
		}
		if len(names) == 0 {
			return dir, m, fmt.Errorf("%s is no whole backup and holds none: name a folder that `affinity backup` wrote", from)
		}
		dir = filepath.Join(from, names[0])
		text, err = os.ReadFile(filepath.Join(dir, manifestFile))
	}
	if err != nil {
		return dir, m, fmt.Errorf("read the backup: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return dir, m, fmt.Errorf("the file %s of the backup %s is torn (%w): use another backup", manifestFile, dir, err)
	}
	if m.Format != format {
		return dir, m, fmt.Errorf("the backup %s has format %d and this version reads format %d: use version %s of the "+
			"engine, which made it", dir, m.Format, format, m.Version)
	}
	for _, f := range m.Files {
		if !local(f.Name) {
			return dir, m, fmt.Errorf("the backup %s names the file %q, which is not within a data folder: use another backup",
				dir, f.Name)
		}
	}
	if !slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == lastFile }) {
		return dir, m, fmt.Errorf("the backup %s lists no file %q: use another backup", dir, lastFile)
	}
	return dir, m, nil
}

// local reports whether a name is one of a file within a data folder.
func local(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && !strings.HasSuffix(name, "/") && name != disk.LockFile
}

// Last returns when the newest backup in a folder was made; the zero time if there is none.
func Last(place string) (time.Time, error) {
	names, err := list(place)
	if err != nil || len(names) == 0 {
		return time.Time{}, err
	}
	return time.Parse(nameForm, names[0])
}
