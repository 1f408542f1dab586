package user

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

func regionCommand(t *command.Tool) *cobra.Command {
	var to string
	cmd := command.Show(t, &cobra.Command{
		Use:   "region USER",
		Short: "Show in which region a user lives, or move them to another one",
		Long: "Show in which region a user lives, or move them to another one, with the anonymous tokens that are linked\n" +
			"to them. Events and reads of the user go on while they move. What they leave is removed some twenty minutes\n" +
			"later. The app must let users live there: `affinity app residency`. Requires a key with the permission admin.",
		Example: "  affinity user region ann\n  affinity user region ann --to us",
		Args:    command.UserArg,
	}, "region of %s", func(ctx context.Context, c *client.Client, args []string) (api.UserRegion, error) {
		if to != "" {
			return c.Profiles().SetRegion(ctx, args[0], to)
		}
		return c.Profiles().Region(ctx, args[0])
	}, showRegion)
	cmd.Flags().StringVar(&to, "to", "", "the region to which the user moves")
	return cmd
}

func showRegion(t *command.Tool, r api.UserRegion) error {
	text := fmt.Sprintf("%s lives in %s", cli.Printable(r.UserToken), r.Region)
	if r.Region == "" {
		text = cli.Printable(r.UserToken) + " lives in the only region of this engine"
	}
	if r.Since != nil {
		text += " since " + r.Since.UTC().Format(time.RFC3339)
	}
	if r.MovingTo != "" {
		text += ", and moves to " + r.MovingTo
	}
	_, err := fmt.Fprintln(t.Out, text)
	return err
}
