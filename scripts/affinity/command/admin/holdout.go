package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/score/experiment"
)

func (a *appTool) holdoutCommand() *cobra.Command {
	var share, seed string
	cmd := &cobra.Command{
		Use:   "holdout ID",
		Short: "Show or set which share of the users gets no personalization",
		Long: "Show or set which share of an app's users is held out. Orders, feeds and recommendations are then those of\n" +
			"a user without events, boosts are empty, and no segment or export of one has them. So the others can be\n" +
			"compared with them. Their events are kept, and their profiles stored: when it ends, personalization begins.\n\n" +
			"A hash of the seed and the user's token decides who is held out. With a larger share the same users stay held\n" +
			"out and others join them; another seed holds out others. A person of linked tokens is one user, by the token of\n" +
			"their first open link. Without --seed the holdout keeps its seed.\n\n" +
			"The change is in force five seconds later. Lists of segments are built again, until which queries answer 503.",
		Example: "  affinity app holdout shop\n" +
			"  affinity app holdout shop --share 5% --seed 2027\n" +
			"  affinity app holdout shop --share 0",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := cmd.Flags().Changed("share")
			if !set && seed != "" {
				return cli.Usagef("--seed needs --share: the share of the users to hold out")
			}
			to := experiment.Holdout{Seed: seed}
			if set {
				var err error
				if to.Share, err = parseShare(share); err != nil {
					return err
				}
			}
			return a.with(cmd, func(s engine) error { return a.holdout(cmd.Context(), s, args[0], to, set) })
		},
	}
	cmd.Flags().StringVar(&share, "share", "", "share of the users, such as 5% or 0.05; 0 for none, at most 20%")
	cmd.Flags().StringVar(&seed, "seed", "", "text that decides who is held out")
	return cmd
}

// parseShare reads a share of users: 0.05 or 5%.
func parseShare(text string) (float64, error) {
	number, inPercent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, cli.Usagef("--share %q: want a share of the users such as 5%% or 0.05", text)
	}
	if inPercent {
		share /= 100
	}
	return share, nil
}

func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 4, 64) + " %"
}

// holdout changes the holdout of an app if set says so, and prints it.
func (a *appTool) holdout(ctx context.Context, s engine, id string, to experiment.Holdout, set bool) error {
	app, err := s.App(ctx, id)
	if err != nil {
		return missingApp(err)
	}
	if set {
		if app, err = s.SetHoldout(ctx, id, to); err != nil {
			return fmt.Errorf("set the holdout of app %s: %w", id, missingApp(err))
		}
	}
	if !app.Holdout.On() {
		fmt.Fprintf(a.Out, "app %s holds nobody out; hold some users out with: affinity app holdout %s --share 5%%\n", id, id)
		return nil
	}
	fmt.Fprintf(a.Out, "app %s holds out %s of its users, by the seed %s\n", id, percent(app.Holdout.Share),
		cli.Printable(app.Holdout.Seed))
	return nil
}
