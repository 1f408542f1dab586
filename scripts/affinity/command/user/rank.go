package user

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Rank returns the command rank.
func Rank(t *command.Tool) *cobra.Command {
	r, diversity, impact, halfLife, draft := api.RankRequest{}, strategy.Diversity{}, 0, "", ""
	detailed := false
	cmd := command.Show(t, &cobra.Command{
		Use:   "rank --user USER --index INDEX {ID...|-}",
		Short: "Order objects for a user, with the reason for each place",
		Long: "Order objects of an index for a user token, the best first, with the reason for each place. \"-\" reads\n" +
			"objectIDs from standard input, one per line. A user without events gets the order by popularity. Requires a\n" +
			"key with the permission recommendation.",
		Example: "  affinity rank --user ann --index products shoe-1 shoe-2 shirt-7\n" +
			"  affinity rank --user ann --index products --limit 10 --explain - < ids.txt\n" +
			"  affinity rank --user ann --index products --diverse-by brand --max-per-value 2 - < ids.txt\n" +
			"  affinity rank --user ann --index products --draft draft.json - < ids.txt",
		PreRunE: func(cmd *cobra.Command, args []string) error {
			err := checkRank(cmd, &r, impact, halfLife)
			if err != nil {
				return err
			}
			if r.Diversity, err = diversityOf(cmd, diversity); err != nil {
				return err
			}
			if r.ObjectIDs, err = objectIDs(t, args); err != nil {
				return err
			}
			if draft != "" {
				if r.Draft, err = t.ReadFile(draft); err != nil {
					return err
				}
			}
			detailed = r.Explain
			r.Explain = r.Explain || !t.JSON // the table says why
			return nil
		},
	}, "", func(ctx context.Context, c *client.Client, _ []string) (api.RankAnswer, error) {
		answer, err := c.Rank(ctx, r)
		if err != nil {
			return answer, fmt.Errorf("rank for %s: %w", r.UserToken, err)
		}
		warnOfEmptyIndex(ctx, t, c, r.Index, answer)
		return answer, nil
	}, func(t *command.Tool, answer api.RankAnswer) error {
		return render.Ranking(t.Out, answer, r.UserToken, detailed, render.NewPalette(cli.Colored(t.Out)))
	})
	flags := cmd.Flags()
	flags.StringVar(&r.UserToken, "user", "", "user token")
	flags.StringVar(&r.Index, "index", "", "index of the objects")
	flags.IntVar(&r.Limit, "limit", 0, "how many objects to show (default: all)")
	flags.BoolVar(&r.Explain, "explain", false, "show what each score is made of")
	flags.IntVar(&impact, "impact", 0, "personalization impact, 0 to 100 (without a relevancy it changes nothing)")
	flags.StringVar(&halfLife, "half-life", "", "score by this half-life of the strategy: 30, 12h (default: its first)")
	flags.StringVar(&r.Seen, "seen", api.SeenKeep,
		"what happens to objects that the user's events name: keep, demote or exclude")
	addDiversity(flags, &diversity)
	flags.StringSliceVar(&r.Exclude, "exclude", nil, "objects that the answer does not have")
	flags.StringVar(&r.Placement, "placement", "", "order by this ranking of the strategy's placements")
	flags.Int64Var(&r.Strategy, "strategy", 0, "rank by this version of the strategy (default: the active one)")
	flags.StringVar(&draft, "draft", "", "rank by the strategy in this file, which is not published (\"-\" with "+
		"objects as arguments: standard input)")
	return cmd
}

// warnOfEmptyIndex says that an index holds nothing, if nothing is known of any object of an
// order: its name may be mistyped. A key that may not list objects gets no warning.
func warnOfEmptyIndex(ctx context.Context, t *command.Tool, c *client.Client, index string, order api.RankAnswer) {
	known := func(item api.RankedItem) bool { return len(item.Features) > 0 }
	if t.JSON || order.CrowdAsOf != nil || slices.ContainsFunc(order.Items, known) {
		return
	}
	if list, err := c.Catalog().List(ctx, index, api.ObjectsQuery{Limit: 1}); err == nil && len(list.ObjectIDs) == 0 {
		fmt.Fprintf(t.Err, "index %s holds no object: is that its name?\n", cli.Printable(index))
	}
}

// checkRank checks the flags of rank, and takes those into the request that are not
// bound to it.
func checkRank(cmd *cobra.Command, r *api.RankRequest, impact int, halfLife string) error {
	if err := cli.Require(cmd, "user", "a user token"); err != nil {
		return err
	}
	if err := cli.Require(cmd, "index", "the index of the objects"); err != nil {
		return err
	}
	flags := cmd.Flags()
	switch {
	case flags.Changed("limit") && r.Limit < 1:
		return cli.Usagef("--limit %d: must be 1 or more", r.Limit)
	case impact < 0 || impact > strategy.MaxImpact:
		return cli.Usagef("--impact %d: must be from 0 to %d", impact, strategy.MaxImpact)
	case flags.Changed("strategy") && flags.Changed("draft"):
		return cli.Usagef("--draft excludes --strategy: an order follows one strategy")
	case flags.Changed("strategy") && r.Strategy < 1:
		return cli.Usagef("--strategy %d: must be a version, 1 or more", r.Strategy)
	case r.Seen != api.SeenKeep && r.Seen != api.SeenDemote && r.Seen != api.SeenExclude:
		return cli.Usagef("--seen %q: must be keep, demote or exclude", r.Seen)
	case halfLife != "":
		var err error
		if r.HalfLife, err = strategy.ParseHalfLife(halfLife); err != nil {
			return cli.Usagef("--half-life: %v", err)
		}
	}
	if flags.Changed("impact") {
		r.Impact = &impact
	}
	return nil
}

// addDiversity adds the flags of which diversityOf makes a diversity.
func addDiversity(flags *pflag.FlagSet, d *strategy.Diversity) {
	flags.Float64Var(&d.Lambda, "lambda", 0,
		fmt.Sprintf("make the objects differ: 1 is the order by score, 0.5 takes as much for what an\n"+
			"object shares with one before it (default: no diversity; with --diverse-by %g)", strategy.DefaultLambda))
	flags.StringVar(&d.Facet, "diverse-by", "",
		"make the objects differ by the values of this facet (default: by all filters)")
	flags.IntVar(&d.MaxPerValue, "max-per-value", 0,
		"how many objects with the same value of --diverse-by stand before the others")
}

// diversityOf returns the diversity that the flags ask for, or nil.
func diversityOf(cmd *cobra.Command, d strategy.Diversity) (*strategy.Diversity, error) {
	flags := cmd.Flags()
	switch lambda, most := flags.Changed("lambda"), flags.Changed("max-per-value"); {
	case !lambda && !most && !flags.Changed("diverse-by"):
		return nil, nil
	case lambda && !(d.Lambda > 0 && d.Lambda <= 1):
		return nil, cli.Usagef("--lambda %g: must be above 0 and at most 1", d.Lambda)
	case most && (d.MaxPerValue < 1 || d.MaxPerValue > strategy.MaxPerValue):
		return nil, cli.Usagef("--max-per-value %d: must be from 1 to %d", d.MaxPerValue, strategy.MaxPerValue)
	case d.Facet == "" && (most || flags.Changed("diverse-by")):
		return nil, cli.Usagef("--diverse-by must name a facet")
	}
	return &d, nil
}

// objectIDs are the objects that the arguments name. "-" reads them from
// standard input, one per line.
func objectIDs(t *command.Tool, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, cli.Usagef("ID is missing: name the objects to order, or - to read them from standard input")
	}
	if len(args) > 1 || args[0] != "-" {
		return args, nil
	}
	var ids []string
	lines := bufio.NewScanner(t.In)
	for lines.Scan() {
		if id := strings.TrimSpace(lines.Text()); id != "" {
			ids = append(ids, id)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read objectIDs from standard input: %w", err)
	}
	return ids, nil
}
