package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Key gives access to an app: the hash of a secret, and what the secret permits.
type Key struct {
	// Hash is the SHA-256 of the key in lower-case hex. The key itself is not
	// stored.
	Hash string
	// ACL names what the key permits; see package auth.
	ACL       []string
	CreatedAt time.Time // to the microsecond
	// Name is what the app's operator calls the key; see validKeyName. Keys that
	// replace one another have one name. Empty: the key is older than names.
	Name string
	// Description is a text for people.
	Description string
	// ValidUntil is when the key ends, by the clocks of the functions. Zero: it does
	// not end.
	ValidUntil time.Time
	// Indexes are the indexes that the key is for, as patterns with * for any
	// characters. Empty: all.
	Indexes []string
	// Referers are the pages that the key is for, as patterns; see package auth.
	// Empty: the key is for servers too.
	Referers []string
	// AddressRate is how many requests a minute one address may send with the key to
	// one instance of a function. 0: no limit.
	AddressRate int
	// HashTokens says that event.HashToken makes a user token of each id of a user in the
	// calls of SDKs that come with the key, also of an id that is a token.
	HashTokens bool
	// Region is where users begin whose first event comes with the key, in an app whose residency goes by keys.
	// Empty: in the region of the app.
	Region string
	// Parent is the text of the key, encrypted by a Cipher. A key with it is a parent
	// of secured keys; see package auth.
	Parent []byte
}

// Bounds of a key's attributes.
const (
	maxDescription = 500 // bytes
	maxPatterns    = 100 // of Indexes, and of Referers
	maxPattern     = 512 // bytes
	maxAddressRate = 1_000_000
	maxSealed      = 1_000 // bytes of Parent
)

// idDigits is how many hexadecimal digits of its hash name a key.
const idDigits = 12

var (
	hashForm    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	keyNameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$`)
)

// validKeyName reports whether s is 1 to 50 letters, digits, dots, - and _, and
// begins with a letter or a digit. No name can be mistaken for a hash.
func validKeyName(s string) bool { return keyNameForm.MatchString(s) }

// ID is the start of the key's hash: it names the key to people, and opens nothing.
func (k Key) ID() string { return k.Hash[:min(len(k.Hash), idDigits)] }

// Called is what people call the key: its name, or its ID if it has none.
func (k Key) Called() string { return cmp.Or(k.Name, k.ID()) }

// Ended reports whether the key is no longer valid.
func (k Key) Ended(now time.Time) bool { return !k.ValidUntil.IsZero() && !now.Before(k.ValidUntil) }

// Prepare checks a key and returns it as a Store writes it. Hash must be a hash:
// anything else might be a key that the caller forgot to hash.
func (k Key) Prepare() (Key, error) {
	if !hashForm.MatchString(k.Hash) {
		return Key{}, errors.New("the hash of the key is not a SHA-256 in lower-case hex")
	}
	if k.Name != "" && !validKeyName(k.Name) {
		return Key{}, fmt.Errorf(
			"key name %.100q: want 1 to 50 letters, digits, ., - and _, the first a letter or digit", k.Name)
	}
	if len(k.Description) > maxDescription || !utf8.ValidString(k.Description) {
		return Key{}, fmt.Errorf("description of the key: want a text of at most %d bytes", maxDescription)
	}
	if k.AddressRate < 0 || k.AddressRate > maxAddressRate {
		return Key{}, fmt.Errorf("requests a minute from an address: want 0 (no limit) to %d, got %d", maxAddressRate,
			k.AddressRate)
	}
	if k.Region != "" && !ValidRegion(k.Region) {
		return Key{}, fmt.Errorf("region of the key %q: want 1 to 40 of a-z, 0-9 and -", k.Region)
	}
	if len(k.Parent) > maxSealed {
		return Key{}, fmt.Errorf("encrypted text of the key: want at most %d bytes, got %d", maxSealed, len(k.Parent))
	}
	if err := errors.Join(checkPatterns("indexes", k.Indexes), checkPatterns("referers", k.Referers)); err != nil {
		return Key{}, err
	}
	k.ACL, k.Indexes, k.Referers = slices.Clone(k.ACL), slices.Clone(k.Indexes), slices.Clone(k.Referers)
	k.Parent = slices.Clone(k.Parent)
	k.CreatedAt = Stamp(k.CreatedAt)
	if !k.ValidUntil.IsZero() {
		k.ValidUntil = Stamp(k.ValidUntil)
	}
	return k, nil
}

// checkPatterns refuses a list that would exclude more or less than its author
// meant: an empty pattern, or one with spaces around it.
func checkPatterns(what string, patterns []string) error {
	if len(patterns) > maxPatterns {
		return fmt.Errorf("%s of the key: %d patterns, want at most %d", what, len(patterns), maxPatterns)
	}
	for _, p := range patterns {
		if p == "" || len(p) > maxPattern || !utf8.ValidString(p) || strings.TrimSpace(p) != p {
			return fmt.Errorf("%s of the key: pattern %.100q: want 1 to %d bytes without spaces around them", what, p,
				maxPattern)
		}
	}
	return nil
}
