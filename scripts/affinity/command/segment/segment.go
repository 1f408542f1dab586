// Package segment holds the commands about many users at a time: segment finds, counts
// and saves users by what they like, and values lists what a facet has. It keeps
// nothing.
package segment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Command returns the command segment.
func Command(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "segment",
		Short: "Find, count, save and export the users whose profiles meet a condition",
		Long: "Find, count, save and export the users whose profiles meet a condition. The operator switches segments on for an app\n" +
			"with `affinity app segments APP on`; the lists that queries read are then built, every night and on " +
			"request.\n\n" + whereHelp,
	}, querySegmentCommand(t), histogramCommand(t), saveSegmentCommand(t), listSegmentsCommand(t), showSegmentCommand(t),
		deleteSegmentCommand(t), exportSegmentCommand(t), refreshSegmentsCommand(t))
}

func querySegmentCommand(t *command.Tool) *cobra.Command {
	var where whereFlags
	limit, all, count, cursor := api.DefaultSegmentUsers, false, false, ""
	cmd := &cobra.Command{
		Use:   "query [FILE]",
		Short: "List the users who meet a condition, those with the highest scores first",
		Long: "List the users who meet a condition, by their score of its first filter. The answer is exact as of now. The key needs\n" +
			"the permission admin, because the answer names users; with --count the permission recommendation will do.\n\n" + whereHelp,
		Example: "  affinity segment query --where 'brand:Nike > 500 @30' --where category:Shoes --without brand:Adidas\n" +
			"  affinity segment query --count --where 'brand:Nike > 500'\n" +
			"  affinity segment query condition.json --all > tokens.tsv",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			condition, err := where.condition(t, args)
			if err != nil {
				return err
			}
			if limit < 1 || limit > api.MaxSegmentUsers {
				return cli.Usagef("--limit %d: must be from 1 to %d", limit, api.MaxSegmentUsers)
			}
			if count {
				limit = 0
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			query := api.SegmentQuery{Where: condition, Limit: &limit, Cursor: cursor}
			return querySegment(cmd.Context(), t, c, query, all)
		},
	}
	where.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&limit, "limit", limit, "users of a page")
	flags.BoolVar(&all, "all", false, "list all pages")
	flags.BoolVar(&count, "count", false, "only count the users")
	flags.StringVar(&cursor, "cursor", "", "go on after the page that printed this")
	t.JSONFlag(cmd, command.JSONUsage)
	cmd.MarkFlagsMutuallyExclusive("all", "count")
	cmd.MarkFlagsMutuallyExclusive("all", "json")
	return cmd
}

// querySegment prints a page of users, or all pages.
func querySegment(ctx context.Context, t *command.Tool, c *client.Client, query api.SegmentQuery, all bool) error {
	for {
		var raw []byte
		page, err := c.Segments().Query(client.WithRawAnswer(ctx, &raw), query)
		if err != nil {
			return fmt.Errorf("query users: %w", err)
		}
		if t.JSON {
			return command.PrintRaw(t.Out, raw)
		}
		if query.Cursor == "" {
			fmt.Fprintf(t.Err, "%s as of %s\n", render.Users(page.Total), render.Timestamp(page.AsOf))
		}
		if err := printUsers(t.Out, page.Users); err != nil {
			return err
		}
		switch {
		case page.Cursor == "":
			return nil
		case !all:
			fmt.Fprintf(t.Err, "there are more: --all, or --cursor %s\n", cli.Printable(page.Cursor))
			return nil
		}
		query.Cursor = page.Cursor
	}
}

// printUsers prints a token and a score a line, with a tab between.
func printUsers(out io.Writer, users []api.SegmentUser) error {
	for _, u := range users {
		if _, err := fmt.Fprintf(out, "%s\t%g\n", cli.Printable(u.UserToken), u.Score); err != nil {
			return err
		}
	}
	return nil
}

func histogramCommand(t *command.Tool) *cobra.Command {
	halfLife, facet, value := "", "", ""
	cmd := command.Show(t, &cobra.Command{
		Use:   "histogram FACET:VALUE",
		Short: "Draw how the scores of a value are distributed over the users who have it",
		Long: "Draw how the scores of a value are distributed over the users who have it, to choose the limit of a segment. The key\n" +
			"needs the permission recommendation. Of fewer than 20 users, only a key with the permission admin sees anything.",
		Example: "  affinity segment histogram brand:Nike\n  affinity segment histogram 'category:Running shoes' --half-life 30",
		Args:    cli.Args("FACET:VALUE"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if facet, value, err = cutFilter(args[0]); err != nil {
				return err
			}
			if halfLife != "" {
				if _, err := strategy.ParseHalfLife(halfLife); err != nil {
					return cli.Usagef("--half-life %v", err)
				}
			}
			return nil
		},
	}, "histogram of %s", func(ctx context.Context, c *client.Client, args []string) (api.SegmentHistogram, error) {
		return c.Segments().Histogram(ctx, facet, value, halfLife)
	}, func(t *command.Tool, h api.SegmentHistogram) error {
		return render.Histogram(t.Out, facet+":"+value, h)
	})
	cmd.Flags().StringVar(&halfLife, "half-life", "",
		"scores under this half-life of the strategy, such as 30 or 12h (default: its first)")
	return cmd
}

func saveSegmentCommand(t *command.Tool) *cobra.Command {
	var where whereFlags
	var condition api.SegmentCondition
	replace := false
	cmd := command.Show(t, &cobra.Command{
		Use:   "save NAME [FILE]",
		Short: "Save a condition under a name",
		Long: "Save a condition under a name. The engine counts its users at each build of the lists, and keeps a size for each day.\n" +
			"Requires a key with the permission recommendation.\n\n" + whereHelp,
		Example: "  affinity segment save nike --where 'brand:Nike > 500 @30'\n  affinity segment save nike condition.json --replace",
		Args:    cobra.RangeArgs(1, 2),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			condition, err = where.condition(t, args[1:])
			return err
		},
	}, "save segment %s", func(ctx context.Context, c *client.Client, args []string) (api.Segment, error) {
		return checkSegment(c.Segments().Save(ctx, args[0], condition, !replace))
	}, showSegment)
	where.add(cmd)
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the segment of that name; its sizes begin again")
	return cmd
}

// checkSegment passes an answer on if it is a saved segment.
func checkSegment(s api.Segment, err error) (api.Segment, error) {
	if err == nil && s.Name == "" {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a segment: %+v", s)
	}
	return s, err
}

// showSegment prints a segment with its size on each day.
func showSegment(t *command.Tool, s api.Segment) error {
	where, err := json.Marshal(s.Where)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t.Out, "segment %s, set %s\n%s\n", cli.Printable(s.Name), render.Timestamp(s.SetAt),
		cli.Printable(string(where))); err != nil {
		return err
	}
	return render.Sizes(t.Out, s.Sizes)
}
