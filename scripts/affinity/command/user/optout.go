package user

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

// OptOut returns the command optout.
func OptOut(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "optout",
		Short: "Opt a user out of being personalized, or in again",
		Long: "Opt a user out of events of all types or some, or in again. Each change deletes what the engine has of the user.\n" +
			"Requires a key with the permission deleteObject.",
	}, setOptOutCommand(t), clearOptOutCommand(t), showOptOutCommand(t))
}

func setOptOutCommand(t *command.Tool) *cobra.Command {
	var types []string
	cmd := optOutOf(t, "set USER", "Delete a user's past, and drop their events from now on",
		func(ctx context.Context, c *client.Client, user string) (api.OptOut, error) {
			var request api.OptOutRequest
			for _, name := range types {
				request.EventTypes = append(request.EventTypes, event.Type(name))
			}
			return c.Profiles().OptOut(ctx, user, request)
		})
	cmd.Long = "Delete a user's past, and drop their events from now on: of all types, or of those in --type. Reads answer as for an\n" +
		"unknown user if the user is out of all types. The engine counts dropped events with refused ones.\n" +
		"The types replace those of an earlier opt-out. With the same --type again, nothing is deleted."
	cmd.Example = "  affinity optout set ann\n  affinity optout set ann --type view --type click"
	cmd.Flags().StringArrayVar(&types, "type", nil,
		"type of events to drop: view, click or conversion; repeat for several (default all)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range types {
			if _, ok := event.TypesOf(event.Type(name)); !ok {
				return cli.Usagef("--type %q: must be view, click or conversion", name)
			}
		}
		return nil
	}
	return cmd
}

func clearOptOutCommand(t *command.Tool) *cobra.Command {
	cmd := optOutOf(t, "clear USER", "End a user's opt-out; what they do from now on counts",
		func(ctx context.Context, c *client.Client, user string) (api.OptOut, error) {
			return c.Profiles().OptIn(ctx, user)
		})
	cmd.Example = "  affinity optout clear ann"
	return cmd
}

func showOptOutCommand(t *command.Tool) *cobra.Command {
	cmd := optOutOf(t, "show USER", "Show which types of events a user is out of",
		func(ctx context.Context, c *client.Client, user string) (api.OptOut, error) {
			return c.Profiles().OptedOut(ctx, user)
		})
	cmd.Example = "  affinity optout show ann"
	return cmd
}

// optOutOf is a command that sends one request about a user's opt-out and shows the
// answer.
func optOutOf(t *command.Tool, use, short string,
	do func(context.Context, *client.Client, string) (api.OptOut, error)) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use: use, Short: short, Args: command.UserArg,
	}, "opt-out of %s", func(ctx context.Context, c *client.Client, args []string) (api.OptOut, error) {
		return do(ctx, c, args[0])
	}, showOptOut)
}

func showOptOut(t *command.Tool, o api.OptOut) error {
	types, _ := event.TypesOf(o.EventTypes...)
	text := "has not opted out"
	if types == event.AllTypes {
		text = "has opted out of all events"
	} else if o.OptedOut {
		text = "has opted out of events of the types " + types.String()
	}
	if o.DeletedUntil != nil {
		text += "; nothing received up to " + event.FormatTime(o.DeletedUntil.UnixMilli()) + " counts"
	}
	_, err := fmt.Fprintf(t.Out, "%s %s\n", cli.Printable(o.UserToken), text)
	return err
}
