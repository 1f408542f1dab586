// Package apicheck checks requests and answers of a running engine against the
// description of the API, for tests. It is never deployed.
//
// A Proxy stands before the engine. It fails the test if a request goes to a
// path or method that the description does not have and is answered as if it
// did, if an answer has a status or a field that is not described, or if the
// engine accepts a request that the description forbids.
package apicheck

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/affinityengine/affinity/shared/web/openapi"
)

// Checker checks exchanges against the description. Safe for concurrent use.
type Checker struct {
	operations map[string]*operation // by method and path pattern
	message    *jsonschema.Schema    // of errors

	mux  *http.ServeMux // finds the operation of a path
	mu   sync.Mutex
	seen map[string]bool // operation ids that were answered below 400
}

type operation struct {
	id         string
	parameters []parameter
	required   bool                       // the body is
	body       *jsonschema.Schema         // nil: none is described
	lines      bool                       // body is the schema of each line
	answers    map[int]*jsonschema.Schema // by status; nil: no JSON
	described  map[int]bool               // statuses
	kinds      map[int]string             // content type of the answers
}

type parameter struct {
	name, in string
	required bool
	integer  bool
	schema   *jsonschema.Schema
}

// document is what is read of the description.
type document struct {
	Paths      map[string]map[string]documentOperation `json:"paths"` // by path and method
	Components struct {
		Parameters map[string]documentParameter `json:"parameters"`
	} `json:"components"`
}

type documentOperation struct {
	ID         string                  `json:"operationId"`
	Parameters []documentParameter     `json:"parameters"`
	Body       *documentBody           `json:"requestBody"`
	Responses  map[string]documentBody `json:"responses"`
}

type documentParameter struct {
	Ref      string `json:"$ref"`
	Name     string `json:"name"`
	In       string `json:"in"`
	Required bool   `json:"required"`
	Schema   struct {
		Type any `json:"type"`
	} `json:"schema"`
}

type documentBody struct {
	Required bool `json:"required"`
	Content  map[string]struct {
		Schema map[string]any `json:"schema"`
	} `json:"content"`
}

const source = "openapi.json"

// New reads the description.
func New() (*Checker, error) {
	raw := openapi.Document()
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(source, resource); err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	schemas := &schemas{compiler: compiler}
	c := &Checker{operations: map[string]*operation{}, mux: http.NewServeMux(), seen: map[string]bool{}}
	c.message = schemas.at("components", "schemas", "Message")
	for path, methods := range doc.Paths {
		for method, described := range methods {
			pattern := strings.ToUpper(method) + " " + path
			c.operations[pattern] = schemas.operation(doc, described, "paths", path, method)
			c.mux.Handle(pattern, http.NotFoundHandler())
		}
	}
	if schemas.err != nil {
		return nil, fmt.Errorf("compile schemas of the description: %w", schemas.err)
	}
	return c, nil
}

// schemas compiles schemas of the description. After the first fault it does
// nothing more and keeps err.
type schemas struct {
	compiler *jsonschema.Compiler
	err      error
}

// at compiles the schema at a path of the document.
func (s *schemas) at(tokens ...string) *jsonschema.Schema {
	if s.err != nil {
		return nil
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	pointer := source + "#"
	for _, token := range tokens {
		pointer += "/" + escape.Replace(token)
	}
	var schema *jsonschema.Schema
	schema, s.err = s.compiler.Compile(pointer)
	return schema
}

// operation prepares the check of the operation at a path of the document.
func (s *schemas) operation(doc document, described documentOperation, at ...string) *operation {
	o := &operation{id: described.ID, answers: map[int]*jsonschema.Schema{}, described: map[int]bool{},
		kinds: map[int]string{}}
	for i, p := range described.Parameters {
		pointer := append(slices.Clone(at), "parameters", strconv.Itoa(i))
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p, pointer = doc.Components.Parameters[name], []string{"components", "parameters", name}
		}
		o.parameters = append(o.parameters, parameter{p.Name, p.In, p.Required, p.Schema.Type == "integer",
			s.at(append(pointer, "schema")...)})
	}
	if described.Body != nil {
		o.required = described.Body.Required
		for kind, content := range described.Body.Content {
			if of, ok := content.Schema["x-lines"].(string); ok {
				o.lines, o.body = true, s.at(strings.Split(strings.TrimPrefix(of, "#/"), "/")...)
			} else {
				o.body = s.at(append(slices.Clone(at), "requestBody", "content", kind, "schema")...)
			}
		}
	}
	for status, response := range described.Responses {
		code, err := strconv.Atoi(status)
		s.err = errors.Join(s.err, err)
		o.described[code] = true
		for kind, content := range response.Content {
			o.kinds[code] = kind
			if of, ok := content.Schema["x-lines"].(string); ok {
				o.answers[code] = s.at(strings.Split(strings.TrimPrefix(of, "#/"), "/")...)
			}
			if kind == "application/json" {
				o.answers[code] = s.at(append(slices.Clone(at), "responses", status, "content", kind, "schema")...)
			}
		}
	}
	return o
}

// Operations returns the ids of all operations, and of those that an exchange
// with a status below 400 was checked of.
func (c *Checker) Operations() (all, answered []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		all = append(all, o.id)
		if c.seen[o.id] {
			answered = append(answered, o.id)
		}
	}
	slices.Sort(all)
	slices.Sort(answered)
	return all, answered
}

// Check reports everything in an exchange that is not as described. request is
// the body as it was sent, answer the one that came back.
func (c *Checker) Check(r *http.Request, request []byte, status int, header http.Header, answer []byte) error {
	if r.Method == http.MethodOptions {
		return expect(status, http.StatusNoContent)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	_, pattern := c.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
	o := c.operations[pattern]
	if o == nil {
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			return fmt.Errorf("the description has no such route, and it was answered with %d", status)
		}
		return checkJSON(c.message, answer)
	}
	var faults []error
	if status < http.StatusBadRequest {
		c.mu.Lock()
		c.seen[o.id] = true
		c.mu.Unlock()
		faults = append(faults, o.checkParameters(r), o.checkBody(r, request, answer))
	}
	if r.Method != http.MethodHead {
		faults = append(faults, o.checkAnswer(status, header, answer))
	}
	return errors.Join(faults...)
}

func expect(got, want int) error {
	if got != want {
		return fmt.Errorf("answered with %d, want %d", got, want)
	}
	return nil
}

// checkParameters checks those of a request that was accepted.
func (o *operation) checkParameters(r *http.Request) error {
	var faults []error
	query := r.URL.Query()
	for _, p := range o.parameters {
		if p.in != "query" {
			continue // the path has matched
		}
		if !query.Has(p.name) {
			if p.required {
				faults = append(faults, fmt.Errorf("accepted without the parameter %s", p.name))
			}
			continue
		}
		var v any = query.Get(p.name)
		if p.integer {
			v = json.Number(query.Get(p.name))
		}
		if err := p.schema.Validate(v); err != nil {
			faults = append(faults, fmt.Errorf("accepted with the parameter %s, which is described otherwise: %w", p.name, err))
		}
	}
	return errors.Join(faults...)
}

// checkBody checks the body of a request that was accepted.
func (o *operation) checkBody(r *http.Request, body, answer []byte) error {
	body, err := unpack(r.Header.Get("Content-Encoding"), body)
	if err != nil {
		return err
	}
	body = bytes.TrimSpace(body)
	switch {
	case o.body == nil:
		return nil // a body that is not described is ignored
	case len(body) == 0 && o.required:
		return errors.New("accepted without a body, which is described as required")
	case len(body) == 0:
		return nil
	case o.lines:
		return o.checkLines(body, answer)
	}
	if err := checkJSON(o.body, body); err != nil {
		return fmt.Errorf("accepted with a body that the description forbids: %w", err)
	}
	return nil
}

// checkLines checks those lines of an import that were not refused.
func (o *operation) checkLines(body, answer []byte) error {
	var outcome struct {
		Refused []struct{ Line int }
	}
	if err := json.Unmarshal(answer, &outcome); err != nil {
		return err
	}
	refused := map[int]bool{}
	for _, r := range outcome.Refused {
		refused[r.Line] = true
	}
	n := 0
	for line := range bytes.Lines(body) {
		if n++; refused[n] || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := checkJSON(o.body, line); err != nil {
			return fmt.Errorf("line %d is accepted and the description forbids it: %w", n, err)
		}
	}
	return nil
}

func (o *operation) checkAnswer(status int, header http.Header, answer []byte) error {
	if !o.described[status] {
		return fmt.Errorf("answered with %d, which is not described: %s", status, answer)
	}
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch want := o.kinds[status]; {
	case want == "" && len(answer) > 0:
		return fmt.Errorf("answered %d with a body, and none is described", status)
	case want != kind:
		return fmt.Errorf("answered %d with %q, described is %q", status, kind, want)
	case want == "application/x-ndjson":
		for line := range bytes.Lines(answer) {
			if err := checkJSON(o.answers[status], line); err != nil {
				return fmt.Errorf("a line of the answer is not as described: %w", err)
			}
		}
		return nil
	case want != "application/json":
		return nil
	}
	if err := checkJSON(o.answers[status], answer); err != nil {
		return fmt.Errorf("answer %d is not as described: %w", status, err)
	}
	return nil
}

func checkJSON(s *jsonschema.Schema, body []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, body)
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%w\n%.1000s", err, body)
	}
	return nil
}

func unpack(encoding string, body []byte) ([]byte, error) {
	if encoding == "" || encoding == "identity" {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// path is what an error names an exchange by.
func path(u *url.URL) string { return u.RequestURI() }
