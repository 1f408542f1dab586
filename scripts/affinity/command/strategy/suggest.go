package strategy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// suggestCommand suggests a first strategy.
func suggestCommand(t *command.Tool) *cobra.Command {
	days, out, set := api.MaxSeenDays, "", false
	cmd := &cobra.Command{
		Use:   "suggest",
		Short: "Suggest a first strategy by the events and objects that the engine has seen",
		Long: "Suggest a first strategy by what the engine has seen, and say why. Events score by their type: a\n" +
			"view less than a click, and a click less than a conversion; those by which users turn away from\n" +
			"objects, such as Order Cancelled, do not. Facets score if objects share their values; names, ids and\n" +
			"exact prices do not, and prices do as bands. The strategy goes to standard output or --out, or with\n" +
			"--set to the app, with the bands. It is where to begin: `affinity tune` searches for a better one on\n" +
			"past events. Requires a key with the permission recommendation, and for bands with --set settings.",
		Example: "  affinity strategy suggest --set\n" +
			"  affinity strategy suggest --out strategy.json && affinity strategy preview strategy.json",
		Args: cli.Subcommand,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if set && (out != "" || t.JSON) {
				return cli.Usagef("--set sets the strategy: leave out --out and --json, or --set")
			}
			return cli.Within("days", days, 1, api.MaxSeenDays)
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error {
			s, err := t.Suggest(ctx, c, days, 1)
			switch {
			case err != nil:
				return err
			case t.JSON:
				return cli.PrintJSON(t.Out, s)
			case set:
				if err = t.SetSuggestion(ctx, c, s); err == nil {
					_, err = fmt.Fprintln(t.Out, "the strategy is set: reads use it within 5 s")
				}
				return err
			}
			if err := render.BandCommands(t.Err, s); err != nil || out != "" {
				if err == nil {
					err = command.WriteStrategy(out, s.Strategy)
				}
				return err
			}
			return cli.PrintJSON(t.Out, s.Strategy)
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&days, "days", days, "days of events to look at, in UTC, today included")
	flags.StringVar(&out, "out", "", "file to write the strategy to (default: standard output)")
	flags.BoolVar(&set, "set", false, "set the strategy, and the numeric bands that it needs")
	t.JSONFlag(cmd, command.JSONUsage)
	return cmd
}
