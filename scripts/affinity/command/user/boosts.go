package user

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/rank/boost"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Boosts returns the command boosts.
func Boosts(t *command.Tool) *cobra.Command {
	q, impact, halfLife, fields, fieldMap := api.BoostQuery{}, 0, "", "", ""
	cmd := command.Show(t, &cobra.Command{
		Use:   "boosts USER --engine ENGINE",
		Short: "Show a profile in the syntax of a search engine, with a request to copy",
		Long: "Show the part of a search request that prefers what a user likes, in the syntax of a search engine, what it\n" +
			"leaves out and why, and a curl command that searches with it. Replace the words in capitals. The query is empty\n" +
			"if the user has no profile. Requires a key with the permission recommendation.\n\n" +
			"Engines: " + strings.Join(boost.Engines(), ", ") + ".",
		Example: "  affinity boosts ann --engine typesense --limit 6\n" +
			"  affinity boosts ann --engine elasticsearch --mode rescore --fields brand,color --field-map brand:brand.keyword\n" +
			"  affinity boosts ann --engine prompt --json",
		Args: command.UserArg,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return checkBoost(&q, impact, halfLife, fields, fieldMap, cmd.Flags().Changed)
		},
	}, "boosts of %s", func(ctx context.Context, c *client.Client, args []string) (api.Boost, error) {
		return c.Boost(ctx, args[0], q)
	}, func(t *command.Tool, answer api.Boost) error {
		return render.Boost(t.Out, answer, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.StringVar(&q.Engine, "engine", "", "the search engine")
	flags.StringVar(&q.Mode, "mode", "", "one of the engine's forms of a query (default: its first)")
	flags.IntVar(&impact, "impact", 0, "personalization impact, 0 to 100 (default: that of the strategy)")
	flags.IntVar(&q.Limit, "limit", api.DefaultBoostAffinities, "how many affinities the query has at most")
	flags.StringVar(&fields, "fields", "", "the facets to use, such as brand,color (default: all)")
	flags.StringVar(&fieldMap, "field-map", "", "the engine's names of facets: brand:brand.keyword,color:colour")
	flags.StringVar(&halfLife, "half-life", "",
		"score by this half-life of the strategy, such as 30 or 12h (default: its first)")
	return cmd
}

// checkBoost reads the flags into a query.
func checkBoost(q *api.BoostQuery, impact int, halfLife, fields, fieldMap string,
	given func(flag string) bool) (err error) {
	engines := strings.Join(boost.Engines(), ", ")
	switch modes := boost.Modes(q.Engine); {
	case !given("engine"):
		return cli.Usagef("--engine is required: one of %s", engines)
	case modes == nil:
		return cli.Usagef("--engine %q: must be one of %s", q.Engine, engines)
	case given("mode") && !slices.Contains(modes, q.Mode):
		return cli.Usagef("--mode %q: %s has %s", q.Mode, q.Engine, strings.Join(modes, ", "))
	case impact < 0 || impact > strategy.MaxImpact:
		return cli.Usagef("--impact %d: must be from 0 to %d", impact, strategy.MaxImpact)
	case q.Limit < 1 || q.Limit > api.MaxBoostAffinities:
		return cli.Usagef("--limit %d: must be from 1 to %d", q.Limit, api.MaxBoostAffinities)
	}
	if given("impact") {
		q.Impact = &impact
	}
	if given("half-life") {
		if q.HalfLife, err = strategy.ParseHalfLife(halfLife); err != nil {
			return cli.Usagef("--half-life %v", err)
		}
	}
	if given("fields") {
		q.Fields = strings.Split(fields, ",")
	}
	if !given("field-map") {
		return nil
	}
	q.FieldMap = map[string]string{}
	for entry := range strings.SplitSeq(fieldMap, ",") {
		facet, field, ok := strings.Cut(entry, ":")
		if !ok || facet == "" || field == "" {
			return cli.Usagef("--field-map %q: must be facets with their fields, such as "+
				"brand:brand.keyword,color:colour", fieldMap)
		}
		q.FieldMap[facet] = field
	}
	return nil
}
