package kmscipher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/local/seal"
)

const key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"

// start serves the two routes of Cloud KMS that a Cipher calls. status other than
// 0 is the answer to each request.
func start(t *testing.T, status *int) config.Cipher {
	t.Helper()
	aead := seal.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Plaintext, Ciphertext, AdditionalAuthenticatedData []byte }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var answer struct {
			Plaintext  []byte `json:"plaintext,omitempty"`
			Ciphertext []byte `json:"ciphertext,omitempty"`
		}
		err := error(nil)
		switch r.URL.Path {
		case "/v1/" + key + ":encrypt":
			answer.Ciphertext, err = aead.Encrypt(r.Context(), in.Plaintext, in.AdditionalAuthenticatedData)
		case "/v1/" + key + ":decrypt":
			answer.Plaintext, err = aead.Decrypt(r.Context(), in.Ciphertext, in.AdditionalAuthenticatedData)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
		switch {
		case *status != 0:
			w.WriteHeader(*status)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	c, err := kmscipher.Open(t.Context(), kmscipher.Config{Key: key}, option.WithEndpoint(server.URL), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCipher(t *testing.T) {
	status := 0
	c := start(t, &status)
	sealed, err := c.Encrypt(t.Context(), []byte("text"), []byte("owner"))
	if err != nil || bytes.Contains(sealed, []byte("text")) {
		t.Fatalf("encrypted text %q, error %v", sealed, err)
	}
	if text, err := c.Decrypt(t.Context(), sealed, []byte("owner")); string(text) != "text" || err != nil {
		t.Errorf("decrypted %q, error %v", text, err)
	}
	if _, err := c.Decrypt(t.Context(), sealed, []byte("another")); !errors.Is(err, config.ErrSealed) {
		t.Errorf("another owner: %v", err)
	}
	for code, transient := range map[int]bool{403: false, 404: false, 429: true, 500: true, 503: true} {
		status = code
		_, err := c.Decrypt(t.Context(), sealed, []byte("owner"))
		var fault interface{ Transient() bool }
		if errors.Is(err, config.ErrSealed) || !errors.As(err, &fault) || fault.Transient() != transient {
			t.Errorf("status %d: %v, want transient: %v", code, err, transient)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Decrypt(ctx, sealed, []byte("owner")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWithoutAKey(t *testing.T) {
	cached := config.NewCached(config.NewMemory(), config.TTL)
	if with, err := kmscipher.WithParents(t.Context(), cached, kmscipher.Config{}); with != cached || err != nil || with.ReadsParents() {
		t.Errorf("%v, %v", with, err)
	}
}
