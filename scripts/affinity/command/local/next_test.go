package local

import (
	"bytes"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/command"
)

// What to do next names the engine, and no key of the user's own.
func TestNextSteps(t *testing.T) {
	var out bytes.Buffer
	printNext(&out, command.DefaultURL, App{"demo", demoKey})
	if text := out.String(); !strings.Contains(text, "affinity profile ann --url "+command.DefaultURL+"\n") || !strings.Contains(text, command.DefaultURL+"/docs") || !strings.Contains(text, "x-algolia-api-key: demokey") {
		t.Errorf("%s", text)
	}
	out.Reset()
	printNext(&out, "http://127.0.0.1:9000", App{"shop", "s3cret"})
	if text := out.String(); strings.Contains(text, "s3cret") || !strings.Contains(text, "affinity profile ann --url http://127.0.0.1:9000 --app shop --key KEY\n") {
		t.Errorf("%s", text)
	}
}
