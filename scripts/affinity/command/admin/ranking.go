package admin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// exposed says what web pages learn while browser ranking is on.
const exposed = `With browser ranking on, every key with the permission search may ask POST /1/rank and suggested feeds for an order.
Such a key stands in your web pages, so anybody has it. What anybody can then learn:
  - of a user whose token they know or guess: which of two objects the user prefers, and by comparing many, the
    user's taste; and whether the engine knows the user at all, because the order of an unknown one is that by popularity
  - by how much the user prefers it: relevancies and diversity of their own weigh against the profile
  - without any token: which objects of an index are popular
Nobody gets scores, features, affinities or another version of the strategy. User tokens must be long and random, and
must not be in URLs or mails. Secured keys need none of this: each opens the ranking of its own user alone.
`

func (a *appTool) rankingCommand() *cobra.Command {
	browser := ""
	cmd := &cobra.Command{
		Use:   "ranking ID",
		Short: "Show or set whether web pages may ask for the order of objects for a user",
		Long: "Show or set whether web pages may ask for the order of objects for a user. It is off in a new app. A change takes\n" +
			"effect within five seconds.\n\n" + exposed,
		Example: "  affinity app ranking shop --project my-project\n" +
			"  affinity app ranking shop --browser on --project my-project",
		Args: cli.Args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkID(args[0]); err != nil {
				return cli.Usagef("%v", err)
			}
			if browser != "" && browser != "on" && browser != "off" || browser == "" && cmd.Flags().Changed("browser") {
				return cli.Usagef("--browser %q: must be on or off", browser)
			}
			return a.with(cmd, func(s appStore) error { return a.ranking(cmd.Context(), s, args[0], browser) })
		},
	}
	cmd.Flags().StringVar(&browser, "browser", "", "on or off: whether keys in web pages may ask for an order")
	return cmd
}

// ranking changes the browser ranking of an app unless browser is empty, and prints
// it.
func (a *appTool) ranking(ctx context.Context, s appStore, id, browser string) error {
	if browser == "on" {
		fmt.Fprint(a.Err, exposed)
	}
	if browser != "" {
		if err := s.SetBrowserRanking(ctx, id, browser == "on"); err != nil {
			return fmt.Errorf("set the browser ranking of app %s: %w", id, missingApp(err))
		}
	}
	app, err := s.App(ctx, id)
	if err != nil {
		return fmt.Errorf("read app %s: %w", id, missingApp(err))
	}
	state := "off: keys with the permission search alone get no order"
	if app.BrowserRanking {
		state = "on: keys with the permission search get the order of objects for every user"
	}
	fmt.Fprintf(a.Out, "app %s: browser ranking is %s\n", id, state)
	return nil
}
