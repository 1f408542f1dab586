package user

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Profile returns the command profile.
func Profile(t *command.Tool) *cobra.Command {
	q, at := api.ProfileQuery{}, ""
	cmd := command.Show(t, &cobra.Command{
		Use:   "profile USER",
		Short: "Show what a user likes, the strongest affinity first",
		Long: "Show the profile of a user token: a bar per affinity, as long as its score. Of an empty profile, " +
			"show the reasons\nthat `affinity explain` has. Requires a key with the permission recommendation.\n\n" +
			"With --at, show it as of an instant within the retention, computed from the events that the engine holds now:\n" +
			"those of times up to it, without what was deleted or has expired since.",
		Example: "  affinity profile ann --limit 10\n  affinity profile ann --half-life 30 --json\n" +
			"  affinity profile ann --at 2026-11-01T00:00:00Z --strategy-version 3",
		Args: command.UserArg,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := setInstant(cmd, &q, at); err != nil {
				return err
			}
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
		if err != nil && !q.At.IsZero() {
			return shown{}, fmt.Errorf("read the profile of %s: %w", args[0], err)
		}
		if err != nil {
			return shown{}, command.NoProfile(c, "read", args[0], err)
		}
		if len(p.Affinities) > 0 || p.Holdout || t.JSON || !q.At.IsZero() { // reasons are as of now
			return shown{p, nil}, nil
		}
		return shown{p, whyEmpty(ctx, c, args[0])}, nil
	}, func(t *command.Tool, s shown) error {
		if !q.At.IsZero() {
			fmt.Fprintln(t.Err, instantNote(s.Profile))
		}
		return render.Profile(t.Out, s.Profile, q.HalfLife, s.reasons, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.StringVar(&at, "at", "", "show it as of this instant of the past, such as 2026-11-01T00:00:00Z (default: now)")
	flags.Int64Var(&q.StrategyVersion, "strategy-version", 0,
		"with --at: score by this version of the strategy, see affinity strategy list (default: the active one)")
	flags.IntVar(&q.Limit, "limit", 20, "how many affinities to show")
	flags.StringVar(&q.HalfLife, "half-life", "",
		"score by this half-life of the strategy, such as 30 or 12h (default: its first)")
	flags.StringVar(&q.Surface, "surface", "",
		"only what counts for a surface of the app, such as rank (default: all that is kept)")
	flags.StringVar(&q.Holdout, "holdout", "",
		"ignore: show what is kept of a user who is held out, too; requires a key with the permission admin")
	flags.StringVar(&q.Consistency, "consistency", "",
		"eventual, or strong to read the cluster that is written (default: the app's)")
	return cmd
}

// setInstant makes a query one as of an instant of the past, if there is one.
func setInstant(cmd *cobra.Command, q *api.ProfileQuery, at string) error {
	if !cmd.Flags().Changed("at") {
		if cmd.Flags().Changed("strategy-version") {
			return cli.Usagef("--strategy-version needs --at: a profile as of now is that of the active strategy")
		}
		return nil
	}
	ms, err := event.ParseDate(at)
	if err != nil {
		return cli.Usagef("--at %q: %v", at, err)
	}
	if cmd.Flags().Changed("strategy-version") && q.StrategyVersion < 1 {
		return cli.Usagef("--strategy-version %d: must be 1 or more", q.StrategyVersion)
	}
	q.At = time.UnixMilli(ms)
	return nil
}

// instantNote says what a profile as of an instant of the past counts.
func instantNote(p api.Profile) string {
	note := "as of " + event.FormatTime(p.AsOf.UnixMilli())
	if p.HeldFrom == nil {
		return note + ", of all events up to then that are not deleted"
	}
	return note + ", of events since " + event.FormatTime(p.HeldFrom.UnixMilli()) + ": older ones have left the retention"
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
