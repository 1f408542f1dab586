package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/functions/console"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/operator"
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
	spaceHealth    disk.Space = 'h'
)

// Files of the data folder that hold secrets.
const (
	OperatorFile = "operator.token" // of Options.Operator
	consoleFile  = "console.key"    // encrypts the sessions of the console
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
		s.disk, err = disk.OpenWith(o.Data, disk.Settings{Sync: o.Sync, Version: build(), Files: o.Files}, rows.Join, o.Log)
	}
	if err == nil {
		s.onClose(s.disk.Close)
	}
	return err
}

// build names this program's version and commit, which is what another build of it differs in.
func build() string {
	info, _ := debug.ReadBuildInfo()
	return strings.TrimSpace(api.Version + " " + api.Release(info))
}

// provenAfter is how long an engine serves, and can write and read, until its version is proven with the folder.
const provenAfter = 10 * time.Second

// prove goes on until this version is proven with the folder, or the stack closes.
func (s *Stack) prove(check *health, after time.Duration, log *slog.Logger) {
	s.goOn(func(ctx context.Context) {
		for gax.Sleep(ctx, after) == nil {
			err := check.check()
			if err == nil {
				err = s.disk.Prove()
			}
			if err == nil {
				return
			}
			log.LogAttrs(ctx, slog.LevelError, "this version is not proven with the data folder yet", slog.Any("error", err))
		}
	})
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

// keptSecret returns a file of the data folder, which the first start fills with made.
func (s *Stack) keptSecret(file string, made []byte) ([]byte, error) {
	text, err := s.disk.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return made, s.disk.WriteFile(file, made)
	}
	return text, err
}

// keepOperator decides the operator's token.
func (s *Stack) keepOperator(o Options) error {
	if s.Operator = o.Operator; s.Operator != "" {
		return nil
	}
	text, err := s.keptSecret(OperatorFile, []byte(operator.NewToken()+"\n"))
	if err != nil {
		return err
	}
	s.Operator = string(bytes.TrimSpace(text))
	if err := operator.CheckToken(s.Operator); err != nil {
		return fmt.Errorf("the file %s of the data folder: %w: write one, or remove the file, and the next start makes one",
			OperatorFile, err)
	}
	return nil
}

// consoleSecret returns the secret of the console's sessions, which go on after a restart with the folder.
func (s *Stack) consoleSecret() (console.Secret, error) {
	made := console.NewSecret()
	text, err := s.keptSecret(consoleFile, made[:])
	if err == nil && len(text) != len(made) {
		err = fmt.Errorf("the file %s of the data folder has %d bytes, want %d: remove it, and everybody logs in to the "+
			"console again", consoleFile, len(text), len(made))
	}
	if err != nil {
		return made, err
	}
	return console.Secret(text), nil
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
