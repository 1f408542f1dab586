package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// loadOptions say what to send.
type loadOptions struct {
	rate  float64       // events/s
	reads float64       // profile reads/s
	lasts time.Duration // for how long
	users int
	index string
	batch int // events a request
	json  bool
}

// Bounds of the load command: one process on one machine cannot keep time beyond them.
const (
	loadRateMost  = 100_000
	loadBatchMost = 1000 // what POST /1/events takes
)

func (t *tool) loadCommand() *cobra.Command {
	o := loadOptions{}
	cmd := &cobra.Command{
		Use:   "load --rate R --for D",
		Short: "Send events and read profiles at a fixed rate, and measure",
		Long: "Send R events a second for D and read as many profiles, whether the engine keeps up or not, and print what it took.\n" +
			"Lag is from the moment an event was due to be sent to the moment its user's profile shows it, for about ten events a second.\n" +
			"Events are of the names and facets of the app's strategy, which is not changed. They stay in the app: measure with an app of its own.",
		Example: "  affinity load --rate 500 --for 30s\n  affinity load --rate 2000 --batch 10 --reads 0 --for 1m --json",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("reads") {
				o.reads = o.rate
			}
			if err := o.check(); err != nil {
				return err
			}
			return t.load(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&o.rate, "rate", 0, "events a second")
	flags.DurationVar(&o.lasts, "for", 0, "how long, such as 30s")
	flags.Float64Var(&o.reads, "reads", 0, "profile reads a second (default: as many as events)")
	flags.IntVar(&o.users, "users", 1000, "how many users the events are of")
	flags.StringVar(&o.index, "index", defaultIndex, "index of the events")
	flags.IntVar(&o.batch, "batch", 1, "events a request")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

func (o loadOptions) check() error {
	switch {
	case !(o.rate > 0 && o.rate <= loadRateMost):
		return cli.Usagef("--rate %v: must be more than 0 and at most %d events a second", o.rate, loadRateMost)
	case !(o.reads >= 0 && o.reads <= loadRateMost):
		return cli.Usagef("--reads %v: must be 0 to %d reads a second", o.reads, loadRateMost)
	case o.lasts <= 0:
		return cli.Usagef("--for %s: must be more than 0, such as 30s", o.lasts)
	case o.users < 1:
		return cli.Usagef("--users %d: must be 1 or more", o.users)
	case o.batch < 1 || o.batch > loadBatchMost:
		return cli.Usagef("--batch %d: must be 1 to %d", o.batch, loadBatchMost)
	case o.index == "":
		return cli.Usagef("--index must not be empty")
	}
	return nil
}

func (t *tool) load(ctx context.Context, o loadOptions) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	var strategy loadStrategy
	if err := c.get(ctx, strategyPath, &strategy); err != nil {
		return fmt.Errorf("read the app's strategy: %w", err)
	}
	if len(strategy.EventsScoring) == 0 || len(strategy.FacetsScoring) == 0 {
		fmt.Fprintln(t.err, "warning: the app has no strategy, so no event will count; set one with `affinity strategy set FILE`")
	}
	l := newLoader(c, o, newMix(strategy, o.index))
	if err := l.findClock(ctx); err != nil {
		return err
	}
	l.run(ctx)
	report := l.report()
	if o.json {
		document, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		fmt.Fprintf(t.out, "%s\n", document)
	} else {
		report.print(t.out)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if report.Events.Accepted == 0 {
		return fmt.Errorf("no event was accepted: %s", cmp.Or(report.FirstError, "none was sent in time"))
	}
	return nil
}
