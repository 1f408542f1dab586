package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"filippo.io/age"
)

// Key encrypts and decrypts the files of backups, as age does. A nil Key leaves them as they are.
type Key struct {
	file       string
	recipients []age.Recipient
	identities []age.Identity
	names      []string // of the recipients
}

// ReadKey reads a file of age: lines with secret keys, which decrypt and encrypt, or public keys, which only
// encrypt. An empty name is no key.
func ReadKey(file string) (*Key, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key of backups: %w", err)
	}
	k := &Key{file: file}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := k.add(line); err != nil {
			// Its error could show the key.
			return nil, fmt.Errorf("the key file %s has a line that is no key of age: make one with `affinity backup key` or "+
				"age-keygen", file)
		}
	}
	if len(k.recipients) == 0 {
		return nil, fmt.Errorf("the key file %s has no key: make one with `affinity backup key` or age-keygen", file)
	}
	slices.Sort(k.names)
	return k, nil
}

func (k *Key) add(line string) error {
	if !strings.HasPrefix(line, "AGE-SECRET-KEY-") {
		r, err := age.ParseX25519Recipient(line)
		if err == nil {
			k.recipients, k.names = append(k.recipients, r), append(k.names, r.String())
		}
		return err
	}
	i, err := age.ParseX25519Identity(line)
	if err == nil {
		k.identities = append(k.identities, i)
		k.recipients, k.names = append(k.recipients, i.Recipient()), append(k.names, i.Recipient().String())
	}
	return err
}

// MakeKey writes a new key to a new file, which only its owner can read, and returns the public key.
func MakeKey(file string) (public string, err error) {
	i, err := age.GenerateX25519Identity()
	if err != nil {
		return "", err
	}
	public = i.Recipient().String()
	err = writeFile(file, []byte("# public key: "+public+"\n"+i.String()+"\n"))
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("the file %s exists: name a new one, because backups need the key that encrypted them", file)
	}
	return public, err
}

// public returns the public keys.
func (k *Key) public() []string {
	if k == nil {
		return nil
	}
	return k.names
}

// seal returns a writer of the content of a file that goes to out.
func (k *Key) seal(out io.Writer) (io.WriteCloser, error) {
	if k == nil {
		return plain{out}, nil
	}
	return age.Encrypt(out, k.recipients...)
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// open returns the content of a file that was encrypted for some public keys.
func (k *Key) open(sealed io.Reader, names []string) (io.Reader, error) {
	if len(k.identities) == 0 {
		return nil, wrongKey{k.file, "has only public keys", names}
	}
	content, err := age.Decrypt(sealed, k.identities...)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		return nil, wrongKey{k.file, "is not the one of the backup", names}
	}
	return content, err
}

// wrongKey is the error of a key that does not open a backup.
type wrongKey struct {
	file, what string
	names      []string
}

func (w wrongKey) Error() string {
	return fmt.Sprintf("the key file %s %s: give the secret key of %s", w.file, w.what, strings.Join(w.names, " or "))
}
