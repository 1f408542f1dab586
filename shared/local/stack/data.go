package stack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/rows"
	"github.com/affinityengine/affinity/shared/local/seal"
)

// Spaces of the data folder, beside those of package rows.
const (
	spaceDocuments disk.Space = 'c'
	spaceKeys      disk.Space = 'a'
	spaceMessages  disk.Space = 'm'
	spaceTasks     disk.Space = 'q'
	spaceCipher    disk.Space = 'k'
)

// cipherFile holds the key that encrypts the texts of parents.
const cipherFile = "cipher.key"

// openDisk opens the data folder, or a Disk in memory.
func (s *Stack) openDisk(o Options) (err error) {
	if o.Data == "" {
		s.disk, err = disk.InMemory(rows.Join, o.Log)
	} else {
		for _, variable := range []string{"BIGTABLE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST", "FIRESTORE_EMULATOR_HOST"} {
			if emulated(variable) {
				return fmt.Errorf("%s names an emulator, which keeps nothing in the data folder: unset it, or start "+
					"without a data folder", variable)
			}
		}
		s.disk, err = disk.Open(o.Data, rows.Join, o.Log)
	}
	if err == nil {
		s.onClose(s.disk.Close)
	}
	return err
}

// keptTasks keep tasks. The worker of a later process has another
// address and another token.
func (s *Stack) keptTasks(workerURL string, header http.Header) *emulator.KeptTasks {
	readdress := func(r *cloudtaskspb.HttpRequest) error {
		old, err := url.Parse(r.GetUrl())
		if err != nil {
			return err
		}
		path, ok := strings.CutPrefix(old.RequestURI(), workerPath)
		if !ok {
			return fmt.Errorf("%s is no address of a worker", r.GetUrl())
		}
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Url, r.Headers["Authorization"] = workerURL+path, header.Get("Authorization")
		return nil
	}
	return &emulator.KeptTasks{Records: s.disk.Records(spaceTasks), Readdress: readdress}
}

// cipher returns the cipher of parents. Its key lives in the data folder, if there is one,
// beside what it encrypts.
func (s *Stack) cipher() (config.Cipher, error) {
	sum, err := keptSum(s.disk)
	if err != nil {
		return nil, err
	}
	text, err := s.disk.ReadFile(cipherFile)
	if errors.Is(err, os.ErrNotExist) && sum == nil {
		return newCipher(s.disk)
	}
	if err := checkCipher(text, err, sum); err != nil {
		return nil, err
	}
	key := [seal.KeyBytes]byte(text)
	if sum == nil {
		err = keepSum(s.disk, key)
	}
	return seal.WithKey(key), err
}

// newCipher gives a folder a new key.
func newCipher(d *disk.Disk) (config.Cipher, error) {
	key := seal.NewKey()
	return seal.WithKey(key), errors.Join(d.WriteFile(cipherFile, key[:]), keepSum(d, key))
}

// cipherSum is the record of the hash of the key, by which another key is known.
const cipherSum = "sha256"

func keepSum(d *disk.Disk, key [seal.KeyBytes]byte) error {
	sum := sha256.Sum256(key[:])
	return d.Records(spaceCipher).Save(documents.Record{Name: cipherSum, Value: sum[:]})
}

// keptSum returns the hash of the folder's key; nil if it has none yet.
func keptSum(d *disk.Disk) (sum []byte, err error) {
	err = d.Records(spaceCipher).Load(func(_ string, value []byte) error { sum = bytes.Clone(value); return nil })
	return sum, err
}

// checkCipher returns what is wrong with the key of a folder, which was read with an error. sum is
// the hash of the right one; nil if it is not known.
func checkCipher(text []byte, err error, sum []byte) error {
	have := sha256.Sum256(text)
	var what string
	switch {
	case errors.Is(err, os.ErrNotExist):
		what = "is missing"
	case err != nil:
		return err
	case len(text) != seal.KeyBytes:
		what = fmt.Sprintf("has %d bytes, want %d", len(text), seal.KeyBytes)
	case sum != nil && !bytes.Equal(sum, have[:]):
		what = "is not the one that the folder was used with"
	default:
		return nil
	}
	return fmt.Errorf("the file %s of the data folder %s: restore it from a copy. It decrypts the parents of secured "+
		"keys; if it is lost, `affinity data rekey` makes another, and no secured key is valid until its parent is "+
		"added again (affinity up --app ID:KEY)", cipherFile, what)
}
