package stack

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/rows"
)

// FolderReport says what a data folder holds.
type FolderReport struct {
	Damage []string // a sentence for each file
	Keys   bool     // cipher.key is the folder's own
	Values int      // that can be read
}

// LookAtData returns what can be seen of a data folder while an engine uses it.
func LookAtData(dir string) (disk.Condition, error) { return disk.Look(dir) }

// CheckData reads all of a data folder that no process uses, and writes nothing. An error says
// that the folder cannot be read at all.
func CheckData(dir string) (FolderReport, error) {
	return inspect(dir, func([]byte, []byte) error { return nil })
}

// inspect reads a folder past its damage.
func inspect(dir string, each func(key, value []byte) error) (FolderReport, error) {
	var r FolderReport
	var sum []byte
	var err error
	r.Damage, err = disk.Inspect(dir, rows.Join, func(key, value []byte) error {
		r.Values++
		if bytes.Equal(key, append([]byte{byte(spaceCipher)}, cipherSum...)) {
			sum = bytes.Clone(value)
		}
		return each(key, value)
	})
	if err != nil {
		return r, err
	}
	text, err := os.ReadFile(filepath.Join(dir, cipherFile))
	err = checkCipher(text, err, sum)
	if r.Keys = err == nil; err != nil {
		r.Damage = append(r.Damage, err.Error())
	}
	return r, nil
}

// salvageBytes is how much of a folder is written in one batch.
const salvageBytes = 4 << 20

// SalvageData copies what can be read of a data folder to a new one, which it makes, and reports
// the damage. The folder itself stays as it is.
func SalvageData(dir, to string) (report FolderReport, err error) {
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return report, fmt.Errorf("the folder %s holds %s already: name a new or an empty one", to, entries[0].Name())
	}
	if _, err := os.Stat(dir); err != nil {
		return report, err
	}
	out, err := disk.Open(to, rows.Join, slog.New(slog.DiscardHandler))
	if err != nil {
		return report, err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = fmt.Errorf("%w: the folder %s is not whole, delete it", err, to)
		}
	}()
	b, size := out.NewBatch(), 0
	report, err = inspect(dir, func(key, value []byte) error {
		b.Set(key, value)
		if size += len(key) + len(value); size < salvageBytes {
			return nil
		}
		err := out.CommitLater(b)
		b, size = out.NewBatch(), 0
		return err
	})
	if err = errors.Join(err, out.Commit(b)); err != nil {
		return report, err
	}
	return report, copyFiles(dir, out)
}

// copyFiles copies the files beside the database that a folder has.
func copyFiles(dir string, to *disk.Disk) error {
	for _, name := range []string{cipherFile, regionsFile, clockFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err = errors.Join(err, to.WriteFile(name, text)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}

// RekeyData gives a data folder that no process uses a new cipher.key in place of a lost one.
// Secured keys of parents that the old one had encrypted are not valid any more.
func RekeyData(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	d, err := disk.Open(dir, rows.Join, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	text, err := d.ReadFile(cipherFile)
	sum, sumErr := keptSum(d)
	if sumErr == nil {
		if err = checkCipher(text, err, sum); err == nil {
			err = fmt.Errorf("the file %s of %s is the folder's own, and its secured keys are valid: nothing is to be done",
				cipherFile, dir)
		} else {
			_, err = newCipher(d)
		}
	}
	return errors.Join(err, sumErr, d.Close())
}
