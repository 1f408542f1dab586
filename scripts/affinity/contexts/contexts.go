// Package contexts keeps the engines that a person works with by name: the URL, the app, the
// key and the deployment of each, and which one is current. URLs and apps are in the file contexts.json of
// a folder. Keys are in the keyring of the operating system or, where there is none, in the
// same file, which only its owner may read.
package contexts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/zalando/go-keyring"
)

// service is the name of the keys in the keyring.
const service = "affinity"

// ErrNotFound says that no context has the name.
var ErrNotFound = errors.New("no such context")

// Context names an engine and an app.
type Context struct {
	URL string `json:"url"`
	App string `json:"app"`
	// Key is the key if it is in the file, "" if it is in the keyring.
	Key string `json:"key,omitempty"`
	// Deployment is nil for an engine that the person does not operate.
	Deployment *Deployment `json:"deployment,omitempty"`
}

// Deployment is a deployed engine, as Terraform's output cli names it.
type Deployment struct {
	URL          string `json:"url,omitempty"` // "" without a host
	Project      string `json:"project"`
	Database     string `json:"database"`      // of Firestore
	KeysDatabase string `json:"keys_database"` // of Firestore, with the keys alone
	Instance     string `json:"instance"`      // of Bigtable
	AppProfile   string `json:"app_profile"`
	Regions      string `json:"regions,omitempty"` // as config.Regions writes them
	Queue        string `json:"queue"`             // of the worker
	KMSKey       string `json:"kms_key,omitempty"` // of parents of secured keys
}

// List is all contexts, and the name of the current one, "" if none is.
type List struct {
	Current  string             `json:"current"`
	Contexts map[string]Context `json:"contexts"`
}

// Store keeps contexts in a folder.
type Store struct{ path string }

// New returns the Store of a folder, which need not exist.
func New(folder string) Store { return Store{filepath.Join(folder, "contexts.json")} }

// Read returns all contexts.
func (s Store) Read() (List, error) {
	l := List{Contexts: map[string]Context{}}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read the contexts in %s: %w", s.path, err)
	}
	return l, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Add adds or replaces a context, whose Key may be "". The first one becomes the current one.
// inFile reports that the key is in the file, because the machine has no keyring that can be
// used.
func (s Store) Add(name string, c Context) (inFile bool, err error) {
	if !nameForm.MatchString(name) {
		return false, fmt.Errorf("the name %.70q of a context must have 1 to 64 letters, digits, dots, - and _, and "+
			"begin with a letter or a digit", name)
	}
	l, err := s.Read()
	if err != nil {
		return false, err
	}
	if key := c.Key; key != "" {
		if c.Key = ""; keyring.Set(service, name, key) != nil {
			c.Key, inFile = key, true
		}
	}
	l.Contexts[name] = c
	if len(l.Contexts) == 1 {
		l.Current = name
	}
	return inFile, s.write(l)
}

// Use makes a context the current one.
func (s Store) Use(name string) error {
	l, err := s.Read()
	if err != nil {
		return err
	}
	if _, ok := l.Contexts[name]; !ok {
		return fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	l.Current = name
	return s.write(l)
}

// Delete removes a context and its key. Without the current one, none is current.
func (s Store) Delete(name string) error {
	l, err := s.Read()
	if err != nil {
		return err
	}
	c, ok := l.Contexts[name]
	if !ok {
		return fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	if c.Key == "" && c.App != "" {
		if err := keyring.Delete(service, name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("delete the key of context %q from the keyring: %w", name, err)
		}
	}
	delete(l.Contexts, name)
	if l.Current == name {
		l.Current = ""
	}
	return s.write(l)
}

// key returns the key of the context of a name, "" if it has none.
func (c Context) key(name string) (string, error) {
	if c.Key != "" || c.App == "" {
		return c.Key, nil
	}
	key, err := keyring.Get(service, name)
	if err != nil {
		return "", fmt.Errorf("read the key of context %q from the keyring: %w", name, err)
	}
	return key, nil
}

// Key returns the key of the context of a name.
func (l List) Key(name string) (string, error) { return l.Contexts[name].key(name) }

// write replaces the file, or leaves it as it was.
func (s Store) write(l List) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.path), 0o700)
	}
	var file *os.File
	if err == nil {
		file, err = os.CreateTemp(filepath.Dir(s.path), ".contexts-*") // only its owner may read it
	}
	if err != nil {
		return fmt.Errorf("write the contexts: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write the contexts: %w", err)
	}
	return nil
}
