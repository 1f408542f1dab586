package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/cache"
)

// MaxParents is how many keys of an app may be parents of secured keys. A check of
// a secured key tries each.
const MaxParents = 5

// ErrTooManyParents says that an app has MaxParents parents.
var ErrTooManyParents = fmt.Errorf("the app has %d parents, as many as it may: remove one first", MaxParents)

// ErrSealed says that a text was encrypted by another Cipher or for another key,
// or is damaged. A retry does not help.
var ErrSealed = errors.New("the encrypted text of the key cannot be decrypted")

// Cipher encrypts the texts of parents. It is safe for concurrent use.
type Cipher interface {
	// Encrypt encrypts a text. Only a caller that gives the same owner decrypts it.
	Encrypt(ctx context.Context, text, owner []byte) ([]byte, error)
	// Decrypt returns ErrSealed if sealed is not a text of the owner. Any other error
	// may be gone later.
	Decrypt(ctx context.Context, sealed, owner []byte) ([]byte, error)
}

// owner binds an encrypted text to its key, so that a copy in the document of
// another app is of no use.
func owner(appID, hash string) []byte { return []byte("affinity parent " + appID + "," + hash) }

// KeyPutter stores keys, as a Store does.
type KeyPutter interface {
	PutKey(ctx context.Context, appID string, key Key) error
}

// AddParent stores a key as a parent: with its text, encrypted. It returns
// ErrTooManyParents if the app has MaxParents others, and ErrNotFound if the app does
// not exist.
func AddParent(ctx context.Context, s KeyPutter, c Cipher, appID string, key Key, text string) error {
	if sum := sha256.Sum256([]byte(text)); key.Hash != hex.EncodeToString(sum[:]) {
		return errors.New("the hash of the key is not that of its text")
	}
	var err error
	if key.Parent, err = c.Encrypt(ctx, []byte(text), owner(appID, key.Hash)); err != nil {
		return fmt.Errorf("encrypt the text of a parent: %w", err)
	}
	return s.PutKey(ctx, appID, key)
}

// CheckParents returns ErrTooManyParents if the key is a parent and an app with
// these parents may not have it too.
func (k Key) CheckParents(parents []Key) error {
	if len(k.Parent) == 0 {
		return nil
	}
	others := 0
	for _, p := range parents {
		if p.Hash != k.Hash {
			others++
		}
	}
	if others >= MaxParents {
		return ErrTooManyParents
	}
	return nil
}

// Parent is a key with its text.
type Parent struct {
	Key
	// Text is the key itself. It must not be logged.
	Text []byte
	// Err is why the text cannot be decrypted, ErrSealed; nil if it can.
	Err error
}

// The number of apps whose parents a Cached keeps, and of decrypted texts.
const (
	cachedParents = 1_000
	cachedTexts   = cachedParents * MaxParents
)

// parents are the parents of apps as they were at most one TTL ago.
type parents struct {
	cipher Cipher
	apps   answers[string, []Parent]
	texts  cache.Map[textID, []byte]
}

// textID names a text, which never changes.
type textID struct{ owner, sealed string }

// WithCipher returns a Cached that shares c's answers and also reads parents.
func (c *Cached) WithCipher(cipher Cipher) *Cached {
	with := *c
	with.parents = &parents{
		cipher: cipher, apps: newAnswers[string, []Parent](cachedParents, c.ttl, c.now, itself),
		texts: cache.New[textID, []byte](cachedTexts),
	}
	return &with
}

// ReadsParents reports whether c has a Cipher.
func (c *Cached) ReadsParents() bool { return c.parents != nil }

// Parents returns the parents of an app, or ErrNotFound if it has none or does not
// exist. While the Store or the Cipher fails or hangs, it answers as of up to five
// minutes ago, as Access does. It decrypts a text once, and keeps it for as long
// as the process has room.
func (c *Cached) Parents(ctx context.Context, appID string) ([]Parent, error) {
	if c.parents == nil {
		return nil, ErrNotFound
	}
	if _, err := c.apps.getStale(ctx, appID,
		func(ctx context.Context) (App, error) { return c.source.App(ctx, appID) }); err != nil {
		return nil, err
	}
	return c.parents.apps.getStale(ctx, appID, func(ctx context.Context) ([]Parent, error) {
		keys, err := c.source.Parents(ctx, appID)
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("parents of app %q: %w", appID, ErrNotFound)
		}
		found := make([]Parent, len(keys))
		for i, key := range keys {
			text, err := c.parents.text(ctx, appID, key)
			if err != nil && !errors.Is(err, ErrSealed) {
				return nil, fmt.Errorf("decrypt a parent of app %q: %w", appID, err)
			}
			found[i] = Parent{key, text, err}
		}
		return found, nil
	})
}

// text returns the text of a parent.
func (p *parents) text(ctx context.Context, appID string, key Key) ([]byte, error) {
	id := textID{string(owner(appID, key.Hash)), string(key.Parent)}
	if text, ok := p.texts.Get(id); ok {
		return text, nil
	}
	text, err := p.cipher.Decrypt(ctx, key.Parent, []byte(id.owner))
	if err != nil {
		return nil, fmt.Errorf("key %.12s of app %s: %w", key.Hash, appID, err)
	}
	p.texts.Set(id, text)
	return text, nil
}

// HoldsParents reports whether the last read of the app's parents found some. It
// reads nothing.
func (c *Cached) HoldsParents(appID string) bool {
	return c.parents != nil && c.parents.apps.holds(appID)
}

// evictKey makes the next reads of a key and of the app's parents read the Store.
func (c *Cached) evictKey(appID, hash string) {
	c.keys.Evict(keyID{appID, hash})
	if c.parents != nil {
		c.parents.apps.Evict(appID)
	}
}
