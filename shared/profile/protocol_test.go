package profile_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
)

// protocol are the pages about the protocol, in functions/docs/design.
var protocol = []string{"protocol", "rules", "deletions", "devices", "links", "reads"}

// Every test that a page of the protocol names exists, here or in a package that packs profiles.
func TestProtocolNamesTests(t *testing.T) {
	var pages []byte
	for _, name := range protocol {
		page, err := os.ReadFile("../../functions/docs/design/" + name + ".md")
		must.Succeed(t, err)
		pages = append(pages, page...)
	}
	var files []string
	for _, folder := range []string{".", "../job/kinds/segmentbuild", "../serve/query"} {
		some, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		must.Succeed(t, err)
		files = append(files, some...)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		must.Succeed(t, err)
		for _, match := range declared.FindAllSubmatch(source, -1) {
			tests[string(match[1])] = true
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(pages, -1)
	if len(named) < 200 {
		t.Errorf("the pages name %d tests; is their table gone?", len(named))
	}
	for _, match := range named {
		if !tests[string(match[1])] {
			t.Errorf("the pages of the protocol name %s, which does not exist", match[1])
		}
	}
}

// Each rule has a number, in order, and names a test or the file of one.
func TestRulesHaveTests(t *testing.T) {
	page, err := os.ReadFile("../../functions/docs/design/rules.md")
	must.Succeed(t, err)
	rules := regexp.MustCompile(`(?m)^\| (\d+) \| .+ \| .+ \| (.+) \|$`).FindAllSubmatch(page, -1)
	if len(rules) < 120 {
		t.Errorf("the page has %d rules, want 120 or more", len(rules))
	}
	for i, rule := range rules {
		if string(rule[1]) != strconv.Itoa(i+1) || !strings.Contains(string(rule[2]), "`Test") {
			t.Errorf("the row of rule %d is that of %s, with the tests %s", i+1, rule[1], rule[2])
		}
	}
}

// design/protocol.md and the glossary define a word in the same sentences.
func TestProtocolMatchesGlossary(t *testing.T) {
	definitions := func(path, row string) map[string]string {
		page, err := os.ReadFile(path)
		must.Succeed(t, err)
		found := map[string]string{}
		for _, match := range regexp.MustCompile(row).FindAllSubmatch(page, -1) {
			found[string(match[1])] = strings.ReplaceAll(string(match[2]), "*", "")
		}
		return found
	}
	glossary := definitions("../../functions/docs/reference/glossary.md", `(?m)^\| ([\w ]+) \| (.+) \|$`)
	words := definitions("../../functions/docs/design/protocol.md", `(?m)^\| \*\*([\w ]+)\*\* \| (.+) \|$`)
	if len(words) < 10 {
		t.Errorf("design/protocol.md defines %d words; is its table gone?", len(words))
	}
	for word, meaning := range words {
		if glossary[word] != meaning {
			t.Errorf("design/protocol.md defines %s as %q, the glossary as %q", word, meaning, glossary[word])
		}
	}
}
