package stack

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/rows"
	"github.com/affinityengine/affinity/shared/local/seal"
)

// Spaces of the data folder, beside those of package rows.
const (
	spaceDocuments disk.Space = 'c'
	spaceMessages  disk.Space = 'm'
	spaceTasks     disk.Space = 'q'
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
	text, err := s.disk.ReadFile(cipherFile)
	if errors.Is(err, os.ErrNotExist) {
		key := seal.NewKey()
		return seal.WithKey(key), s.disk.WriteFile(cipherFile, key[:])
	}
	if err != nil {
		return nil, err
	}
	if len(text) != seal.KeyBytes {
		return nil, fmt.Errorf("the file %s of the data folder has %d bytes, want %d: restore it from a copy; "+
			"without it, no secured key of the folder's apps is valid", cipherFile, len(text), seal.KeyBytes)
	}
	return seal.WithKey([seal.KeyBytes]byte(text)), nil
}
