package user

import (
	"context"
	"fmt"
	"io"
	"net/http"

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
	q, asJSON := api.ProfileQuery{}, false
	cmd := &cobra.Command{
		Use:     "profile USER",
		Short:   "Show what a user likes, the strongest affinity first",
		Long:    "Show the profile of a user token: a bar per affinity, as long as its score. Requires a key with the permission\nrecommendation.",
		Example: "  affinity profile ann --limit 10\n  affinity profile ann --half-life 30 --json",
		Args:    cli.Args("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			if args[0] == "" {
				return cli.Usagef("USER must not be empty")
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			return showProfile(cmd.Context(), c, t.Out, args[0], q, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&q.Limit, "limit", 20, "how many affinities to show")
	flags.StringVar(&q.HalfLife, "half-life", "", "score by this half-life of the strategy, such as 30 or 12h (default: its first)")
	flags.StringVar(&q.Consistency, "consistency", "", "eventual, or strong to read the cluster that is written (default: the app's)")
	flags.BoolVar(&asJSON, "json", false, command.JSONUsage)
	return cmd
}

func showProfile(ctx context.Context, c *client.Client, out io.Writer, user string, q api.ProfileQuery, asJSON bool) error {
	var raw []byte
	p, err := c.Profiles().Get(client.WithRawAnswer(ctx, &raw), user, q)
	if command.StatusOf(err) == http.StatusNotFound {
		return command.NoProfile(c, user, err)
	}
	if err != nil {
		return fmt.Errorf("read the profile of %s: %w", user, err)
	}
	if asJSON {
		return command.PrintRaw(out, raw)
	}
	return render.Profile(out, p, q.HalfLife, render.NewPalette(cli.Colored(out)))
}
