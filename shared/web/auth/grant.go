package auth

import (
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Grant is what the key of a request permits.
type Grant struct {
	// App is the id of the key's app.
	App string
	// Key is what people call the key: its name, or the start of its hash.
	Key string
	// HashTokens says that the ids of users in calls of SDKs are hashed: see config.Key.
	HashTokens bool
	// Region is that of the key: see config.Key.
	Region string

	hash    string // of the key; of a secured key that of its parent
	acl     []string
	indexes [][]string // lists of patterns; an index must match one of each
	user    string     // the only user; empty: all
}

// Is reports whether the grant is that of a key. Keys that replace one another have one
// name, so Key does not say.
func (g Grant) Is(k config.Key) bool { return g.hash == k.Hash }

// KeyID is the ID of the key, and of a secured key that of its parent.
func (g Grant) KeyID() string { return config.Key{Hash: g.hash}.ID() }

// Require returns ErrForbidden if the key holds none of the ACLs. It needs no ACL
// if none is named. Where OwnUser is one of them, a hint names the way for a page.
func (g Grant) Require(anyOf ...string) error {
	switch {
	case len(anyOf) == 0 || g.holds(anyOf...):
		return nil
	case slices.Contains(anyOf, OwnUser):
		return hinted(ErrForbidden, "A page needs a secured key of the user, and a server a key with the permission "+
			"recommendation: /docs#secured-keys")
	}
	return ErrForbidden
}

func (g Grant) holds(anyOf ...string) bool {
	return slices.ContainsFunc(g.acl, func(held string) bool { return slices.Contains(anyOf, held) })
}

// Index returns ErrIndex if the key is for other indexes. No index stands for all
// of them.
func (g Grant) Index(name string) error {
	if name == "" && len(g.indexes) > 0 {
		return ErrAnyIndex
	}
	for _, patterns := range g.indexes {
		if !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) }) {
			return ErrIndex
		}
	}
	return nil
}

// OnlyIndex returns the one index that the key is for, empty if it may be for others.
func (g Grant) OnlyIndex() string {
	for _, patterns := range g.indexes {
		if len(patterns) == 1 && !strings.Contains(patterns[0], "*") {
			return patterns[0]
		}
	}
	return ""
}

// User returns ErrUser if the key is for another user. No user stands for all of
// them.
func (g Grant) User(token string) error {
	switch {
	case g.user == "" || g.user == token:
		return nil
	case token == "":
		return ErrAnyUser
	}
	return ErrUser
}

// OwnUser returns the only user that the key is for, empty if it is for all.
func (g Grant) OwnUser() string { return g.user }

// Server reports whether the key is that of a server: it holds a permission that no key in a web page may hold.
func (g Grant) Server() bool {
	return slices.ContainsFunc(g.acl, func(held string) bool { return held != Search && held != OwnUser })
}

// matches reports whether a text matches a pattern, in which each * stands for
// any characters.
func matches(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, parts[last])
}
