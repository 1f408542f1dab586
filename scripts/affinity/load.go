package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/load"
	"github.com/affinityengine/affinity/shared/client"
)

func loadCommand(t *tool) *cobra.Command {
	o, asJSON := load.Options{}, false
	cmd := &cobra.Command{
		Use:   "load --rate R --for D",
		Short: "Send events, read profiles and rank at a fixed rate, and measure",
		Long: "Send R events per second for D and read as many profiles, whether the engine keeps up or not, and print what it took.\n" +
			"Lag is the time from when an event was due until its user's profile shows it. It is measured for about ten events\n" +
			"per second. Events have the names and facets of the app's strategy, which does not change. With --ranks it puts objects\n" +
			"into the index, load-0, load-1 and so on, and asks for the best 20 of them. Events and objects stay in the app:\n" +
			"measure with an app of its own.",
		Example: "  affinity load --rate 500 --for 30s\n  affinity load --rate 2000 --batch 10 --reads 0 --for 1m --json\n" +
			"  affinity load --rate 100 --ranks 200 --candidates 1000 --for 30s",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "rate", "events per second, such as --rate 500"); err != nil {
				return err
			}
			if err := cli.Require(cmd, "for", "how long, such as --for 30s"); err != nil {
				return err
			}
			if !cmd.Flags().Changed("reads") {
				o.Reads = o.Rate
			}
			if err := o.Check(); err != nil {
				return cli.Usagef("%v", err)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			return runLoad(cmd.Context(), t, c, o, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&o.Rate, "rate", 0, "events per second")
	flags.DurationVar(&o.Duration, "for", 0, "how long, such as 30s")
	flags.Float64Var(&o.Reads, "reads", 0, "profile reads per second (default: as many as events)")
	flags.Float64Var(&o.Ranks, "ranks", 0, "rank requests per second")
	flags.IntVar(&o.Candidates, "candidates", 100, "how many objects a rank request orders")
	flags.IntVar(&o.Users, "users", 1000, "how many users have the events")
	flags.StringVar(&o.Index, "index", defaultIndex, "index of the events")
	flags.IntVar(&o.Batch, "batch", 1, "events per request")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func runLoad(ctx context.Context, t *tool, c *client.Client, o load.Options, asJSON bool) error {
	strategy, err := c.Strategy(ctx)
	if err != nil {
		return fmt.Errorf("read the app's strategy: %w", err)
	}
	if len(strategy.EventsScoring) == 0 || len(strategy.FacetsScoring) == 0 {
		fmt.Fprintln(t.err, "warning: the app has no strategy, so no event will count; set one with `affinity strategy set FILE`")
	}
	report, err := load.Run(ctx, c, o, strategy)
	if err != nil {
		return err
	}
	if asJSON {
		if err := cli.PrintJSON(t.out, report); err != nil {
			return err
		}
	} else {
		report.Print(t.out)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if report.Events.Accepted == 0 {
		return fmt.Errorf("no event was accepted: %s", cmp.Or(report.FirstError, "none was sent in time"))
	}
	return nil
}
