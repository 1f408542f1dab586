package main

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Shells complete what the engine has, and nothing where there is no engine.
func TestCompletionOfValues(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran { return affinity(t, "", args...) }
	run("feed", "set", "news", "--index", "posts", "--date", "at", "--url", s.URL).wants(t, cli.ExitOK)
	run("segment", "save", "reds", "--where", "color:Red", "--url", s.URL).wants(t, cli.ExitOK)
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],"facetsScoring":[{"facetName":"color","score":1},{"facetName":"brand","score":1}],"personalizationImpact":50}`)
	run("strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	run("events", "send", "ann", "--filter", "color:Red", "--index", "i", "--url", s.URL).wants(t, cli.ExitOK)
	run("events", "send", "bob", "--filter", "color:Red", "--index", "i", "--url", s.URL).wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	if r := run("__complete", "--url", s.URL, "user", "delete", "b"); r.out != "bob\n:4\n" {
		t.Errorf("user delete b completes %q, want bob", r.out)
	}
	for line, want := range map[string]string{
		"profile":                "ann\nbob\n:4\n",
		"feed show":              "news\n:4\n",
		"segment export":         "reds\n:4\n",
		"strategy restore":       "1\n:4\n",
		"values --facet":         "brand\ncolor\n:4\n",
		"schema start --to":      "narrow\nwide\n:4\n",
		"events send ann --type": "view\nclick\nconversion\n:4\n",
		"recompute watch":        "strategy-",
		"feed show --url http://127.0.0.1:1 --key x": ":4\n",
	} {
		args := append([]string{"__complete"}, strings.Fields(line)...)
		if !strings.Contains(line, "--url") {
			args = append([]string{"__complete", "--url", s.URL}, strings.Fields(line)...)
		}
		if r := run(append(args, "")...); r.code != cli.ExitOK || !strings.HasPrefix(r.out, want) {
			t.Errorf("%s completes %q, want %q", line, r.out, want)
		}
	}
	run("completion", "bash").wants(t, cli.ExitOK, "bash completion")
}
