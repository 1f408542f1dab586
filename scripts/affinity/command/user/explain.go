package user

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Explain returns the command explain.
func Explain(t *command.Tool) *cobra.Command {
	q, asJSON := api.ExplainQuery{}, false
	cmd := &cobra.Command{
		Use:   "explain USER",
		Short: "Explain a profile, or the events behind a score",
		Long: "Explain why the profile of a user token is as it is, or empty: how many of the user's events count, and why the\n" +
			"others do not. With --facet and --value, list the events behind that score. Requires a key with the permission recommendation.",
		Example: "  affinity explain ann\n  affinity explain ann --facet color --value Red",
		Args:    cli.Args("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case args[0] == "":
				return cli.Usagef("USER must not be empty")
			case (q.Facet == "") != (q.Value == ""):
				return cli.Usagef("--facet and --value: give both or neither")
			case q.Limit < 1:
				return cli.Usagef("--limit %d: must be 1 or more", q.Limit)
			}
			if asJSON && !cmd.Flags().Changed("limit") {
				q.Limit = 0 // the engine's default
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			return explain(cmd.Context(), c, t.Out, args[0], q, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Facet, "facet", "", "facet of a score")
	flags.StringVar(&q.Value, "value", "", "value of a score")
	flags.IntVar(&q.Limit, "limit", 20, "how many of the latest events behind a score to list")
	flags.BoolVar(&asJSON, "json", false, command.JSONUsage)
	return cmd
}

func explain(ctx context.Context, c *client.Client, out io.Writer, user string, q api.ExplainQuery, asJSON bool) error {
	var raw []byte
	x, err := c.Profiles().Explain(client.WithRawAnswer(ctx, &raw), user, q)
	if err != nil {
		return fmt.Errorf("explain %s: %w", user, err)
	}
	if asJSON {
		return command.PrintRaw(out, raw)
	}
	return render.Explanation(out, x, render.NewPalette(cli.Colored(out)))
}
