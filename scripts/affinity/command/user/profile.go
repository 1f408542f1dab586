package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Profile returns the command profile.
func Profile(t *command.Tool) *cobra.Command {
	q := api.ProfileQuery{}
	cmd := command.Show(t, &cobra.Command{
		Use:     "profile USER",
		Short:   "Show what a user likes, the strongest affinity first",
		Long:    "Show the profile of a user token: a bar per affinity, as long as its score. Requires a key with the permission\nrecommendation.",
		Example: "  affinity profile ann --limit 10\n  affinity profile ann --half-life 30 --json",
		Args:    command.UserArg,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 1 {
				return cli.Usagef("--limit %d: must be 1 or more", q.Limit)
			}
			if cmd.Flags().Changed("consistency") {
				if _, err := config.ParseConsistency(q.Consistency); err != nil {
					return cli.Usagef("--%v", err)
				}
			}
			if cmd.Flags().Changed("half-life") {
				if _, err := strategy.ParseHalfLife(q.HalfLife); err != nil {
					return cli.Usagef("--half-life %v", err)
				}
			}
			return nil
		},
	}, "", func(ctx context.Context, c *client.Client, args []string) (api.Profile, error) {
		p, err := c.Profiles().Get(ctx, args[0], q)
		return p, command.NoProfile(c, "read", args[0], err)
	}, func(t *command.Tool, p api.Profile) error {
		return render.Profile(t.Out, p, q.HalfLife, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.IntVar(&q.Limit, "limit", 20, "how many affinities to show")
	flags.StringVar(&q.HalfLife, "half-life", "", "score by this half-life of the strategy, such as 30 or 12h (default: its first)")
	flags.StringVar(&q.Consistency, "consistency", "", "eventual, or strong to read the cluster that is written (default: the app's)")
	return cmd
}
