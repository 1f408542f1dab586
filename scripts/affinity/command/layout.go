package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// MaxRetention is a century, in days.
const MaxRetention = 36_500

// LayoutFlags are the flags for the layout of a new app's log, as they were given.
type LayoutFlags struct{ schema, encoding string }

// Add defines the flags.
func (f *LayoutFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.schema, "schema", string(schema.Default().Read), "schema of a new app's events in Bigtable: narrow or wide")
	flags.StringVar(&f.encoding, "encoding", "", "encoding of their values: json or compact (default: json for narrow, compact for wide)")
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
