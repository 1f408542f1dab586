package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// The operator names purposes, and users grant and withdraw them.
func TestConsentCommands(t *testing.T) {
	s := startEngine(t, stack.Options{})
	app := onLocal(t, s)
	consent := func(args ...string) ran {
		t.Helper()
		return affinity(t, "", append([]string{"consent", "--url", s.URL, "--app", "demo", "--key", "demokey"}, args...)...)
	}
	path := filepath.Join(t.TempDir(), "purposes.json")
	file := func(text string) string {
		t.Helper()
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return "purposes demo --file " + path
	}
	app("purposes demo").wants(t, cli.ExitOK, "app demo has no purposes: all events count")
	consent("show", "ann").wants(t, cli.ExitFailed, "app demo has no purposes: affinity app purposes")
	app("purposes nowhere").wants(t, cli.ExitFailed, "there is no such app")
	app("purposes demo --off --file x").wants(t, cli.ExitUsage, "--file and --off cannot both be given")
	app("purposes demo --file "+path).wants(t, cli.ExitFailed, "read purposes: open")
	app(file(`{}`)).wants(t, cli.ExitUsage, "want a JSON list of purposes")
	app(file(`[]`)).wants(t, cli.ExitUsage, "has no purpose; --off removes all")
	app(file(`[{"name":"ads","surface":["rank"]}]`)).wants(t, cli.ExitUsage, "surface")
	app(file(`[{"name":"ads","surfaces":["mail"]}]`)).wants(t, cli.ExitUsage, `surface "mail" must be one of`)
	app(file(`[{"name":"ads","types":["view"],"facets":["brand"],"surfaces":["export"]},
		{"name":"analytics","default":true,"types":["click"],"names":["Seen"]}]`)).wants(t, cli.ExitOK,
		"ads: not granted by default; served by events of the types view, by the facets brand; used for export\n",
		"analytics: granted by default; served by events of the types click, of the names Seen; used for nothing\n",
		"warning: events of the types conversion serve no purpose: the engine drops them")

	consent("show", "ann").wants(t, cli.ExitOK, "ann: ads is not granted by default\nann: analytics is granted by default\n",
		"nothing is used for boosts, export,")
	consent("set", "ann").wants(t, cli.ExitUsage, "name a purpose with --grant or --withdraw")
	consent("set", "ann", "--grant", "ads", "--withdraw", "ads").wants(t, cli.ExitUsage, `"ads" is granted and withdrawn`)
	consent("set", "ann", "--grant", "mail").wants(t, cli.ExitFailed, `app demo has no purpose "mail": its purposes are ads, analytics`)
	consent("set", "ann", "--grant", "ads", "--withdraw", "analytics").wants(t, cli.ExitOK, "ann: ads is granted by the user since 20",
		"ann: analytics is withdrawn by the user since 20", "all that is kept of the user is used for export\n",
		"Statistics and exported files follow at their next build.")
	consent("show", "ann", "--json").wants(t, cli.ExitOK, `{"name":"ads","granted":true,"asked":true,"since":"`)
	consent("forget", "ann").wants(t, cli.ExitOK, "ann: ads is not granted by default since 20")
	affinity(t, "", "audit-log", "--url", s.URL, "--app", "demo", "--key", "demokey").wants(t, cli.ExitOK, "consent.set", "ads granted, analytics withdrawn",
		"consent.forget", "app.purposes")
	affinity(t, "", "settings", "--url", s.URL).wants(t, cli.ExitOK, "ads, analytics (granted by default)")
	app("purposes demo --off").wants(t, cli.ExitOK, "app demo has no purposes")
}
