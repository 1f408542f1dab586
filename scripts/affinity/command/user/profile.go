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
		Use:   "profile USER",
		Short: "Show what a user likes, the strongest affinity first",
		Long: "Show the profile of a user token: a bar per affinity, as long as its score. Of an empty profile, " +
			"show the reasons\nthat `affinity explain` has. Requires a key with the permission recommendation.",
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
	}, "", func(ctx context.Context, c *client.Client, args []string) (shown, error) {
		p, err := c.Profiles().Get(ctx, args[0], q)
		if err != nil {
			return shown{}, command.NoProfile(c, "read", args[0], err)
		}
		if len(p.Affinities) > 0 || t.JSON {
			return shown{p, nil}, nil
		}
		return shown{p, whyEmpty(ctx, c, args[0])}, nil
	}, func(t *command.Tool, s shown) error {
		return render.Profile(t.Out, s.Profile, q.HalfLife, s.reasons, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.IntVar(&q.Limit, "limit", 20, "how many affinities to show")
	flags.StringVar(&q.HalfLife, "half-life", "",
		"score by this half-life of the strategy, such as 30 or 12h (default: its first)")
	flags.StringVar(&q.Consistency, "consistency", "",
		"eventual, or strong to read the cluster that is written (default: the app's)")
	return cmd
}

// shown is a profile, and why it is empty.
type shown struct {
	api.Profile
	reasons []string
}

// whyEmpty returns the reasons of the explanation of an empty profile.
func whyEmpty(ctx context.Context, c *client.Client, user string) []string {
	x, err := c.Profiles().Explain(ctx, user, api.ExplainQuery{Limit: 1})
	if err != nil { // the profile is there all the same
		return []string{"the engine did not say why: " + err.Error()}
	}
	return x.Reasons
}

// Explain returns the command explain.
func Explain(t *command.Tool) *cobra.Command {
	q := api.ExplainQuery{}
	cmd := command.Show(t, &cobra.Command{
		Use:   "explain USER",
		Short: "Explain a profile, or the events behind a score",
		Long: "Explain why the profile of a user token is as it is, or empty: how many of the user's events count, and why the\n" +
			"others do not. With --facet and --value, list the events behind that score. Requires a key with the " +
			"permission recommendation.",
		Example: "  affinity explain ann\n  affinity explain ann --facet color --value Red",
		Args:    command.UserArg,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case (q.Facet == "") != (q.Value == ""):
				return cli.Usagef("--facet and --value: give both or neither")
			case q.Limit < 1:
				return cli.Usagef("--limit %d: must be 1 or more", q.Limit)
			}
			if t.JSON && !cmd.Flags().Changed("limit") {
				q.Limit = 0 // the engine's default
			}
			return nil
		},
	}, "explain %s", func(ctx context.Context, c *client.Client, args []string) (api.Explanation, error) {
		return c.Profiles().Explain(ctx, args[0], q)
	}, func(t *command.Tool, x api.Explanation) error {
		return render.Explanation(t.Out, x, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.StringVar(&q.Facet, "facet", "", "facet of a score")
	flags.StringVar(&q.Value, "value", "", "value of a score")
	flags.IntVar(&q.Limit, "limit", 20, "how many of the latest events behind a score to list")
	return cmd
}
