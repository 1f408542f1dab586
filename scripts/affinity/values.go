package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/client"
)

func valuesCommand(t *tool) *cobra.Command {
	facet, limit, asJSON := "", api.DefaultValues, false
	cmd := &cobra.Command{
		Use:   "values --facet FACET",
		Short: "List the values of a facet by the number of users who have them in their profiles",
		Long: "List the values of a facet by the number of users who have them in their profiles, as of the last build of the lists of\n" +
			"segments. The operator switches segments on for an app with `affinity app segments APP on`.",
		Example: "  affinity values --facet brand",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if facet == "" {
				return cli.Usagef("--facet is required: the facet whose values to list")
			}
			if limit < 1 || limit > api.MaxValues {
				return cli.Usagef("--limit %d: must be from 1 to %d", limit, api.MaxValues)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			var raw []byte
			values, err := c.Values(client.WithRawAnswer(cmd.Context(), &raw), facet, limit)
			if err != nil {
				return fmt.Errorf("list values of %s: %w", cli.Printable(facet), err)
			}
			if asJSON {
				return printRaw(t.out, raw)
			}
			return printValues(t, values)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&facet, "facet", "", "facet whose values to list")
	flags.IntVar(&limit, "limit", limit, "values to list")
	flags.BoolVar(&asJSON, "json", false, jsonUsage)
	return cmd
}

func printValues(t *tool, values api.Values) error {
	if len(values.Values) == 0 {
		fmt.Fprintf(t.err, "no profile has a value of %s, as of %s\n", cli.Printable(values.Facet), render.Timestamp(values.AsOf))
		return nil
	}
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VALUE\tUSERS")
	for _, v := range values.Values {
		fmt.Fprintf(table, "%s\t%s\n", cli.Printable(v.Value), v.Users)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "%d of %s, as of %s\n", len(values.Values), cli.Count(int64(values.Total), "value"), render.Timestamp(values.AsOf))
	return err
}
