package terraform_test

import (
	"os"
	"regexp"
	"testing"
)

// TestToolchainIsTheSameEverywhere compares the patch version of Go with which functions
// and the container image are built with toolchain in go.mod, by which releases are built
// and which scripts/check-vulnerabilities checks.
func TestToolchainIsTheSameEverywhere(t *testing.T) {
	find := func(path, pattern string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s names no version of Go in the form that this test reads", path)
		}
		return string(match[1])
	}
	want := find("../go.mod", `(?m)^toolchain go(1\.\d+\.\d+)$`)
	for path, pattern := range map[string]string{
		"modules/image/main.tf":         `GOOGLE_RUNTIME_VERSION\s+= "([^"]+)"`,
		"../scripts/release/Dockerfile": `golang:(\S+) AS build`,
	} {
		if got := find(path, pattern); got != want {
			t.Errorf("%s has Go %s, and go.mod has toolchain go%s", path, got, want)
		}
	}
}
