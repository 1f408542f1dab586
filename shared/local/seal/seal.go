// Package seal encrypts the texts of parents on one machine, where a deployment
// has Cloud KMS. The key lives as long as its Cipher.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"github.com/affinityengine/affinity/shared/config"
)

type sealer struct{ aead cipher.AEAD }

// New returns a Cipher with a random key.
func New() config.Cipher {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
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
