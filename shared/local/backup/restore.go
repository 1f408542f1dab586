package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// Verify compares every file of a backup that Load found with its manifest, and decrypts it if there is a key.
func Verify(dir string, m Manifest, key *Key) error {
	return each(dir, m, key, func(File, io.Reader) error { return nil })
}

// Restore makes a data folder of a backup that Load found. to must be new or empty. The end of the process, or an
// error, leaves a folder that no engine takes for a data folder.
func Restore(dir string, m Manifest, to string, key *Key) (err error) {
	if m.Folder != disk.Format() {
		return fmt.Errorf("the backup %s holds a data folder of format %s and this version reads format %s: restore it "+
			"with version %s of the engine, which made it", dir, m.Folder, disk.Format(), m.Version)
	}
	if len(m.Keys) > 0 && key == nil {
		return fmt.Errorf("the backup %s is encrypted: give --backup-key FILE with the secret key of %s", dir,
			strings.Join(m.Keys, " or "))
	}
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return fmt.Errorf("the folder %s holds %s already: name a new or an empty one", to, entries[0].Name())
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, empty(to))
		}
	}()
	// The file that makes it a data folder comes last.
	slices.SortStableFunc(m.Files, func(a, b File) int { return order(a) - order(b) })
	dirs := map[string]bool{to: true}
	err = each(dir, m, key, func(f File, content io.Reader) error {
		path := filepath.Join(to, filepath.FromSlash(f.Name))
		for dir := filepath.Dir(path); !dirs[dir]; dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, content)
		return errors.Join(err, out.Sync(), out.Close())
	})
	for dir := range dirs {
		if err == nil {
			err = syncDir(dir)
		}
	}
	return err
}

func order(f File) int {
	if f.Name == lastFile {
		return 1
	}
	return 0
}

// empty removes what a folder holds.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// each calls use with the content of each file of a backup, and compares what lies there with the manifest. It
// decrypts nothing without a key.
func each(dir string, m Manifest, key *Key, use func(File, io.Reader) error) error {
	for _, f := range m.Files {
		path := m.path(dir, f)
		err := withFile(path, func(file *os.File, size int64) error {
			if size != f.Size {
				return torn{path, fmt.Sprintf("it has %d bytes and the manifest says %d", size, f.Size)}
			}
			h := sha256.New()
			stored := io.TeeReader(file, h)
			content, err := stored, error(nil)
			if len(m.Keys) > 0 && key != nil {
				content, err = key.open(stored, m.Keys)
			}
			if err == nil {
				err = use(f, content)
			}
			if err == nil {
				_, err = io.Copy(io.Discard, content)
			}
			if _, rest := io.Copy(io.Discard, stored); rest != nil {
				return errors.Join(err, rest)
			}
			if hex.EncodeToString(h.Sum(nil)) != f.SHA256 { // this also explains an error of the decryption
				return torn{path, "its SHA-256 is not that of the manifest"}
			}
			return err
		})
		if errors.Is(err, os.ErrNotExist) {
			err = torn{path, "it is missing"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// torn is the error of a file that is not as it was written.
type torn struct{ path, what string }

func (t torn) Error() string {
	return fmt.Sprintf("the file %s of the backup is torn (%s): use another backup", t.path, t.what)
}
