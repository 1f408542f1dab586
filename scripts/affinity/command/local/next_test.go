package local

import (
	"bytes"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/command"
)

// What to do next names the engine, who may call it from a page, and no key of the user's own.
func TestNextSteps(t *testing.T) {
	var out bytes.Buffer
	printNext(&out, command.DefaultURL, Options{Addr: "127.0.0.1:8080", Apps: []App{{"demo", demoKey}}, Origins: []string{"http://shop.test", "https://b.test"}})
	if text := out.String(); !strings.Contains(text, " profile ann --url "+command.DefaultURL+"\n") || !strings.Contains(text, command.DefaultURL+"/docs") || !strings.Contains(text, "x-algolia-api-key: demokey") ||
		!strings.Contains(text, "pages of localhost, http://shop.test, https://b.test may send events; --origin http://shop.test:3000 allows") {
		t.Errorf("%s", text)
	}
	out.Reset()
	printNext(&out, "http://127.0.0.1:9000", Options{Addr: "0.0.0.0:9000", Apps: []App{{"shop", "s3cret"}}})
	if text := out.String(); strings.Contains(text, "s3cret") || !strings.Contains(text, " profile ann --url http://127.0.0.1:9000 --app shop --key KEY\n") || strings.Contains(text, "--origin") {
		t.Errorf("%s", text)
	}
}
