package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// EventForm says how files of events, and of their objects, are written, as flags name it.
type EventForm struct {
	maps, types map[string]string // of --map and --event
	delimiter   string
	hashTokens  bool
}

// objectID is what --map calls the column of a catalog.
const objectID = "objectID"

// Flags defines the flags.
func (f *EventForm) Flags(flags *pflag.FlagSet) {
	flags.StringToStringVar(&f.maps, "map", nil, "columns of a table, or paths in objects of JSON, by field:\n"+
		strings.Join(importer.Fields, ", ")+";\n"+objectID+" is the column of the catalog")
	flags.StringToStringVar(&f.types, "event", nil, "type of the events of a name: "+list(importer.EventTypes)+
		"; the name * stands for all others")
	DelimiterFlag(flags, &f.delimiter, "EVENTS")
	flags.BoolVar(&f.hashTokens, "hash-tokens", false, "ids of users in EVENTS have any form: their hashes are the user tokens")
}

// DelimiterFlag defines --delimiter.
func DelimiterFlag(flags *pflag.FlagSet, delimiter *string, file string) {
	flags.StringVar(delimiter, "delimiter", "", "what separates the columns of "+file+", a character or tab\n"+
		"(default: the comma, semicolon or tab of its first line)")
}

// Given reports whether a flag was.
func (f *EventForm) Given() bool {
	return len(f.maps) > 0 || len(f.types) > 0 || f.delimiter != "" || f.hashTokens
}

// Check checks the flags.
func (f *EventForm) Check() error {
	for field := range f.maps {
		if field != objectID && !slices.Contains(importer.Fields, field) {
			return cli.Usagef("--map %s=%s: %q is no field of an event: these are %s", field, f.maps[field], field,
				strings.Join(importer.Fields, ", "))
		}
	}
	for name, kind := range f.types {
		if !slices.Contains(importer.EventTypes, kind) {
			return cli.Usagef("--event %s=%s: the type must be %s", name, kind, list(importer.EventTypes))
		}
	}
	_, err := Delimiter(f.delimiter)
	return err
}

// list lists words with "or" before the last one.
func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Delimiter returns the delimiter that a flag names, 0 if it names none.
func Delimiter(flag string) (byte, error) {
	switch {
	case flag == "":
		return 0, nil
	case flag == "tab" || flag == `\t`:
		return '\t', nil
	case len(flag) > 1 || flag == `"` || flag == "\n" || flag == "\r":
		return 0, cli.Usagef("--delimiter %q: must be one character, such as ; or |, or tab", flag)
	}
	return flag[0], nil
}

// Events returns the form of files of events.
func (f *EventForm) Events() importer.Form {
	columns := maps.Clone(f.maps)
	delete(columns, objectID)
	delimiter, _ := Delimiter(f.delimiter) // which Check has checked
	return importer.Form{Delimiter: delimiter, Columns: columns, Types: f.types, HashTokens: f.hashTokens}
}

// Objects returns the form of the catalog.
func (f *EventForm) Objects() importer.ObjectForm {
	form := importer.ObjectForm{}
	if column, ok := f.maps[objectID]; ok {
		form.Columns = map[string]string{objectID: column}
	}
	return form
}

// DefaultIndex is the index of objects and events if nothing names one.
const DefaultIndex = "products"

// FirstIndex is the index that the first event names, so that objects are where
// the events look for them.
func FirstIndex(events *importer.Source) string {
	var first struct {
		Index string `json:"index"`
	}
	text, err := events.First()
	if err == nil && json.Unmarshal(text, &first) == nil && first.Index != "" {
		return first.Index
	}
	return DefaultIndex // the import reports any error
}

// MaxRetention is a century, in days.
const MaxRetention = 36_500

// LayoutFlags are the flags for the layout of a new app's log, as they were given.
type LayoutFlags struct{ schema, encoding string }

// Add defines the flags.
func (f *LayoutFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.schema, "schema", string(schema.Default().Read),
		"schema of a new app's events in Bigtable: narrow or wide")
	flags.StringVar(&f.encoding, "encoding", "",
		"encoding of their values: json or compact (default: json for narrow, compact for wide)")
}

// Layout checks the flags.
func (f *LayoutFlags) Layout() (schema.Layout, error) {
	name, err := schema.Parse(f.schema)
	if err != nil {
		return schema.Layout{}, fmt.Errorf("--schema: %w", err)
	}
	layout := schema.Of(name)
	if f.encoding == "" {
		return layout, nil
	}
	if layout.Encoding, err = schema.ParseEncoding(f.encoding); err != nil {
		return schema.Layout{}, fmt.Errorf("--encoding: %w", err)
	}
	return layout, nil
}
