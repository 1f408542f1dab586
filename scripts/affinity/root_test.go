package main

import (
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
)

// What two themes of commands share is in package command or in one of the packages that do the
// work.
func TestThemesImportNoOtherTheme(t *testing.T) {
	files, err := filepath.Glob("command/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	shared, err := filepath.Glob("command/*.go")
	must(t, err)
	for _, file := range append(files, shared...) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		must(t, err)
		for _, i := range parsed.Imports {
			if strings.Contains(i.Path.Value, "/scripts/affinity/command/") {
				t.Errorf("%s imports %s", file, i.Path.Value)
			}
		}
	}
}

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
		"the environment":   {map[string]string{command.URLVariable: engine.URL, command.AppVariable: "shop", command.KeyVariable: "k"}, nil, "shop k"},
		"a file's variable": {map[string]string{command.URLVariable: engine.URL, command.KeyFileVariable: secret}, nil, "demo secret"},
		"flags first": {map[string]string{command.URLVariable: "http://127.0.0.1:1", command.AppVariable: "other", command.KeyVariable: "other", command.KeyFileVariable: empty},
			[]string{"--url", engine.URL, "--app", "shop", "--key-file", secret}, "shop secret"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{command.URLVariable, command.AppVariable, command.KeyVariable, command.KeyFileVariable} {
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
