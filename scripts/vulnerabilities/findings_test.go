package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The checker's messages about a program that was built with Go 1.26.8.
const messages = `{"config": {"scanner_name": "govulncheck"}}
{"osv": {"id": "GO-1", "affected": [{"package": {"name": "stdlib"}, "ranges": [{"events": [
  {"introduced": "0"}, {"fixed": "1.25.11"}, {"introduced": "1.26.0-0"}, {"fixed": "1.26.9"}, {"introduced": "1.27.0-0"}, {"fixed": "1.27.1"}]}]}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.27.1", "trace": [{"module": "stdlib", "version": "v1.26.8"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.27.1", "trace": [{"module": "stdlib", "version": "v1.26.8", "package": "net/http", "function": "Get"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.27.1", "trace": [{"module": "stdlib", "version": "v1.26.8", "package": "net/http", "function": "Post"}]}}
{"osv": {"id": "GO-2", "affected": [{"package": {"name": "example.com/a"}, "ranges": [{"events": [{"introduced": "0"}, {"fixed": "1.2.0"}]}]}]}}
{"finding": {"osv": "GO-2", "fixed_version": "v1.2.0", "trace": [{"module": "example.com/a", "version": "v1.1.0", "package": "example.com/a/b", "function": "F"}]}}
{"finding": {"osv": "GO-3", "trace": [{"module": "example.com/c", "version": "v1.0.0", "package": "example.com/c"}]}}
`

// Code that is linked counts, of modules in the version of the program and of the standard library in the one that is
// asked for.
func TestLinked(t *testing.T) {
	const library = "GO-1 in stdlib v1.26.8, package net/http, repaired in v1.27.1: https://pkg.go.dev/vuln/GO-1"
	const module = "GO-2 in example.com/a v1.1.0, package example.com/a/b, repaired in v1.2.0: https://pkg.go.dev/vuln/GO-2"
	for version, want := range map[string][]string{
		"1.26.8": {library, module}, "1.26.9": {module}, "1.26.10": {module}, "1.25.11": {module}, "1.27.1": {module},
	} {
		got, err := linked([]byte(messages), version)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
	if _, err := linked([]byte("{"), "1.26.8"); err == nil {
		t.Error("half a message is read")
	}
}
