package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// EventForm says how files of events are written, as flags name it.
type EventForm struct {
	csv         bool
	maps, types map[string]string // of --map and --event
}

// Flags defines the flags.
func (f *EventForm) Flags(flags *pflag.FlagSet) {
	flags.StringToStringVar(&f.maps, "map", nil, "columns of a CSV file by field: "+strings.Join(importer.Fields, ", "))
	flags.StringToStringVar(&f.types, "event", nil, "type of the events of a name: view, click or conversion")
	flags.BoolVar(&f.csv, "csv", false, "EVENTS is CSV")
}

// Given reports whether a flag was.
func (f *EventForm) Given() bool { return f.csv || len(f.maps) > 0 || len(f.types) > 0 }

// Check checks the flags.
func (f *EventForm) Check() error {
	for field := range f.maps {
		if !slices.Contains(importer.Fields, field) {
			return cli.Usagef("--map %s=%s: %q is no field of an event: these are %s", field, f.maps[field], field,
				strings.Join(importer.Fields, ", "))
		}
	}
	for name, kind := range f.types {
		if kind != "view" && kind != "click" && kind != "conversion" {
			return cli.Usagef("--event %s=%s: the type must be view, click or conversion", name, kind)
		}
	}
	return nil
}

// Of returns the form of a file.
func (f *EventForm) Of(path string) importer.Form {
	named := strings.HasSuffix(strings.ToLower(strings.TrimSuffix(path, ".gz")), ".csv")
	return importer.Form{CSV: f.csv || named || len(f.maps) > 0, Columns: f.maps, Types: f.types}
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
