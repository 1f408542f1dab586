package openapi_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/openapi"
	"github.com/affinityengine/affinity/shared/web/openapi/spec"
)

// rewriting reports whether the flag -rewrite of datadriven is set: then recorded
// answers and the document are written.
func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// recorded reads the examples with the answers that were recorded.
func recorded(t *testing.T) []spec.Example {
	t.Helper()
	var all []spec.Example
	datadriven.Walk(t, "spec/examples", func(t *testing.T, path string) {
		id := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "example" {
				e, err := spec.ParseRequest(d.CmdArgs[0].Key, d.Input, id)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				if err := e.Record(d.Expected); err != nil {
					d.Fatalf(t, "%v", err)
				}
				all = append(all, e)
			}
			id = spec.ID(d.Expected, id)
			return d.Expected
		})
	})
	return all
}

// TestDocumentIsBuilt builds the document from its source. With -rewrite it
// writes it.
func TestDocumentIsBuilt(t *testing.T) {
	built, err := spec.Build(recorded(t))
	must.Succeed(t, err)
	if rewriting() {
		must.Succeed(t, os.WriteFile("openapi.json", built, 0o644))
		return
	}
	if !bytes.Equal(built, openapi.Document()) {
		t.Error("openapi.json is not what its source in spec gives: run go test ./shared/web/openapi -rewrite")
	}
}

// TestDocumentIsValid checks the document against OpenAPI 3.1, and every example
// in it against its schema.
func TestDocumentIsValid(t *testing.T) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(openapi.Document())
	must.Succeed(t, err)
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}
