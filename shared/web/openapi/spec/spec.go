// Package spec holds the source of the API description and builds the document
// that package openapi serves.
//
// The source is written by hand: one YAML file for each resource, with its
// routes and schemas, 0-api.yaml with what all share, and examples/ with requests
// and their recorded answers. Build adds what can be derived: the errors that
// every route has, the examples of each operation, and the strictness of schemas.
//
// It is separate from openapi so that no function links a YAML decoder. Only
// tests import it; "go test ./shared/web/openapi -rewrite" writes the document.
package spec

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/affinityengine/affinity/shared/web/openapi/internal/tree"
)

//go:embed *.yaml
var files embed.FS

// Build makes the document from the source and from examples, as indented JSON.
func Build(examples []Example) ([]byte, error) {
	doc, err := merge()
	if err != nil {
		return nil, err
	}
	schemas := doc.At("components", "schemas")
	for _, name := range schemas.Keys() {
		if like := schemas.At(name).Text("like"); like != "" {
			schemas.At(name).Delete("like")
			inherit(schemas.At(name).Ensure("properties"), schemas.At(like, "properties"))
		}
	}
	for _, name := range schemas.Keys() {
		derive(schemas.At(name))
	}
	common := doc.At("x-common-errors")
	doc.Delete("x-common-errors")
	operations := map[string]*tree.Object{}
	for _, path := range doc.At("paths").Keys() {
		for _, method := range doc.At("paths", path).Keys() {
			op := doc.At("paths", path, method)
			id := op.Text("operationId")
			if id == "" || operations[id] != nil {
				return nil, fmt.Errorf("%s %s: operationId %q is missing or used twice", method, path, id)
			}
			operations[id] = op
			addErrors(op, common)
			addLimits(op)
		}
	}
	for _, e := range examples {
		op := operations[e.Operation]
		if op == nil {
			return nil, fmt.Errorf("example %q: no operation %q", e.Title, e.Operation)
		}
		if err := e.addTo(op); err != nil {
			return nil, fmt.Errorf("example %q: %w", e.Title, err)
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(tree.Compact(doc)), "", " "); err != nil {
		return nil, fmt.Errorf("indent document: %w", err)
	}
	return append(out.Bytes(), '\n'), nil
}

// merge reads all files into one document, in the order of the tags.
func merge() (*tree.Object, error) {
	doc, err := read("0-api.yaml")
	if err != nil {
		return nil, err
	}
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	paths := map[string]*tree.Object{}
	for _, entry := range entries {
		if entry.Name() == "0-api.yaml" {
			continue
		}
		part, err := read(entry.Name())
		if err != nil {
			return nil, err
		}
		for _, path := range part.At("paths").Keys() {
			if paths[path] != nil {
				return nil, fmt.Errorf("%s: %s is in another file too", entry.Name(), path)
			}
			paths[path] = part.At("paths", path)
		}
		schemas := doc.At("components", "schemas")
		for _, name := range part.At("components", "schemas").Keys() {
			if schemas.Has(name) {
				return nil, fmt.Errorf("%s: schema %s is in another file too", entry.Name(), name)
			}
			schemas.Set(name, part.At("components", "schemas", name))
		}
	}
	all := doc.Ensure("paths")
	for _, path := range slices.Sorted(func(yield func(string) bool) {
		for path := range paths {
			if !yield(path) {
				return
			}
		}
	}) {
		all.Set(path, paths[path])
	}
	return doc, nil
}

func read(name string) (*tree.Object, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v, err := convert(&node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	doc, ok := v.(*tree.Object)
	if !ok {
		return nil, fmt.Errorf("%s: not an object", name)
	}
	return doc, nil
}

func convert(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return convert(n.Content[0])
	case yaml.AliasNode:
		return convert(n.Alias)
	case yaml.SequenceNode:
		list := []any{}
		for _, element := range n.Content {
			v, err := convert(element)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		o := &tree.Object{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if o.Has(key) {
				return nil, fmt.Errorf("line %d: key %s is there twice", n.Content[i].Line, key)
			}
			v, err := convert(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			o.Set(key, v)
		}
		return o, nil
	}
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strconv.ParseBool(n.Value)
	case "!!int", "!!float":
		return json.Number(n.Value), nil
	case "!!str":
		return strings.TrimSpace(n.Value), nil
	}
	return nil, fmt.Errorf("line %d: unexpected %s", n.Line, n.Tag)
}

// inherit adds the properties that are not there yet.
func inherit(to, from *tree.Object) {
	for _, key := range from.Keys() {
		if !to.Has(key) {
			to.Set(key, from.Value(key))
		}
	}
}

// derive writes what schemas leave out: objects have no other properties unless
// they say so, and in answers, which name their optional properties, all others
// are required.
func derive(schema *tree.Object) {
	properties := schema.At("properties")
	if properties != nil && !schema.Has("additionalProperties") {
		schema.Set("additionalProperties", false)
	}
	if schema.Has("optional") {
		var required []any
		for _, key := range properties.Keys() {
			if !slices.Contains(schema.Texts("optional"), key) {
				required = append(required, key)
			}
		}
		schema.Delete("optional")
		schema.Set("required", required)
	}
}

// reference returns a reference to a schema.
func reference(name string) *tree.Object {
	o := &tree.Object{}
	o.Set("$ref", "#/components/schemas/"+name)
	return o
}

// addErrors adds to an operation the errors that every such operation has, and
// a response for each status. x-failure names a further schema of its errors.
func addErrors(op, common *tree.Object) {
	var all []any
	if !op.True("x-no-key") {
		all = append(all, common.List("key")...)
	}
	if op.Has("requestBody") {
		all = append(all, common.List("body")...)
	}
	all = append(all, op.List("x-errors")...)
	if !op.True("x-no-key") {
		all = append(all, common.List("always")...)
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b any) int { return status(a) - status(b) })
	op.Set("x-errors", all)
	responses := op.Ensure("responses")
	for _, e := range all {
		code := strconv.Itoa(status(e))
		if responses.Has(code) {
			continue
		}
		response := &tree.Object{}
		response.Set("description", http.StatusText(status(e))+". See x-errors.")
		schema := reference("Message")
		if other := op.Text("x-failure"); other != "" {
			message := schema
			schema = &tree.Object{}
			schema.Set("anyOf", []any{message, reference(other)})
		}
		response.Ensure("content").Ensure("application/json").Set("schema", schema)
		responses.Set(code, response)
	}
}

// addLimits adds the headers that say what is left of the app's limit. Refused
// requests have them where the app was known.
func addLimits(op *tree.Object) {
	if op.True("x-no-key") {
		return
	}
	responses := op.At("responses")
	for _, code := range responses.Keys() {
		names := []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
		switch {
		case code == strconv.Itoa(http.StatusTooManyRequests):
			names = append(names, "Retry-After")
		case !strings.HasPrefix(code, "2"):
			continue
		}
		headers := responses.At(code).Ensure("headers")
		for _, name := range names {
			ref := &tree.Object{}
			ref.Set("$ref", "#/components/headers/"+name)
			headers.Set(name, ref)
		}
	}
}

func status(e any) int {
	o, _ := e.(*tree.Object)
	n, _ := o.Value("status").(json.Number)
	code, _ := n.Int64()
	return int(code)
}
