package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// Flags, then the environment, say which engine, app and key a command uses.
func TestEngineOfACommand(t *testing.T) {
	var seen string
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("X-Algolia-Application-Id") + " " + r.Header.Get("X-Algolia-API-Key")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer engine.Close()
	secret, empty := file(t, "key", " secret "), file(t, "empty", " ")
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		want        string
	}{
		"flags":             {nil, []string{"--url", engine.URL, "--app", "shop", "--key", "k"}, "shop k"},
		"a file":            {nil, []string{"--url", engine.URL, "--key-file", secret}, "demo secret"},
		"the environment":   {map[string]string{urlVariable: engine.URL, appVariable: "shop", keyVariable: "k"}, nil, "shop k"},
		"a file's variable": {map[string]string{urlVariable: engine.URL, keyFileVariable: secret}, nil, "demo secret"},
		"flags first": {map[string]string{urlVariable: "http://127.0.0.1:1", appVariable: "other", keyVariable: "other", keyFileVariable: empty},
			[]string{"--url", engine.URL, "--app", "shop", "--key-file", secret}, "shop secret"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{urlVariable, appVariable, keyVariable, keyFileVariable} {
				t.Setenv(variable, c.environment[variable])
			}
			affinity(t, "", append([]string{"profile", "ann"}, c.args...)...).wants(t, cli.ExitFailed, "--key-file")
			if seen != c.want {
				t.Errorf("the engine was asked for %q, want %q", seen, c.want)
			}
		})
	}
	affinity(t, "", "profile", "ann", "--key-file", empty).wants(t, cli.ExitFailed, "is empty")
	affinity(t, "", "profile", "ann", "--key-file", empty+"-").wants(t, cli.ExitFailed, "read the key: open")
	affinity(t, "", "profile", "ann", "--key-file", secret, "--key", "k").wants(t, cli.ExitUsage, "key-file")
}
