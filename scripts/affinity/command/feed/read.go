package feed

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

func readFeedCommand(t *command.Tool) *cobra.Command {
	q, order := api.FeedQuery{Format: api.FormatRecords}, "" // the list of posts alone has no cursor
	cmd := command.Show(t, &cobra.Command{
		Use:   "read NAME",
		Short: "Read a page of a feed, in a user's order or by date",
		Long: "Read a page of a feed: its records in the order of a user's profile, or by date. It prints a record a line, and how to\n" +
			"read the next page. Without a user, the suggested order goes by popularity and freshness. Requires a key with the permission\n" +
			"recommendation, or search for the order latest.",
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
	return cmd
}

func printPage(t *command.Tool, p api.FeedPage) error {
	if p.Fallback != nil {
		fmt.Fprintln(t.Out, "by popularity: no event of the user counts, or none was named")
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
