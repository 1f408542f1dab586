package event

import (
	"crypto/sha256"
	"encoding/base64"
)

// HashToken returns the user token that stands for an id that is none, such as an e-mail
// address: base64url without padding of the id's SHA-256, 43 characters. It is the same
// for an id wherever it comes from, so programs that know the id can compute the token.
func HashToken(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
