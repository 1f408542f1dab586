package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/web/openapi/internal/tree"
)

// Example is a request of an operation and the answer that was recorded.
type Example struct {
	Operation string
	Title     string
	Method    string
	Path      string // with its query
	Header    string // "name: value", "" for none but the credentials
	Body      string // "" for none
	Status    int
	Answer    string // as Format writes it; "" for none
}

// ParseRequest reads the text of a request: its title, method and path, a header if
// its name begins with x-, and body, each beginning on a line of its own. <id> in the
// path stands for id.
func ParseRequest(operation, text, id string) (Example, error) {
	title, rest, _ := strings.Cut(text, "\n")
	line, body, _ := strings.Cut(rest, "\n")
	method, path, ok := strings.Cut(line, " ")
	if !ok {
		return Example{}, fmt.Errorf("example of %s: want a title, then METHOD PATH, then the body", operation)
	}
	header := ""
	if line, rest, _ := strings.Cut(body, "\n"); strings.HasPrefix(line, "x-") {
		header, body = line, rest
	}
	return Example{
		Operation: operation, Title: strings.TrimSpace(title), Method: method, Path: strings.ReplaceAll(path, "<id>", id),
		Header: header, Body: strings.TrimSpace(body),
	}, nil
}

// Record sets the answer from the text of a record: the status, then the body.
func (e *Example) Record(text string) error {
	first, rest, _ := strings.Cut(text, "\n")
	status, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("answer of %q: %w", e.Title, err)
	}
	e.Status, e.Answer = status, strings.TrimSpace(rest)
	return nil
}

// Format writes an answer as a record has it.
func Format(status int, body []byte) (string, error) {
	text := strconv.Itoa(status) + "\n"
	if len(body) == 0 {
		return text, nil
	}
	v, err := tree.Decode(body)
	if err != nil {
		return "", err
	}
	return text + tree.Format(v, width) + "\n", nil
}

// width is how many columns an example may take before it is broken.
const width = 96

var anyID = regexp.MustCompile(`"id": "([^"]+)"`)

// ID is the first id in the text of a record, which <id> stands for in the
// requests that follow; if it has none, it is the one before.
func ID(record, before string) string {
	if m := anyID.FindStringSubmatch(record); m != nil {
		return m[1]
	}
	return before
}

// addTo writes the example into its operation: for programs where OpenAPI wants
// examples, and in order under x-examples for the pages.
func (e Example) addTo(op *tree.Object) error {
	response := op.At("responses", strconv.Itoa(e.Status))
	if response == nil {
		return fmt.Errorf("status %d is not documented", e.Status)
	}
	if e.Body != "" && e.Status < http.StatusBadRequest {
		content := op.At("requestBody", "content")
		if content == nil {
			return errors.New("the operation has no body")
		}
		for _, kind := range content.Keys() {
			value, err := any(e.Body), error(nil)
			if kind == "application/json" {
				if value, err = tree.Decode([]byte(e.Body)); err != nil {
					return err
				}
			}
			add(content.At(kind), e.Title, value)
		}
	}
	if content := response.At("content", "application/json"); content != nil && e.Answer != "" {
		value, err := tree.Decode([]byte(e.Answer))
		if err != nil {
			return err
		}
		add(content, e.Title, value)
	}
	shown := &tree.Object{}
	shown.Set("title", e.Title)
	shown.Set("method", e.Method)
	shown.Set("path", e.Path)
	if e.Header != "" {
		shown.Set("header", e.Header)
	}
	if e.Body != "" {
		shown.Set("body", e.Body)
	}
	shown.Set("status", json.Number(strconv.Itoa(e.Status)))
	if e.Answer != "" {
		shown.Set("answer", e.Answer)
	}
	op.Set("x-examples", append(op.List("x-examples"), shown))
	return nil
}

// add adds an example, under a name that is made of its title.
func add(content *tree.Object, title string, value any) {
	example := &tree.Object{}
	example.Set("summary", title)
	example.Set("value", value)
	content.Ensure("examples").Set(name(title), example)
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

func name(title string) string { return strings.Trim(notWord.ReplaceAllString(title, "-"), "-") }
