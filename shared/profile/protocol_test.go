package profile_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// PROTOCOL.md names tests, and every one of them exists.
func TestProtocolNamesTests(t *testing.T) {
	page, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(source, -1) {
			tests[string(match[1])] = true
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 20 {
		t.Errorf("the page names %d tests; is its table gone?", len(named))
	}
	for _, match := range named {
		if !tests[string(match[1])] {
			t.Errorf("PROTOCOL.md names %s, which does not exist", match[1])
		}
	}
}
