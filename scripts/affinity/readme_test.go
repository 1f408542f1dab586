package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestReadme runs the commands of the README's first screen and compares their
// output with what the README shows.
func TestReadme(t *testing.T) {
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing, so the README's commands are not tested", tool)
		}
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := block(t, string(text), "sh", "alias call=")
	shown := block(t, string(text), "json", `"userToken":"user-1"`)
	s := startEngine(t, stack.Options{RetentionDays: 90})
	commands = strings.ReplaceAll(commands, "localhost:8080", strings.TrimPrefix(s.URL, "http://"))
	in, out, ok := strings.Cut(commands, "# one profile out")
	if !ok {
		t.Fatal("the README does not say: one profile out")
	}
	alias, _, _ := strings.Cut(in, "\n")
	bash(t, in)
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := bash(t, alias+"\n"+out)
	if diff := cmp.Diff(timeless(t, shown), timeless(t, got)); diff != "" {
		t.Errorf("the README shows a different profile (-README +engine):\n%s", diff)
	}
}

// block returns the fenced block of a language that contains a text.
func block(t *testing.T, readme, language, holds string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		if strings.Contains(m[1], holds) {
			return m[1]
		}
	}
	t.Fatalf("the README has no %s block with %s", language, holds)
	return ""
}

func bash(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-O", "expand_aliases", "-s")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), `"status":4`) {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// timeless returns a profile without its times.
func timeless(t *testing.T, text string) map[string]any {
	t.Helper()
	var a map[string]any
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, key := range []string{"lastEventAt", "asOf"} {
		if _, ok := a[key]; !ok {
			t.Errorf("no %s in %s", key, text)
		}
		delete(a, key)
	}
	return a
}
