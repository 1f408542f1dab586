package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/config"
)

// Where clients put their credentials, as headers or as query parameters.
const (
	appIDName = "x-algolia-application-id"
	keyName   = "x-algolia-api-key"
)

// Credentials finds the app id and the key of a request, empty where there are
// none. header is that of http.Header's Get. Clients use either place; a header
// wins over a query parameter, whose name may be in any case. The browser client
// leaves the key in a query unencoded, so that a + in it arrives as a space: it
// is made a + again.
func Credentials(header func(string) string, query url.Values) (appID, key string) {
	if appID = header(appIDName); appID == "" {
		appID = parameter(query, appIDName)
	}
	if key = header(keyName); key == "" {
		key = strings.ReplaceAll(parameter(query, keyName), " ", "+")
	}
	return appID, key
}

// parameter returns the first value of the query parameter of that name. If it
// is there in several spellings, one of them counts, always the same.
func parameter(query url.Values, name string) string {
	for _, spelling := range slices.Sorted(maps.Keys(query)) {
		if strings.EqualFold(spelling, name) && query.Get(spelling) != "" {
			return query.Get(spelling)
		}
	}
	return ""
}

// ValidAppID says whether s has the form of an app id: 1 to 64 of [A-Za-z0-9_-].
func ValidAppID(s string) bool { return config.ValidAppID(s) }

// Hash returns what is stored of a key: its SHA-256 in lower-case hex. Keys are
// random and long, so nothing slower is needed.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

const (
	// keyLength gives a key 238 bits, more than its hash can be attacked by.
	keyLength  = 40
	keyLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// NewKey returns a new key: 40 random letters and digits, which no client and no
// URL has to encode.
func NewKey() string {
	key := make([]byte, 0, keyLength)
	// Of the 256 values of a byte the first 248 fall evenly on 62 letters.
	const even = 256 / len(keyLetters) * len(keyLetters)
	var random [64]byte
	for len(key) < keyLength {
		// It never fails: the program ends where there is no randomness.
		_, _ = rand.Read(random[:])
		for _, b := range random {
			if int(b) < even && len(key) < keyLength {
				key = append(key, keyLetters[int(b)%len(keyLetters)])
			}
		}
	}
	return string(key)
}
