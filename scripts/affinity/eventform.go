package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
)

// eventForm says how files of events are written, as flags name it.
type eventForm struct {
	csv         bool
	maps, types map[string]string // of --map and --event
}

func (f *eventForm) flags(flags *pflag.FlagSet) {
	flags.StringToStringVar(&f.maps, "map", nil, "columns of a CSV file by field: "+strings.Join(importer.Fields, ", "))
	flags.StringToStringVar(&f.types, "event", nil, "type of the events of a name: view, click or conversion")
	flags.BoolVar(&f.csv, "csv", false, "EVENTS is CSV")
}

// given reports whether a flag was.
func (f *eventForm) given() bool { return f.csv || len(f.maps) > 0 || len(f.types) > 0 }

// check checks the flags.
func (f *eventForm) check() error {
	for field := range f.maps {
		if !slices.Contains(importer.Fields, field) {
			return cli.Usagef("--map %s=%s: %q is no field of an event: these are %s", field, f.maps[field], field, strings.Join(importer.Fields, ", "))
		}
	}
	for name, kind := range f.types {
		if kind != "view" && kind != "click" && kind != "conversion" {
			return cli.Usagef("--event %s=%s: the type must be view, click or conversion", name, kind)
		}
	}
	return nil
}

// of returns the form of a file.
func (f *eventForm) of(path string) importer.Form {
	named := strings.HasSuffix(strings.ToLower(strings.TrimSuffix(path, ".gz")), ".csv")
	return importer.Form{CSV: f.csv || named || len(f.maps) > 0, Columns: f.maps, Types: f.types}
}
