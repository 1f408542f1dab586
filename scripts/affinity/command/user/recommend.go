package user

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// models are those of recommend.
var models = []string{api.RecommendRelated, api.RecommendTogether, api.RecommendNext, api.RecommendTrending,
	api.RecommendForYou}

// Recommend returns the command recommend.
func Recommend(t *command.Tool) *cobra.Command {
	r, where, detailed := api.RecommendRequest{}, "", false
	cmd := command.Show(t, &cobra.Command{
		Use:   "recommend MODEL --index INDEX",
		Short: "Recommend objects, with the reason for each",
		Long: "Recommend objects of an index, the best first, with what brings each in. MODEL is one of\n" +
			"  related   what goes with the objects of --object\n" +
			"  together  what stands in baskets with the objects of --object\n" +
			"  next      what users turn to after the objects of --object\n" +
			"  trending  what has more events than before\n" +
			"  for-you   what suits the user of --user, or a guest\n" +
			"Popular objects fill up the answer. --where takes a condition on objects, with AND, OR, NOT and parentheses.\n" +
			"Requires a key with the permission recommendation.",
		Example: "  affinity recommend for-you --index products --user ann\n" +
			"  affinity recommend related --index products --object shoe-1 --user ann --limit 5\n" +
			"  affinity recommend next --index products --object shoe-1,shirt-7 --where 'brand:Nike AND price < 100'",
		Args: cli.Args("MODEL"),
		PreRunE: func(cmd *cobra.Command, args []string) error {
			r.Model = args[0]
			if where != "" {
				r.Where, _ = json.Marshal(where)
			}
			detailed = r.Explain
			r.Explain = r.Explain || !t.JSON // the table says why
			return checkRecommend(cmd, r)
		},
	}, "", func(ctx context.Context, c *client.Client, _ []string) (api.RecommendAnswer, error) {
		answer, err := c.Recommend(ctx, r)
		if err != nil {
			return answer, fmt.Errorf("recommend %s: %w", r.Model, err)
		}
		return answer, nil
	}, func(t *command.Tool, answer api.RecommendAnswer) error {
		return render.Recommendation(t.Out, answer, r.UserToken, detailed, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.StringVar(&r.Index, "index", "", "index of the objects")
	flags.StringSliceVar(&r.ObjectIDs, "object", nil, "objects for which related, together and next recommend others")
	flags.StringVar(&r.UserToken, "user", "", "user token (default: a guest)")
	flags.StringVar(&where, "where", "", "condition on objects: brand:Nike AND price < 50")
	flags.StringSliceVar(&r.Exclude, "exclude", nil, "objects that the answer does not have")
	flags.StringVar(&r.Placement, "placement", "", "order by this ranking of the strategy's placements")
	flags.IntVar(&r.Limit, "limit", api.DefaultRecommended, "how many objects to show")
	flags.BoolVar(&r.Explain, "explain", false, "show what each score is made of")
	flags.StringVar(&r.Seen, "seen", api.SeenKeep,
		"what happens to objects that the user's events name: keep, demote or exclude")
	return cmd
}

// checkRecommend checks the argument and the flags of recommend.
func checkRecommend(cmd *cobra.Command, r api.RecommendRequest) error {
	if err := cli.Require(cmd, "index", "the index of the objects"); err != nil {
		return err
	}
	ofObjects := r.Model != api.RecommendForYou && r.Model != api.RecommendTrending
	switch {
	case !slices.Contains(models, r.Model):
		return cli.Usagef("MODEL %s: must be one of %s", cli.Printable(r.Model), strings.Join(models, ", "))
	case ofObjects && len(r.ObjectIDs) == 0:
		return cli.Usagef("--object is missing: name the objects for which %s recommends others", r.Model)
	case !ofObjects && len(r.ObjectIDs) > 0:
		return cli.Usagef("--object is not for %s: --exclude names what the answer must not have", r.Model)
	case r.Limit < 1 || r.Limit > api.MaxRecommended:
		return cli.Usagef("--limit %d: must be from 1 to %d", r.Limit, api.MaxRecommended)
	case r.Seen != api.SeenKeep && r.Seen != api.SeenDemote && r.Seen != api.SeenExclude:
		return cli.Usagef("--seen %q: must be keep, demote or exclude", r.Seen)
	}
	return nil
}
