package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// TestBoostsCommand renders for a user of a real engine.
func TestBoostsCommand(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	const strategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],
		"facetsScoring":[{"facetName":"color","score":3},{"facetName":"brand","score":1}],"personalizationImpact":50}`
	affinity(t, strategy, "strategy", "set", "-", "--url", s.URL).wants(t, cli.ExitOK)
	event := map[string]any{"eventType": "view", "eventName": "Seen", "index": "i", "userToken": "ann", "filters": []string{"color:Red", "brand:Ac`me"},
		"timestamp": time.Now().Add(-time.Hour).UnixMilli()}
	if _, err := post(t.Context(), s, "/1/events", map[string]any{"events": []any{event}}); err != nil {
		t.Fatal(err)
	}
	must(t, s.Idle(t.Context()))
	boosts := func(more ...string) []string { return append([]string{"boosts", "ann", "--url", s.URL}, more...) }
	affinity(t, "", boosts("--engine", "typesense")...).wants(t, cli.ExitOK, "ann  typesense eval  strategy version 1  impact 50\n  1.000  color:Red\n",
		"left out\n", "brand:Ac`me", `"sort_by": "_text_match(buckets:20):desc,_eval(`, "# a search with it: replace SEARCH_HOST, SEARCH_KEY, COLLECTION, title and SEARCH WORDS\n"+
			"curl -sS 'https://SEARCH_HOST/multi_search' \\\n", `"q": "SEARCH WORDS"`)
	affinity(t, "", boosts("--engine", "elasticsearch", "--mode", "rescore", "--impact", "100", "--fields", "color", "--field-map", "color:color.keyword")...).wants(t,
		cli.ExitOK, "elasticsearch rescore", `"color.keyword": "Red"`, "https://SEARCH_HOST/INDEX/_search")
	affinity(t, "", boosts("--engine", "postgres")...).wants(t, cli.ExitOK, "multiply your score by the expression")
	affinity(t, "", boosts("--engine", "prompt")...).wants(t, cli.ExitOK, "The query is empty", "left out", "crowd")
	affinity(t, "", "boosts", "nobody", "--engine", "algolia", "--url", s.URL).wants(t, cli.ExitOK, "The query is empty")
	affinity(t, "", boosts("--engine", "algolia", "--fields", "colour")...).wants(t, cli.ExitFailed, "boosts of ann", "422 fields names the facet \"colour\"")
	affinity(t, "", boosts("--engine", "algolia", "--half-life", "30")...).wants(t, cli.ExitFailed, "422 halfLife must be one of the strategy's halfLives")

	r := affinity(t, "", boosts("--engine", "algolia", "--json", "--limit", "1")...)
	r.wants(t, cli.ExitOK)
	var answer api.Boost
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Affinities) != 1 {
		t.Errorf("--json printed %q (%v), want the engine's answer", r.out, err)
	}
}

func TestBoostsUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"ann"}, {"--engine", "algolia"}, {"", "--engine", "algolia"}, {"ann", "bob", "--engine", "algolia"},
		{"ann", "--engine", ""}, {"ann", "--engine", "algolia", "--mode", "rescore"}, {"ann", "--engine", "algolia", "--mode", ""},
		{"ann", "--engine", "algolia", "--impact", "101"}, {"ann", "--engine", "algolia", "--impact", "-1"}, {"ann", "--engine", "algolia", "--limit", "0"},
		{"ann", "--engine", "algolia", "--limit", "101"}, {"ann", "--engine", "algolia", "--half-life", "x"}, {"ann", "--engine", "algolia", "--field-map", "a"},
		{"ann", "--engine", "algolia", "--field-map", "a:,b:c"}, {"ann", "--engine", "algolia", "--half-life", ""},
	} {
		affinity(t, "", append([]string{"boosts"}, args...)...).wants(t, cli.ExitUsage)
	}
	r := affinity(t, "", "boosts", "ann", "--engine", "sphinx")
	r.wants(t, cli.ExitUsage)
	if want := `--engine "sphinx": must be one of ` + strings.Join(boost.Engines(), ", "); !strings.Contains(r.err, want) {
		t.Errorf("printed %q, want %q", r.err, want)
	}
}

// hostile are values that a shell would run, expand, or take for the end of the
// text, and that a terminal would not show.
var hostile = []boost.Affinity{
	{Facet: "brand", Value: "$(touch pwned)", Score: 9}, {Facet: "brand", Value: "`touch pwned`", Score: 8.5}, {Facet: "brand", Value: `'; touch pwned; '`, Score: 8},
	{Facet: "brand", Value: `"; touch pwned; "`, Score: 7}, {Facet: "brand", Value: "a\nEND\ntouch pwned\n", Score: 6}, {Facet: "brand", Value: "!touch!! !$", Score: 5},
	{Facet: "color", Value: "$HOME ${PATH} ~ * ? [a-z]", Score: 4}, {Facet: "color", Value: `\`, Score: 3}, {Facet: "color", Value: "a\x1b[2Jb\x00\u202ec\u2028", Score: 2},
	{Facet: "color", Value: "Grün 🎨 \U000E0041 <&>", Score: 1}, {Facet: "size", Value: "%n%s & | ; # > x", Score: 1},
}

// A shell that runs the printed command sends the query, whatever the values are,
// and does nothing else.
func TestBoostsPrintASafeCommand(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		for _, engine := range boost.Engines() {
			for _, mode := range boost.Modes(engine) {
				request := boost.Request{Engine: engine, Mode: mode, Impact: 100, Limit: 20, Affinities: hostile, Spoken: func(string, string) bool { return true }}
				rendered, err := boost.Render(request)
				must(t, err)
				if len(rendered.Query) == 0 {
					t.Fatalf("%s %s renders nothing", engine, mode)
				}
				runsAs(t, path, engine, mode, rendered)
			}
		}
	}
}

func runsAs(t *testing.T, shell, engine, mode string, rendered boost.Answer) {
	t.Helper()
	answer, err := json.Marshal(map[string]any{"userToken": "ann", "engine": engine, "mode": mode, "strategyVersion": 1, "asOf": "2026-11-20T12:00:00.000Z",
		"impact": 100, "affinities": rendered.Affinities, "query": rendered.Query, "dropped": rendered.Dropped})
	must(t, err)
	r := affinity(t, "", "boosts", "ann", "--engine", engine, "--mode", mode, "--url", fixedAnswer(t, 200, string(answer)))
	r.wants(t, cli.ExitOK)
	if i := strings.IndexFunc(r.out, func(c rune) bool { return c == 0x1b || c == 0x202e || c == 0x2028 || c == 0 }); i >= 0 {
		t.Errorf("%s %s prints %q", engine, mode, r.out[i:min(i+20, len(r.out))])
	}
	_, command, found := strings.Cut(r.out, "# a search with it")
	if !found {
		if !slices.Contains([]string{"minisearch", "postgres"}, engine) {
			t.Errorf("%s %s prints no command: %s", engine, mode, r.out)
		}
		return
	}
	if strings.Contains(command, "!") {
		t.Errorf("%s %s: an interactive shell replaces words after !: %s", engine, mode, command)
	}
	dir := t.TempDir()
	fake := "#!/bin/sh\nprintf '%s\\n' \"$@\" > argv\ncat > body\n"
	must(t, os.WriteFile(filepath.Join(dir, "curl"), []byte(fake), 0o700))
	cmd := exec.CommandContext(t.Context(), shell)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=/nowhere"}, strings.NewReader("#"+command)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s %s: %v %s\n%s", engine, mode, err, out, command)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 {
		t.Errorf("%s %s: the shell left %q, %v; want argv, body and curl", engine, mode, files, err)
	}
	argv, err := os.ReadFile(filepath.Join(dir, "argv"))
	if args := strings.Split(string(argv), "\n"); err != nil || len(args) != 9 || !strings.HasPrefix(args[1], "https://") || args[6] != "--data-binary" || args[7] != "@-" {
		t.Errorf("%s %s: arguments %q, %v", engine, mode, args, err)
	}
	body, err := os.ReadFile(filepath.Join(dir, "body"))
	must(t, err)
	var sent any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatalf("%s %s: %v: %s", engine, mode, err, body)
	}
	text, err := json.Marshal(rendered.Query)
	must(t, err)
	var query any
	must(t, json.Unmarshal(text, &query))
	sends(t, engine+" "+mode, sent, query)
}

// sends checks that what was sent has the query's values, and words to search.
func sends(t *testing.T, name string, sent, query any) {
	t.Helper()
	found := leaves(sent)
	for leaf, n := range leaves(query) {
		if found[leaf] < n {
			t.Errorf("%s: the request lacks %s", name, leaf)
		}
	}
	if found[`"SEARCH WORDS"`] != 1 {
		t.Errorf("%s: the request does not search: %s", name, cmp.Diff(nil, sent))
	}
}

// leaves counts the values of a document that are neither objects nor lists.
func leaves(v any) map[string]int {
	counts := map[string]int{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		default:
			text, _ := json.Marshal(v) // a value that was decoded
			counts[string(text)]++
		}
	}
	walk(v)
	return counts
}
