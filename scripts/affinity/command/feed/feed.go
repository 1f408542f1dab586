// Package feed holds the command feed: it sets, shows, lists, deletes and reads the
// feeds of an app. It keeps nothing.
package feed

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Command returns the command feed.
func Command(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "feed",
		Short: "Set, list, show and delete the definitions of feeds, and read pages of them",
		Long: "Set, list, show and delete the definitions of feeds: which objects of an index a feed shows, and by which date. The\n" +
			"key needs the permission settings. Read pages of a feed with the permission recommendation.",
	}, setFeedCommand(t), listFeedsCommand(t), showFeedCommand(t), deleteFeedCommand(t), readFeedCommand(t))
}

func setFeedCommand(t *command.Tool) *cobra.Command {
	var request api.FeedRequest
	var diversity strategy.Diversity
	var where []string
	cmd := command.Show(t, &cobra.Command{
		Use:   "set NAME",
		Short: "Set the definition of a feed",
		Long: "Set the definition of a feed. The first feed that names a date starts a job, which lists by date the objects that are\n" +
			"there already; `affinity feed show` says how far it is. The same definition again changes nothing, and starts a job\n" +
			"that has failed again. A change ends the walks through the feed.",
		Example: "  affinity feed set news --index posts --date publishedAt --max-age-days 30 --where categories:News\n" +
			"  affinity feed set both --index posts --date publishedAt --where 'categories:News|categories:Sport' --where lang:en\n" +
			"  affinity feed set blog --index posts --date publishedAt --format wordpress --public",
		Args: cli.Args("NAME"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case request.Index == "":
				return cli.Usagef("--index is required: the index whose objects the feed shows")
			case request.Date == "":
				return cli.Usagef("--date is required: the attribute that holds an object's date")
			case cmd.Flags().Changed("max-age-days") && request.MaxAgeDays < 1:
				return cli.Usagef("--max-age-days must be 1 or more: leave it out for no limit")
			}
			for _, condition := range where {
				request.Where = append(request.Where, strings.Split(condition, "|"))
			}
			if diversity != (strategy.Diversity{}) {
				request.Diversity = &diversity
			}
			return nil
		},
	}, "set feed %s", func(ctx context.Context, c *client.Client, args []string) (api.Feed, error) {
		return checkFeed(c.Feeds().Set(ctx, args[0], request))
	}, showFeed)
	flags := cmd.Flags()
	flags.StringVar(&request.Index, "index", "", "index whose objects the feed shows (required)")
	flags.StringVar(&request.Date, "date", "", "attribute that holds an object's date, a dotted path (required)")
	flags.IntVar(&request.MaxAgeDays, "max-age-days", 0, "how old an object may be, in days (default no limit)")
	flags.StringArrayVar(&where, "where", nil,
		"condition facet:value, or several with | between them of which any holds; repeat for conditions that all hold")
	flags.StringVar(&diversity.Facet, "diversity-facet", "", "facet by whose values items differ")
	flags.Float64Var(&diversity.Lambda, "diversity-lambda", 0, "above 0 and at most 1: less lets items differ more")
	flags.IntVar(&diversity.MaxPerValue, "max-per-value", 0,
		"items with one value of the facet that come before the others")
	flags.StringVar(&request.Seen, "seen", "",
		"what becomes of objects that the user has seen: keep, demote or exclude (default keep)")
	flags.StringVar(&request.Format, "format", "", "what the items are: records, ids or wordpress (default records)")
	flags.BoolVar(&request.Public, "public", false,
		"let anybody read the order latest, in this format and without a key, at the host that the app has of its own")
	return cmd
}

func showFeedCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:     "show NAME",
		Short:   "Show the definition of a feed, and how far its objects are listed by date",
		Example: "  affinity feed show news",
		Args:    cli.Args("NAME"),
	}, "show feed %s", func(ctx context.Context, c *client.Client, args []string) (api.Feed, error) {
		return checkFeed(c.Feeds().Get(ctx, args[0]))
	}, showFeed)
}

func listFeedsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "list",
		Short: "List the definitions of feeds",
		Args:  cli.Subcommand,
	}, "list feeds", func(ctx context.Context, c *client.Client, _ []string) (api.Feeds, error) {
		return c.Feeds().List(ctx)
	}, func(t *command.Tool, list api.Feeds) error {
		if len(list.Feeds) == 0 {
			fmt.Fprintln(t.Err, "the app has no feeds: `affinity feed set` makes one")
			return nil
		}
		return cli.Table(t.Out, "FEED\tINDEX\tDATE\tVERSION", list.Feeds, func(f api.FeedDefinition) []any {
			return []any{f.Name, f.Index, f.Date, f.Version}
		})
	})
}

func deleteFeedCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete the definition of a feed; its objects stay",
		Args:  cli.Args("NAME"),
		RunE: t.Tell("delete feed %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			_, err := c.Feeds().Delete(ctx, args[0])
			return fmt.Sprintf("feed %s is deleted", cli.Printable(args[0])), err
		}),
	}
}

// checkFeed passes an answer on if it is a feed.
func checkFeed(f api.Feed, err error) (api.Feed, error) {
	if err == nil && (f.Name == "" || f.Version == 0) {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a feed: %+v", f)
	}
	return f, err
}

func showFeed(t *command.Tool, f api.Feed) error {
	var conditions []string
	for _, condition := range f.Where {
		conditions = append(conditions, strings.Join(condition, " or "))
	}
	text := fmt.Sprintf("feed %s, version %d: the objects of index %s by %s", f.Name, f.Version, f.Index, f.Date)
	if f.MaxAgeDays > 0 {
		text += fmt.Sprintf(", at most %s old", cli.Count(int64(f.MaxAgeDays), "day"))
	}
	if len(conditions) > 0 {
		text += ", with " + strings.Join(conditions, " and ")
	}
	if f.Public {
		text += "; anybody reads the latest at the app's own host"
	}
	if _, err := fmt.Fprintln(t.Out, cli.Printable(text)); err != nil || f.Backfill == nil {
		return err
	}
	b := f.Backfill
	line := fmt.Sprintf("job %s, which lists the objects by date, %s: %s read", b.ID, command.Outcome(b.State),
		cli.Count(b.Objects, "object"))
	if b.Undated != nil {
		line += fmt.Sprintf(", %d without a readable date", *b.Undated)
	}
	if b.Faulty > 0 {
		line += fmt.Sprintf(", %d that cannot be read", b.Faulty)
	}
	if b.Error != "" {
		line += ": " + b.Error
	}
	_, err := fmt.Fprintln(t.Out, cli.Printable(line))
	return err
}

func readFeedCommand(t *command.Tool) *cobra.Command {
	q, order := api.FeedQuery{Format: api.FormatRecords}, "" // the list of posts alone has no cursor
	cmd := command.Show(t, &cobra.Command{
		Use:   "read NAME",
		Short: "Read a page of a feed, in a user's order or by date",
		Long: "Read a page of a feed: its records in the order of a user's profile, or by date. It prints a record a line,\n" +
			"and how to read the next page. Without a user, the suggested order goes by popularity and freshness. Requires\n" +
			"a key with the permission recommendation, or search for the order latest.",
		Example: "  affinity feed read news --user ann\n  affinity feed read news --order latest --limit 5 --json",
		Args:    cli.Args("NAME"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case order != api.OrderSuggested && order != api.OrderLatest:
				return cli.Usagef("--order %q: must be %s or %s", order, api.OrderSuggested, api.OrderLatest)
			case q.Limit < 1 || q.Limit > api.MaxFeedItems:
				return cli.Usagef("--limit %d: must be 1 to %d", q.Limit, api.MaxFeedItems)
			case cmd.Flags().Changed("cursor") && q.Cursor == "":
				return cli.Usagef("--cursor must not be empty: leave it out for the first page")
			}
			return nil
		},
	}, "read feed %s", func(ctx context.Context, c *client.Client, args []string) (api.FeedPage, error) {
		return c.Feeds().Page(ctx, args[0], order, q)
	}, printPage)
	flags := cmd.Flags()
	flags.StringVar(&q.User, "user", "", "user token")
	flags.StringVar(&order, "order", api.OrderSuggested, "suggested or latest")
	flags.IntVar(&q.Limit, "limit", api.DefaultFeedItems, "how many records to show")
	flags.StringVar(&q.Cursor, "cursor", "", "that of the page before (default: the first page)")
	flags.StringSliceVar(&q.Exclude, "exclude", nil,
		"objects that the page does not have: name them for every page of a walk")
	return cmd
}

func printPage(t *command.Tool, p api.FeedPage) error {
	switch {
	case p.Fallback != nil && *p.Fallback == api.FallbackHoldout:
		fmt.Fprintln(t.Out, "the user is held out: the order is that of a user without events")
	case p.Fallback != nil:
		fmt.Fprintln(t.Out, "by "+cli.Printable(*p.Fallback)+": no event of the user counts, or none was named")
	}
	if in := p.Experiment; in != nil {
		fmt.Fprintf(t.Out, "by arm %s of experiment %s\n", cli.Printable(in.Arm), cli.Printable(in.Name))
	}
	for _, item := range p.Items {
		fmt.Fprintf(t.Out, "%s\n", item)
	}
	switch {
	case p.Cursor != nil:
		fmt.Fprintf(t.Out, "next page: --cursor %s\n", *p.Cursor)
	case len(p.Items) == 0:
		fmt.Fprintln(t.Out, "no record")
	}
	return nil
}
