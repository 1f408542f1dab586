package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

func (a *appTool) segmentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "segments ID [on|off]",
		Short: "Show or set whether an app's users can be found by their affinities",
		Long: "Show or set whether an app's users can be found by their affinities. Segments are off in a new app. While they are on,\n" +
			"each refresh of a profile writes one small row more, and the engine keeps an index of the profiles. Turn them on when\n" +
			"every function runs this version: an earlier one would change profiles and not say so. The first index is built once\n" +
			"every function knows of the change.",
		Example: "  affinity app segments shop on --project my-project",
		Args: func(cmd *cobra.Command, args []string) error {
			names := []string{"ID"}
			if len(args) > 1 {
				names = append(names, "on|off")
			}
			return cli.Args(names...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkID(args[0]); err != nil {
				return cli.Usagef("%v", err)
			}
			turn := ""
			if len(args) == 2 {
				if turn = args[1]; turn != "on" && turn != "off" {
					return cli.Usagef("%q: must be on or off", turn)
				}
			}
			return a.with(cmd, func(s appStore) error { return a.segments(cmd.Context(), s, args[0], turn) })
		},
	}
}

// segments turns the segments of an app on or off unless turn is empty, and prints
// whether they are on.
func (a *appTool) segments(ctx context.Context, s appStore, id, turn string) error {
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
