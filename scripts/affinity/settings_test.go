package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 30})
	store := s.Backends.Config
	settings := func(args ...string) ran {
		t.Helper()
		return affinity(t, "", append([]string{"settings", "--url", s.URL}, args...)...)
	}
	settings().wants(t, cli.ExitOK, "app                         demo\n", "retention                   events count for 30 days\n", "browser ranking             off\n", "names of track calls        none\n",
		"jobs per hour               100\n", auth.Hash("demokey")[:12]+" *  -     ", "(parent)")
	old := config.Key{
		Hash: auth.Hash("old"), Name: "web", ACL: []string{auth.Search}, Description: "the\x1b[2J shop", CreatedAt: time.Now().Add(-2 * time.Hour), ValidUntil: time.Now().Add(-time.Hour),
		Indexes: []string{"products*"}, Referers: []string{"https://shop.example/*"}, AddressRate: 60,
	}
	for _, err := range []error{
		store.PutKey(t.Context(), "demo", old),
		store.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("reader"), Name: "reader", ACL: []string{auth.ProfilesRead}}),
		store.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("segment"), Name: "segment", ACL: []string{auth.Search}, HashTokens: true}),
		store.SetLimits(t.Context(), "demo", limit.Numbers{JobsPerHour: 7}), store.SetBrowserRanking(t.Context(), "demo", true),
	} {
		must(t, err)
	}
	_, err := store.SetTrackNames(t.Context(), "demo", config.TrackNames{"Recipe Saved": "conversion", "A B": "view"})
	must(t, err)
	r := settings()
	r.wants(t, cli.ExitOK, "names of track calls        A B=view, Recipe Saved=conversion\n", "search (hashes tokens)", "browser ranking             on\n", "jobs per hour               7 *\n", "Z (ended)", "indexes products*; pages https://shop.example/*; 60 requests a minute from an address", "the\ufffd[2J shop")
	for _, k := range []string{"demokey", "old", "reader"} {
		if strings.Contains(r.out, auth.Hash(k)[:13]) {
			t.Errorf("the hash of the key %s is printed: %s", k, r.out)
		}
	}
	var answer api.AppSettings
	if r := settings("--json"); json.Unmarshal([]byte(r.out), &answer) != nil || answer.ID != "demo" || len(answer.Keys) != 4 || !answer.Keys[0].Current {
		t.Errorf("--json prints %s", r.out)
	}
	settings("--output", "csv").wants(t, cli.ExitOK, "id,acl,createdAt,")
	settings("--key", "reader").wants(t, cli.ExitFailed, "read the settings of the app: ", "The key lacks the permission")
	settings("shop").wants(t, cli.ExitUsage, "unknown command")
}

// A key is revoked by the digits by which the console and the audit log name it.
func TestKeyRemovedByItsDigits(t *testing.T) {
	t.Parallel()
	store := config.NewMemory()
	app := onDeployed(t, store, func(*program) {})
	app("create shop")
	twin := strings.Repeat("ab", 6)
	for _, hash := range []string{twin + strings.Repeat("0", 52), twin + strings.Repeat("1", 52)} {
		must(t, store.PutKey(t.Context(), "shop", config.Key{Hash: hash, ACL: []string{auth.Search}}))
	}
	app("key remove shop "+twin[:11]).wants(t, cli.ExitFailed, "has no key with the hash")
	app("key remove shop "+twin).wants(t, cli.ExitFailed, "app shop has 2 keys whose hashes begin with "+twin+": give the whole hash")
	app("key remove shop "+twin+"0").wants(t, cli.ExitOK, "stops working within 5 seconds")
	app("key remove shop "+twin).wants(t, cli.ExitOK, "stops working within 5 seconds")
	app("key remove shop "+twin).wants(t, cli.ExitFailed, "has no key with the hash")
	if keys, err := store.Keys(t.Context(), "shop"); err != nil || len(keys) != 2 {
		t.Errorf("%d keys are left, %v; want those of the app's beginning", len(keys), err)
	}
}
