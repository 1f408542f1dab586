package judge

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/judge/lift"
)

// reportOptions are the flags of a report.
type reportOptions struct {
	from, to, currency, metric, month, population, plot string
	last                                                bool
}

func reportCommand(t *command.Tool) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Say what an experiment, or the holdout, has shown",
		Long: "Add up what the users of each arm did, from the log of the engine, and say in words how the arms compare.\n" +
			"NAME is that of the app's experiment, or holdout: what personalization has earned over those who get\n" +
			"none. The interval may be read every day. --last answers the report that was made last, each night\n" +
			"or by this command, and --month that of a month, whose days may have left the log. Ctrl-C stops\n" +
			"following; the report continues. --population exposed counts the users for whom an arm has answered,\n" +
			"in place of all with an event in these days. Requires a key with the permission admin.",
		Example: "  affinity experiment report holdout\n" +
			"  affinity experiment report holdout --metric conversions --plot lift.svg\n" +
			"  affinity experiment report holdout --month 2026-11 --json\n" +
			"  affinity experiment report checkout --population exposed\n" +
			"  affinity experiment report checkout --from 2026-11-01 -o csv",
		Args: cli.Args("NAME"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.metric != "" && !slices.Contains([]string{"clicks", "conversions", "revenue"}, o.metric) {
				return cli.Usagef("--metric %q: must be clicks, conversions or revenue", o.metric)
			}
			if !slices.Contains([]string{"active", "exposed"}, o.population) {
				return cli.Usagef("--population %q: must be active or exposed", o.population)
			}
			if o.last = o.last || o.month != ""; o.last && o.from+o.to+o.currency != "" {
				return cli.Usagef("--last and --month ask for a report that is there: leave out --from, --to and --currency")
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			return report(ctx, t, c, args[0], o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.from, "from", "", "the first day in UTC, such as 2026-11-01 (default: the first that there is)")
	flags.StringVar(&o.to, "to", "", "the last day (default: the last that is over)")
	flags.StringVar(&o.currency, "currency", "", "of revenue (default: that in which most people paid)")
	flags.StringVar(&o.metric, "metric", "", "clicks, conversions or revenue (default: that of the experiment)")
	flags.StringVar(&o.month, "month", "", "print the report of a month, such as 2026-11")
	flags.StringVar(&o.population, "population", "active", "who counts: active or exposed")
	flags.BoolVar(&o.last, "last", false, "print the last report, and make none")
	flags.StringVar(&o.plot, "plot", "", "write an SVG of the lift over the days to this file")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

// report makes a report, unless one that is there is asked for, and prints it.
func report(ctx context.Context, t *command.Tool, c *client.Client, name string, o reportOptions) error {
	if !o.last {
		if err := makeReport(ctx, t, c, name, o); err != nil {
			return err
		}
	}
	r, err := c.Jobs().ExperimentReport(ctx, name,
		api.ExperimentReportQuery{Metric: o.metric, Month: o.month, Population: o.population})
	if err != nil {
		return fmt.Errorf("read the report of %s: %w", cli.Printable(name), err)
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, lift.PlotFile(r), 0o644); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, r)
	}
	return render.ExperimentReport(t.Out, r, render.NewPalette(cli.Colored(t.Out)))
}

// makeReport starts a report and follows it to its end.
func makeReport(ctx context.Context, t *command.Tool, c *client.Client, name string, o reportOptions) error {
	j, err := c.Jobs().StartReport(ctx, api.ReportRequest{Experiment: name, From: o.from, To: o.to, Currency: o.currency})
	if err != nil {
		return fmt.Errorf("start a report of %s: %w", cli.Printable(name), err)
	}
	fmt.Fprintf(t.Err, "report %s is under way\n", cli.Printable(j.ID))
	j, err = command.Follow(ctx, t, c, "watch report "+j.ID, func(c *client.Client) (api.ReportJob, error) {
		return c.Jobs().Report(ctx, j.ID)
	}, render.ReportProgress)
	if err != nil {
		return err
	}
	if j.Faulty > 0 {
		fmt.Fprintln(t.Err, command.FaultList(command.Unread(j.Faulty), j.Faults))
	}
	return command.Failure("report "+j.ID, j.State, j.Error)
}

func reportsCommand(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "reports", Short: "List and cancel reports"},
		command.Show(t, &cobra.Command{
			Use: "list", Short: "List the latest reports, the newest first", Args: cli.Subcommand,
		}, "list reports", func(ctx context.Context, c *client.Client, _ []string) (api.Reports, error) {
			return c.Jobs().Reports(ctx)
		}, printReports),
		&cobra.Command{
			Use:   "cancel ID",
			Short: "Cancel a report that is under way",
			Args:  cli.Args("ID"),
			RunE: t.Tell("cancel report %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
				j, err := c.Jobs().CancelReport(ctx, args[0])
				return command.IsNow("report", j.ID, j.State), err
			}),
		})
}

func printReports(t *command.Tool, list api.Reports) error {
	if len(list.Reports) == 0 {
		fmt.Fprintln(t.Err, "the app has had no report: `affinity experiment report` starts one")
		return nil
	}
	const columns = "ID\tSTATE\tEXPERIMENT\tFROM\tTO\tUSERS\tEVENTS\tSTARTED"
	return cli.Table(t.Out, columns, list.Reports, func(j api.ReportJob) []any {
		return []any{j.ID, j.State, j.Experiment, j.From, j.To, j.Users, j.Events, j.StartedAt.UTC().Format(time.RFC3339)}
	})
}
