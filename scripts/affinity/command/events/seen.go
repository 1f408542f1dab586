package events

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

func seenEventsCommand(t *command.Tool) *cobra.Command {
	days := api.DefaultSeenDays
	cmd := command.Show(t, &cobra.Command{
		Use:   "seen",
		Short: "List the kinds of events that arrived in the last days, and their facets",
		Long: "List the accepted events of the last days in UTC by type and name, and the facets of which they carried a filter, with the\n" +
			"number of events. The strategy need not score them: so you see which names and facets it can score. Imported events count on\n" +
			"the day of the import. The engine writes the counts every 5 seconds. Requires a key with the permission recommendation.",
		Example: "  affinity events seen\n  affinity events seen --days 1 --json | jq .facets",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error {
			if days < 1 || days > api.MaxSeenDays {
				return cli.Usagef("--days %d: must be from 1 to %d", days, api.MaxSeenDays)
			}
			return nil
		},
	}, "list what events contained", func(ctx context.Context, c *client.Client, _ []string) (api.SeenEvents, error) {
		return c.Events().Seen(ctx, days)
	}, printSeen)
	cmd.Flags().IntVar(&days, "days", days, "how many days, today included")
	return cmd
}

func printSeen(t *command.Tool, seen api.SeenEvents) error {
	if len(seen.Events) == 0 {
		fmt.Fprintf(t.Err, "no event arrived in the last %s\n", cli.Count(int64(seen.Days), "day"))
		return nil
	}
	table := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "EVENTS\tTYPE\tNAME")
	for _, e := range seen.Events {
		fmt.Fprintf(table, "%d\t%s\t%s\n", e.Count, cli.Printable(e.EventType), cli.Printable(e.EventName))
	}
	if len(seen.Facets) > 0 {
		fmt.Fprintln(table, "\nEVENTS\tFACET")
	}
	for _, f := range seen.Facets {
		fmt.Fprintf(table, "%d\t%s\n", f.Count, cli.Printable(f.Facet))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if seen.Truncated {
		fmt.Fprintln(t.Err, "some names or facets are missing: there were more than the engine counts")
	}
	return nil
}
