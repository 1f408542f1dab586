package measure

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/load"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Load returns the command load.
func Load(t *command.Tool) *cobra.Command {
	o := load.Options{}
	cmd := &cobra.Command{
		Use:   "load --rate R --for D",
		Short: "Send events, read profiles and rank at a fixed rate, and measure",
		Long: "Send R events per second for D and read as many profiles, whether the engine keeps up or not, and print\n" +
			"what it took. Lag is the time from when an event was due until its user's profile is as new as it. It is\n" +
			"measured for about ten events per second of the run's users, and for as many of new users. The fewer\n" +
			"--users, the more events each has: 50 at --rate 500 have ten a second. Before the measurement each user\n" +
			"gets --preload events, 800 a second in all, so that reads find them: a read of a user without events\n" +
			"costs less, and is counted apart. Events have the names and facets of the app's strategy, which does not\n" +
			"change. With --ranks it puts objects into the index, load-0, load-1 and so on, and asks for the best 20\n" +
			"of them. With --feeds it sets a feed of them, which is named load, and reads its suggested order in\n" +
			"walks of five pages. With --persons it measures, too, when the profile of a user is as new as an event\n" +
			"of an anonymous token of theirs: the app must link tokens (`affinity app identity`). Events, objects and\n" +
			"the feed stay in the app: measure with an app of its own.",
		Example: "  affinity load --rate 500 --for 30s\n" +
			"  affinity load --rate 500 --users 50 --for 15s\n" +
			"  affinity load --rate 2000 --batch 10 --reads 0 --for 1m --json\n" +
			"  affinity load --rate 500 --persons 20 --for 30s\n" +
			"  affinity load --rate 100 --ranks 200 --candidates 1000 --for 30s\n" +
			"  affinity load --feeds 500 --candidates 1000",
		Args: cli.Subcommand,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.Feeds > 0 {
				feedDefaults(cmd, &o)
			} else if err := requireRate(cmd); err != nil {
				return err
			}
			if o.Feeds == 0 && !cmd.Flags().Changed("reads") {
				o.Reads = o.Rate
			}
			if err := o.Check(); err != nil {
				return cli.Usagef("%v", err)
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error { return runLoad(ctx, t, c, o) }),
	}
	flags := cmd.Flags()
	flags.Float64Var(&o.Rate, "rate", 0, "events per second")
	flags.DurationVar(&o.Duration, "for", 0, "how long, such as 30s")
	flags.Float64Var(&o.Reads, "reads", 0, "profile reads per second (default: as many as events)")
	flags.Float64Var(&o.Ranks, "ranks", 0, "rank requests per second")
	flags.Float64Var(&o.Feeds, "feeds", 0, "pages of a suggested feed per second")
	flags.IntVar(&o.Candidates, "candidates", 100, "how many objects a rank request or the feed orders")
	flags.IntVar(&o.Users, "users", 1000, "how many users have the events")
	flags.IntVar(&o.Preload, "preload", 3, "events of each user before the measurement")
	flags.IntVar(&o.Persons, "persons", 0, "how many of 100 users have half of their events under a linked token")
	flags.StringVar(&o.Index, "index", command.DefaultIndex, "index of the events")
	flags.IntVar(&o.Batch, "batch", 1, "events per request")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

func requireRate(cmd *cobra.Command) error {
	if err := cli.Require(cmd, "rate", "events per second, such as --rate 500"); err != nil {
		return err
	}
	return cli.Require(cmd, "for", "how long, such as --for 30s")
}

// feedDefaults completes a run that reads pages, so that its users have events.
func feedDefaults(cmd *cobra.Command, o *load.Options) {
	flags := cmd.Flags()
	if !flags.Changed("rate") {
		o.Rate, o.Users = 50, min(o.Users, 100)
	}
	if !flags.Changed("for") {
		o.Duration = 30 * time.Second
	}
	if !flags.Changed("reads") {
		o.Reads = 0
	}
}

func runLoad(ctx context.Context, t *command.Tool, c *client.Client, o load.Options) error {
	strategy, err := c.Strategies().Get(ctx)
	if err != nil {
		return fmt.Errorf("read the app's strategy: %w", err)
	}
	if len(strategy.EventsScoring) == 0 || len(strategy.FacetsScoring) == 0 {
		fmt.Fprintln(t.Err, "warning: the app has no strategy, so no event will count; set one with `affinity "+
			"strategy set FILE`")
	}
	report, err := load.Run(ctx, c, o, strategy)
	if err != nil {
		return err
	}
	if t.JSON {
		if err := cli.PrintJSON(t.Out, report); err != nil {
			return err
		}
	} else {
		report.Print(t.Out)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if report.Events.Accepted == 0 {
		return fmt.Errorf("no event was accepted: %s", cmp.Or(report.FirstError, "none was sent in time"))
	}
	return nil
}
