package admin

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/usage"
)

// Usage returns the command usage.
func Usage(t *command.Tool) *cobra.Command {
	var from, to string
	f := &moneyFlags{}
	cmd := command.ShowAll(t, &cobra.Command{
		Use:   "usage",
		Short: "Print what an app used by day: events, reads, rows and bytes",
		Long: "Print what an app used by day in UTC, and in total; days without use are left out.\n" +
			"EVENTS are accepted events, those of imports and repeated ones too. REFUSED are refused requests of events, and\n" +
			"refused lines of imports. READS are users whose profile a request asked for. ROWS are rows of Bigtable that the\n" +
			"engine wrote or was sent for the app, by requests and by jobs, and BYTES are their keys, columns and values.\n" +
			"The engine counts in memory and writes the counts every 5 seconds. A last line says how many\n" +
			"messages of accepted events wait as dead letters, if any does. Requires a key with the permission usage.\n\n" +
			"With --money, USD estimates what that costs on Google Cloud, by the prices of `affinity plan`, and the items of\n" +
			"the sum follow.",
		Example: "  affinity usage\n  affinity usage --from 2026-11-01 --to 2026-11-30 --json\n" +
			"  affinity usage --money --price bigtable_nodes=0.65 --price bigtable_ssd=0.17",
		Args: cli.Subcommand,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			for name, day := range map[string]string{"from": from, "to": to} {
				if !cmd.Flags().Changed(name) {
					continue
				}
				if _, err := usage.ParseDay(day); err != nil {
					return cli.Usagef("--%s %v", name, err)
				}
			}
			return f.check(cmd)
		},
	}, "read usage", func(ctx context.Context, c *client.Client, _ []string) (used, error) {
		answer, err := c.Usage(ctx, from, to)
		if err != nil || !f.wanted {
			return used{Usage: answer}, err
		}
		return used{answer, f.of(answer)}, nil
	}, printUsage)
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "first day, as 2026-11-22 (default: 29 days before the last)")
	flags.StringVar(&to, "to", "", "last day (default: today)")
	return cmd
}

// used is what an app used, and what that costs.
type used struct {
	api.Usage
	Money *money `json:"money,omitempty"`
}

func printUsage(t *command.Tool, answer used) error {
	table := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(day string, c api.UsageCounts, usd func() float64) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t", cli.Printable(day), c.Events, c.RefusedEvents, c.Reads, c.Rows,
			c.Bytes)
		if answer.Money != nil {
			fmt.Fprintf(table, "%s\t", dollars(usd()))
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "DAY\tEVENTS\tREFUSED\tREADS\tROWS\tBYTES\t")
	if answer.Money != nil {
		fmt.Fprint(table, "USD\t")
	}
	fmt.Fprintln(table)
	for i, d := range answer.Days {
		if d.Events|d.RefusedEvents|d.Reads|d.Rows|d.Bytes != 0 {
			counts := api.UsageCounts{Events: d.Events, RefusedEvents: d.RefusedEvents, Reads: d.Reads, Rows: d.Rows,
				Bytes: d.Bytes}
			line(d.Day, counts, func() float64 { return answer.Money.Days[i].USD })
		}
	}
	line("total", answer.Total, func() float64 { return answer.Money.Total.USD })
	err := table.Flush()
	if err == nil && answer.Money != nil {
		err = answer.Money.write(t.Out)
	}
	if err != nil || answer.DeadLetters == 0 {
		return err
	}
	_, err = fmt.Fprintf(t.Out, "%s of accepted events could not be applied: no profile counts the events until "+
		"the operator runs `affinity replay`\n",
		cli.Count(answer.DeadLetters, "message"))
	return err
}
