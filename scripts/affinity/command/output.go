package command

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// The forms of --output.
const (
	TableOutput = "table"
	JSONOutput  = "json"
	CSVOutput   = "csv"
)

// Outputs are the forms of --output.
var Outputs = []string{TableOutput, JSONOutput, CSVOutput}

// alwaysJSON are the commands that print JSON in any case, by the words behind affinity.
var alwaysJSON = []string{"strategy get", "index show", "catalog show"}

// SetOutput makes a command print in the form of --output. CSV is made of the JSON that the
// command prints, in writeRows.
func (t *Tool) SetOutput(cmd *cobra.Command) error {
	if !slices.Contains(Outputs, t.Output) {
		return cli.Usagef("--output %q: must be %s", t.Output, strings.Join(Outputs, ", "))
	}
	if t.Output == TableOutput {
		return nil
	}
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	asJSON := cmd.Flags().Lookup("json")
	switch {
	case asJSON != nil:
		if err := cmd.Flags().Set("json", "true"); err != nil {
			return err
		}
	case !slices.Contains(alwaysJSON, path):
		return cli.Usagef("--output %s: %s prints no data in that form", t.Output, cmd.CommandPath())
	}
	if t.Output == CSVOutput {
		t.rows = &bytes.Buffer{}
		t.Out = t.rows
	}
	return nil
}

// writeRows writes JSON documents as CSV. A document is one row, with a column for each
// member, unless it has a list of objects, or is one: then each of them is a row, of the
// first such list. A member that is no text, number or boolean is a cell of JSON.
func writeRows(out io.Writer, documents []byte) error {
	var names []string
	var rows []map[string]string
	add := func(members []member) {
		cells := make(map[string]string, len(members))
		for _, m := range members {
			if !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
			cells[m.name] = cell(m.value)
		}
		rows = append(rows, cells)
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(documents), jsontext.AllowDuplicateNames(true))
	for {
		value, err := decoder.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("write CSV: the command printed no JSON: %w", err)
		}
		for _, object := range objectsOf(value) {
			add(membersOf(object))
		}
	}
	if len(names) == 0 {
		return nil
	}
	w := csv.NewWriter(out)
	_ = w.Write(names) // Error returns its error
	for _, cells := range rows {
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = cells[name]
		}
		_ = w.Write(row)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// member is a member of a JSON object.
type member struct {
	name  string
	value jsontext.Value
}

// objectsOf returns the objects of a document that are rows.
func objectsOf(document jsontext.Value) []jsontext.Value {
	if list, ok := listOf(document); ok {
		return list
	}
	for _, m := range membersOf(document) {
		if list, ok := listOf(m.value); ok {
			return list
		}
	}
	return []jsontext.Value{document}
}

// listOf returns the objects of a list; false if the value is none, or a list of others.
func listOf(value jsontext.Value) ([]jsontext.Value, bool) {
	if value.Kind() != jsontext.KindBeginArray {
		return nil, false
	}
	var list []jsontext.Value
	decoder := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	_, _ = decoder.ReadToken() // the value has been read once
	for decoder.PeekKind() != jsontext.KindEndArray {
		item, err := decoder.ReadValue()
		if err != nil || item.Kind() != jsontext.KindBeginObject {
			return nil, false
		}
		list = append(list, item.Clone())
	}
	return list, true
}

// membersOf returns the members of an object, in their order; none of another value.
func membersOf(value jsontext.Value) []member {
	if value.Kind() != jsontext.KindBeginObject {
		return nil
	}
	var members []member
	decoder := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	_, _ = decoder.ReadToken()
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadToken()
		if err != nil {
			return members
		}
		text := name.String()
		content, err := decoder.ReadValue()
		if err != nil {
			return members
		}
		members = append(members, member{text, content.Clone()})
	}
	return members
}

// cell returns the text of a cell.
func cell(value jsontext.Value) string {
	switch value.Kind() {
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, value)
		if err == nil {
			return string(text)
		}
	case jsontext.KindNull:
		return ""
	}
	value = value.Clone()
	if value.Compact() != nil { // it has been read once
		return string(bytes.TrimSpace(value))
	}
	return string(value)
}
