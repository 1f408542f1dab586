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
	"github.com/affinityengine/affinity/shared/event"
)

// Identity returns the command identity.
func Identity(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "identity",
		Short: "Show, make and undo the links between the tokens of a person",
		Long: "Show, make and undo the links between the tokens of a person: the events of an anonymous token count for the user who has\n" +
			"signed in under it. The operator switches links on with `affinity app identity`. Requires a key with the permission admin.",
	}, showIdentityCommand(t), linkCommand(t), unlinkCommand(t), previewCommand(t))
}

func showIdentityCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use: "show USER", Short: "Show the links of a token: since when, by what, and what has become of them",
		Args:    command.UserArg,
		Example: "  affinity identity show ann",
	}, "links of %s", func(ctx context.Context, c *client.Client, args []string) (api.Identity, error) {
		return c.Profiles().Identity(ctx, args[0])
	}, showIdentity)
}

func linkCommand(t *command.Tool) *cobra.Command {
	reason := ""
	cmd := command.Show(t, &cobra.Command{
		Use: "link ANONYMOUS USER", Short: "Link an anonymous token to the user who has signed in under it, as of now",
		Args:    bothTokens,
		Example: "  affinity identity link anonymous-1 ann --reason \"asked by mail\"",
	}, "link of %s", func(ctx context.Context, c *client.Client, args []string) (api.Identity, error) {
		return c.Profiles().Link(ctx, api.LinkRequest{UserToken: args[0], AuthenticatedUserToken: args[1], Reason: reason})
	}, showIdentity)
	cmd.Flags().StringVar(&reason, "reason", "", "why, kept with the link")
	return cmd
}

func unlinkCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use: "unlink ANONYMOUS USER", Short: "Undo a link: both profiles are what they would be without", Args: bothTokens,
		Example: "  affinity identity unlink anonymous-1 ann",
	}, "link of %s", func(ctx context.Context, c *client.Client, args []string) (api.Unlinked, error) {
		return c.Profiles().Unlink(ctx, args[0], args[1])
	}, func(t *command.Tool, u api.Unlinked) error {
		_, err := fmt.Fprintf(t.Out, "unlinked; evidence received up to %s links them no more\n",
			event.FormatTime(u.UnlinkedUntil.UnixMilli()))
		return err
	})
}

// bothTokens takes an anonymous token and a user.
func bothTokens(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return cli.Usagef("want an anonymous token and the user who has signed in under it")
	}
	return nil
}

func showIdentity(t *command.Tool, i api.Identity) error {
	fmt.Fprintf(t.Out, "%s: role %s, %d links\n", cli.Printable(i.UserToken), i.Role, len(i.Links))
	if len(i.Links) == 0 {
		return nil
	}
	return cli.Table(t.Out, "ANONYMOUS\tUSER\tSINCE\tTO\tSIGNED IN\tSTATE\tSTRENGTH\tBY", i.Links, func(l api.Link) []any {
		to := "-"
		if l.To != nil {
			to = shortTime(*l.To)
		}
		by := l.By + " " + l.Event + l.MessageID + l.Reason // it has one of the three
		return []any{l.UserToken, l.AuthenticatedUserToken, shortTime(l.Since), to, shortTime(l.From), l.State,
			l.Strength, by}
	})
}

func shortTime(t api.Time) string { return t.UTC().Format(time.RFC3339) }
