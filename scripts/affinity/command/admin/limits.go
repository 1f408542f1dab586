package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/limit"
)

// writeWindow is the option for the time within which a user's events share one write.
const writeWindow = "write-window"

// appLimit is one limit on the command line.
type appLimit struct {
	flag, name, beyond string
	of                 func(*limit.Numbers) *int
}

var appLimits = []appLimit{
	{"events-per-second", "events per second", "the slow lane; 429 beyond twice as many",
		func(n *limit.Numbers) *int { return &n.EventsPerSecond }},
	{"imports-per-second", "imported events per second", "429",
		func(n *limit.Numbers) *int { return &n.ImportsPerSecond }},
	{"reads-per-second", "reads and other requests per second", "429",
		func(n *limit.Numbers) *int { return &n.ReadsPerSecond }},
	{"jobs-per-hour", "jobs started per hour", "429", func(n *limit.Numbers) *int { return &n.JobsPerHour }},
	{"strategies-per-hour", "strategies set per hour", "429", func(n *limit.Numbers) *int { return &n.StrategiesPerHour }},
	{"user-events-per-day", "events of a user per day", "accepted and not applied",
		func(n *limit.Numbers) *int { return &n.UserEventsPerDay }},
}

func (a *appTool) limitsCommand() *cobra.Command {
	given, window := make([]int, len(appLimits)), time.Duration(0)
	cmd := &cobra.Command{
		Use:   "limits ID",
		Short: "Show or set how much an app may send and ask for",
		Long: "Show or set how much an app may send and ask for. Options that are not given keep their numbers. A change takes effect\n" +
			"within five seconds. All instances of a function together permit the limit.\n\n" +
			"With a write window the events of a user share one write of the profile at its end. Reads count each event at once, and\n" +
			"compute the profile until then. A window saves writes of users who send many events, and costs a task for each.",
		Example: "  affinity app limits shop\n" +
			"  affinity app limits shop --events-per-second 5000 --reads-per-second 1000\n" +
			"  affinity app limits shop --write-window 2s",
		Args: idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := func(n *limit.Numbers) (changed bool) {
				for i, one := range appLimits {
					if cmd.Flags().Changed(one.flag) {
						*one.of(n), changed = given[i], true
					}
				}
				if cmd.Flags().Changed(writeWindow) {
					n.WriteWindowMs, changed = int(window.Milliseconds()), true
				}
				return changed
			}
			if window%time.Millisecond != 0 {
				return cli.Usagef("write window of %s: want whole milliseconds", window)
			}
			var checked limit.Numbers
			set(&checked)
			if err := checked.Check(); err != nil {
				return cli.Usagef("%v", err)
			}
			return a.with(cmd, func(s engine) error { return a.limits(cmd.Context(), s, args[0], set) })
		},
	}
	for i, one := range appLimits {
		cmd.Flags().IntVar(&given[i], one.flag, 0, one.name+", 0 for the default")
	}
	cmd.Flags().DurationVar(&window, writeWindow, 0,
		"how long the events of a user wait for one write of the profile, such as 2s, at most 1m; 0 for none")
	return cmd
}

// limits changes the limits of an app, and prints them.
func (a *appTool) limits(ctx context.Context, s engine, id string, set func(*limit.Numbers) bool) error {
	app, err := s.App(ctx, id)
	if err != nil {
		return fmt.Errorf("read app %s: %w", id, missingApp(err))
	}
	if set(&app.Limits) {
		if err := s.SetLimits(ctx, id, app.Limits); err != nil {
			return fmt.Errorf("set the limits of app %s: %w", id, missingApp(err))
		}
	}
	defaults, err := s.DefaultLimits(ctx)
	if err != nil {
		return fmt.Errorf("read the defaults of the engine: %w", err)
	}
	own, all := app.Limits, app.Limits.Or(defaults)
	for _, one := range appLimits {
		note := ""
		if *one.of(&own) == 0 {
			note = "default"
		}
		fmt.Fprintf(a.Out, "%-36s %12d  %-8s beyond: %s\n", one.name, *one.of(&all), note, one.beyond)
	}
	window := "none: each message writes profiles"
	if own.WriteWindow() > 0 {
		window = own.WriteWindow().String()
	}
	fmt.Fprintf(a.Out, "%-36s %s\n", "write window", window)
	for _, slot := range slices.Sorted(slices.Values([]limit.Slot{limit.Explain, limit.Preview, limit.Audit,
		limit.Export})) {
		fmt.Fprintf(a.Out, "%-36s %12d  %-8s beyond: 429\n", slot+" at a time", limit.AtOnce(slot), "fixed")
	}
	return nil
}
