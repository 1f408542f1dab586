// Package seal encrypts the texts of parents on one machine, where a deployment
// has Cloud KMS.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"github.com/affinityengine/affinity/shared/app/config"
)

type sealer struct{ aead cipher.AEAD }

// KeyBytes is the length of a key.
const KeyBytes = 32

// NewKey returns a random key.
func NewKey() [KeyBytes]byte {
	var key [KeyBytes]byte
	_, _ = rand.Read(key[:]) // never fails
	return key
}

// New returns a Cipher with a random key, which lives as long as the Cipher.
func New() config.Cipher { return WithKey(NewKey()) }

// WithKey returns a Cipher that reads what one of the same key has encrypted.
func WithKey(key [KeyBytes]byte) config.Cipher {
	// Neither fails with a key of 32 bytes.
	block, _ := aes.NewCipher(key[:])
	aead, _ := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}
}

func (s sealer) Encrypt(_ context.Context, text, owner []byte) ([]byte, error) {
	return s.aead.Seal(nil, nil, text, owner), nil
}

func (s sealer) Decrypt(_ context.Context, sealed, owner []byte) ([]byte, error) {
	text, err := s.aead.Open(nil, nil, sealed, owner)
	if err != nil {
		return nil, config.ErrSealed
	}
	return text, nil
}
