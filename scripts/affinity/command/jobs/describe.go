package jobs

import (
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/store"
)

func schemaDescribeCommand(t *command.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show what every table of Bigtable holds, whose it is, and whether it is personal",
		Long: "Show every table and family of Bigtable: what it holds, the package that owns it, whether it names users and what removes that,\n" +
			"the formats of its values, and the families from which the engine can make it again. It describes this version and asks no engine.",
		Example: "  affinity schema describe\n  affinity schema describe --json | jq '.tables[].families[] | select(.personal)'",
		Args:    cli.Subcommand,
		RunE: func(*cobra.Command, []string) error {
			tables, err := store.Tables()
			if err != nil {
				return err
			}
			if t.JSON {
				return cli.PrintJSON(t.Out, map[string]any{"tables": tables})
			}
			return render.Tables(t.Out, tables)
		},
	}
	t.JSONFlag(cmd, "print JSON")
	return cmd
}
