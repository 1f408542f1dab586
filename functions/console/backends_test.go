package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// environment is what the deployment sets of the function.
func environment() map[string]string {
	return map[string]string{
		"BIGTABLE_PROJECT": "p", "BIGTABLE_INSTANCE": "i", "FIRESTORE_PROJECT": "p", "FIRESTORE_KEYS_DATABASE": "k", "PUBSUB_PROJECT": "p", "TASKS_QUEUE": "projects/p/locations/l/queues/worker",
		"WORKER_URL": "https://worker.example.com", "CUSTOMER_HOSTS": `{"shop.example.com":"shop"}`, "FORWARDED_ADDRESSES": "2",
		"CONSOLE_API_URL": "https://api.example.com", "CONSOLE_SECRET": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\n",
	}
}

func TestSettings(t *testing.T) {
	var s Settings
	if err := env.ParseWithOptions(&s, env.Options{Environment: environment()}); err != nil {
		t.Fatal(err)
	}
	if s.Validate() != nil || s.Secret == (Secret{}) || s.Auth.Hosts.Of("shop.example.com") != "shop" || s.Auth.Forwarded != 2 {
		t.Errorf("%+v, %v", s, s.Validate())
	}
	for variable, values := range map[string][]string{
		"CONSOLE_SECRET":  {"", "short", "q83vEjRWeJCrze8SNFZ4kA=="},
		"CONSOLE_API_URL": {"", "api.example.com", "http://api.example.com", "https://api.example.com/1", "https://"},
		"DELETION_SLACK":  {"1h", "0s"},
		"TASKS_QUEUE":     {"worker"},
	} {
		for _, value := range values {
			given := environment()
			given[variable] = value
			var s Settings
			err := env.ParseWithOptions(&s, env.Options{Environment: given})
			if err == nil {
				err = s.Validate()
			}
			if err == nil || variable == "CONSOLE_SECRET" && value != "" && strings.Contains(err.Error(), value) {
				t.Errorf("%s=%q: %v", variable, value, err)
			}
		}
		given := environment()
		delete(given, variable)
		var s Settings
		if err := env.ParseWithOptions(&s, env.Options{Environment: given}); err == nil && variable != "DELETION_SLACK" {
			t.Errorf("without %s there is no error", variable)
		}
	}
}

// The function opens without a request to its services, serves its pages, and none of the API.
func TestOpen(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", storetest.Start(t))
	t.Setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
	t.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
	account := filepath.Join(t.TempDir(), "account.json") // no request is made with it
	if err := os.WriteFile(account, []byte(`{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account)
	var s Settings
	if err := env.ParseWithOptions(&s, env.Options{Environment: environment()}); err != nil {
		t.Fatal(err)
	}
	h, err := open(t.Context(), slog.New(slog.DiscardHandler), s)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/": 401, "/console/login": 200, "/console/open?code=x": 403, "/1/usage": 404, "/1/events": 404, "/docs": 404, "/health": 404, "/local": 404} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("X-Forwarded-Proto", "https") // as the platform does
		h.ServeHTTP(w, r)
		if w.Code != want || strings.Contains(w.Body.String(), "your machine") {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// The commands of pages name the host that answers for the app.
func TestAddressOfTheAPI(t *testing.T) {
	hosts := auth.Hosts{"shop.example.com": "shop"}
	for _, c := range []struct{ app, url, target, proto, want string }{
		{"shop", "https://api.example.com", "https://console.example.com/", "https", "https://shop.example.com"},
		{"other", "https://api.example.com", "https://console.example.com/", "https", "https://api.example.com"},
		{"shop", "", "http://localhost:8080/", "", "http://localhost:8080"},
		{"shop", "", "http://engine.example/", "https", "https://engine.example"},
		{"shop", "", "https://engine.example/", "", "https://engine.example"},
	} {
		r := httptest.NewRequest(http.MethodGet, c.target, nil)
		r.Header.Set("X-Forwarded-Proto", c.proto)
		v := &visit{Request: r, session: session{App: c.app}}
		if got := (&console{Options: Options{URL: c.url, Hosts: hosts}}).urlFor(v); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
