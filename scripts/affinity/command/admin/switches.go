package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/operator"
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
		Example: "  affinity app ranking shop\n" +
			"  affinity app ranking shop --browser on",
		Args: idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if browser != "" && browser != "on" && browser != "off" || browser == "" && cmd.Flags().Changed("browser") {
				return cli.Usagef("--browser %q: must be on or off", browser)
			}
			return a.with(cmd, func(s engine) error { return a.ranking(cmd.Context(), s, args[0], browser) })
		},
	}
	cmd.Flags().StringVar(&browser, "browser", "", "on or off: whether keys in web pages may ask for an order")
	return cmd
}

// ranking changes the browser ranking of an app unless browser is empty, and prints
// it.
func (a *appTool) ranking(ctx context.Context, s operator.Store, id, browser string) error {
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

func (a *appTool) segmentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "segments ID [on|off]",
		Short: "Show or set whether an app's users can be found by their affinities",
		Long: "Show or set whether an app's users can be found by their affinities. Segments are off in a new app. While they are on,\n" +
			"each refresh of a profile writes one small row more, and the engine keeps an index of the profiles. Turn them on when\n" +
			"every function runs this version: an earlier one would change profiles and not say so. The first index is built once\n" +
			"every function knows of the change.",
		Example: "  affinity app segments shop on",
		Args: func(cmd *cobra.Command, args []string) error {
			names := []string{"ID"}
			if len(args) > 1 {
				names = append(names, "on|off")
			}
			return idArgs(names...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			turn := ""
			if len(args) == 2 {
				if turn = args[1]; turn != "on" && turn != "off" {
					return cli.Usagef("%q: must be on or off", turn)
				}
			}
			return a.with(cmd, func(s engine) error { return a.segments(cmd.Context(), s, args[0], turn) })
		},
	}
}

// segments turns the segments of an app on or off unless turn is empty, and prints
// whether they are on.
func (a *appTool) segments(ctx context.Context, s operator.Store, id, turn string) error {
	if turn != "" {
		if err := s.SetSegments(ctx, id, turn == "on"); err != nil {
			return fmt.Errorf("set the segments of app %s: %w", id, missingApp(err))
		}
	}
	app, err := s.App(ctx, id)
	if err != nil {
		return fmt.Errorf("read app %s: %w", id, missingApp(err))
	}
	if !app.Segments.On() {
		fmt.Fprintf(a.Out, "app %s: segments are off; turn them on with: affinity app segments %s on\n", id, id)
		return nil
	}
	fmt.Fprintf(a.Out, "app %s: segments are on since %s\n", id, app.Segments.Since.Format(time.RFC3339))
	return nil
}
