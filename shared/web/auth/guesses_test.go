package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// counted returns the store of newStore, with a count of its reads.
func counted(t *testing.T, reads *int) config.Source {
	return configtest.Hooked(newStore(t), func(context.Context, string) error { *reads++; return nil })
}

// An address that keeps guessing is refused without a lookup. Another
// client of the address, whose key the process knows, is not.
func TestGuessingAddress(t *testing.T) {
	synctest.Test(t, guessingAddress) // no time passes, in which an address could guess again
}

func guessingAddress(t *testing.T) {
	reads := 0
	a := auth.New(config.NewCached(counted(t, &reads), config.TTL), auth.Environment{}, nil)
	ask := func(address, app, key string) error {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address + ":1234"
		r.Header.Set("X-Algolia-Application-Id", app)
		r.Header.Set("X-Algolia-API-Key", key)
		_, err := a.AppID(r)
		return err
	}
	if err := ask("192.0.2.1", "shop", "search"); err != nil {
		t.Fatal(err)
	}
	guesses := 0
	for ; guesses < 2_000; guesses++ {
		err := ask("192.0.2.1", fmt.Sprint("app", guesses), "guess")
		if errors.Is(err, auth.ErrGuesses) {
			break
		}
		if !errors.Is(err, auth.ErrCredentials) {
			t.Fatal(err)
		}
	}
	if guesses < 500 || guesses == 2_000 {
		t.Fatalf("refused after %d guesses", guesses)
	}
	before := reads
	if err := ask("192.0.2.1", "shop", "search"); err != nil {
		t.Errorf("a known key at the address: %v", err)
	}
	if err := ask("192.0.2.1", "", ""); !errors.Is(err, auth.ErrGuesses) {
		t.Errorf("no credentials at the address: %v", err)
	}
	if reads != before {
		t.Errorf("%d reads for an address that is refused", reads-before)
	}
	if err := ask("192.0.2.2", "zoo", "zoo"); err != nil {
		t.Errorf("another address: %v", err)
	}
}
