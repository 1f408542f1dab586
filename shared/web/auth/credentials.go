package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Names of the credentials, as headers, the way net/http writes them, and as query
// parameters.
const (
	appIDName = "X-Algolia-Application-Id"
	keyName   = "X-Algolia-Api-Key"
)

// WriteKey is the query parameter that holds the write key of a beacon of RudderStack's SDK.
const WriteKey = "writeKey"

// Credentials returns the app id and the key of a request, empty if missing. header
// is the Get method of its http.Header. A header takes precedence over a query
// parameter, whose name may be in any case, and that over a write key, of which that
// of Basic authentication counts before that of the query. Clients in browsers do not encode the
// key in a query, so a + arrives as a space; Credentials turns it into a + again.
func Credentials(header func(string) string, query url.Values) (appID, key string) {
	if appID = header(appIDName); appID == "" {
		appID = parameter(query, appIDName)
	}
	if key = header(keyName); key == "" {
		key = strings.ReplaceAll(parameter(query, keyName), " ", "+")
	}
	if appID == "" && key == "" {
		appID, key = basic(header("Authorization"))
	}
	if appID == "" && key == "" && query.Has(WriteKey) {
		appID, key, _ = strings.Cut(strings.ReplaceAll(query.Get(WriteKey), " ", "+"), ":")
	}
	return appID, key
}

// basic returns the app id and the key of a write key, APP:KEY, which SDKs of Segment
// and RudderStack send as the user name of Basic authentication, with an empty password.
// So it also takes an app id as the user name and a key as the password. A write key
// names its app because keys belong to apps: to look up a key alone, the engine would
// need a list of the keys of all apps. Both are empty if the header has another form.
func basic(authorization string) (appID, key string) {
	scheme, encoded, _ := strings.Cut(authorization, " ")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if !strings.EqualFold(scheme, "Basic") || err != nil {
		return "", ""
	}
	appID, key, _ = strings.Cut(string(text), ":")
	return appID, strings.TrimSuffix(key, ":") // the empty password begins after it
}

// WithWriteKey returns a request whose credentials are the write key of its body, whatever r names.
func WithWriteKey(r *http.Request, writeKey string) *http.Request {
	with := *r
	with.Header = maps.Clone(r.Header) // another goroutine may read that of r, to answer in time
	appID, key, _ := strings.Cut(writeKey, ":")
	with.Header.Set(appIDName, appID)
	with.Header.Set(keyName, key)
	return &with
}

// parameter returns the first value of the query parameter with that name. Of
// several spellings of the name it always chooses the same one.
func parameter(query url.Values, name string) string {
	for _, spelling := range slices.Sorted(maps.Keys(query)) {
		if strings.EqualFold(spelling, name) && query.Get(spelling) != "" {
			return query.Get(spelling)
		}
	}
	return ""
}

// Hash returns what is stored of a key: its SHA-256 in lower-case hex. Keys are
// random and long, so a slow hash is not needed.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

const (
	// A key of this length has 238 bits of entropy.
	keyLength  = 40
	keyLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// NewKey returns a new key: 40 random letters and digits, which need no encoding
// in a URL.
func NewKey() string {
	key := make([]byte, 0, keyLength)
	// The first 248 values of a byte map evenly to the 62 letters.
	const even = 256 / len(keyLetters) * len(keyLetters)
	var random [64]byte
	for len(key) < keyLength {
		// Read never returns an error.
		_, _ = rand.Read(random[:])
		for _, b := range random {
			if int(b) < even && len(key) < keyLength {
				key = append(key, keyLetters[int(b)%len(keyLetters)])
			}
		}
	}
	return string(key)
}
