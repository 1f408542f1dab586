// Package kmscipher encrypts the texts of parents with a key of Cloud KMS, which
// never leaves it. It is separate so that only the functions that check secured
// keys link the client.
package kmscipher

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/api/cloudkms/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Config names the key.
type Config struct {
	// Key is projects/P/locations/L/keyRings/R/cryptoKeys/K. Empty: the deployment has
	// no parents.
	Key string `env:"PARENTS_KMS_KEY"`
}

type cipher struct {
	keys *cloudkms.ProjectsLocationsKeyRingsCryptoKeysService
	name string
}

// Open returns the Cipher of a key.
func Open(ctx context.Context, c Config, opts ...option.ClientOption) (config.Cipher, error) {
	service, err := cloudkms.NewService(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("open Cloud KMS: %w", err)
	}
	return cipher{service.Projects.Locations.KeyRings.CryptoKeys, c.Key}, nil
}

// WithParents returns a configuration that reads parents, if c names a key.
func WithParents(ctx context.Context, cached *config.Cached, c Config) (*config.Cached, error) {
	if c.Key == "" {
		return cached, nil
	}
	opened, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return cached.WithCipher(opened), nil
}

func (c cipher) Encrypt(ctx context.Context, text, owner []byte) ([]byte, error) {
	answer, err := c.keys.Encrypt(c.name, &cloudkms.EncryptRequest{
		Plaintext:                   base64.StdEncoding.EncodeToString(text),
		AdditionalAuthenticatedData: base64.StdEncoding.EncodeToString(owner),
	}).Context(ctx).Do()
	if err != nil {
		return nil, fault{"encrypt", c.name, err}
	}
	return base64.StdEncoding.DecodeString(answer.Ciphertext)
}

func (c cipher) Decrypt(ctx context.Context, sealed, owner []byte) ([]byte, error) {
	answer, err := c.keys.Decrypt(c.name, &cloudkms.DecryptRequest{
		Ciphertext:                  base64.StdEncoding.EncodeToString(sealed),
		AdditionalAuthenticatedData: base64.StdEncoding.EncodeToString(owner),
	}).Context(ctx).Do()
	if err != nil {
		// Cloud KMS answers 400 to a text of another key or owner.
		if code(err) == http.StatusBadRequest {
			return nil, fmt.Errorf("%w: %w", config.ErrSealed, err)
		}
		return nil, fault{"decrypt", c.name, err}
	}
	return base64.StdEncoding.DecodeString(answer.Plaintext)
}

// fault is a failed call.
type fault struct {
	what, key string
	err       error
}

func (f fault) Error() string {
	return fmt.Sprintf("%s with the Cloud KMS key %s: %v", f.what, f.key, f.err)
}
func (f fault) Unwrap() error { return f.err }

// Transient reports whether the call may succeed later. An error without a status
// is one of the connection.
func (f fault) Transient() bool {
	status := code(f.err)
	return status == 0 || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// code is the HTTP status of an error, 0 if it has none.
func code(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}
