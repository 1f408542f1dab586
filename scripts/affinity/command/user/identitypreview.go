package user

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

func previewCommand(t *command.Tool) *cobra.Command {
	days := 0
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Say which links the events of the last days would have made, and change nothing",
		Long: "Read the app's log of the last days, and say which links its events would have made if the app had\n" +
			"linked tokens: how many tokens to how many users, who has the most, and which evidence is refused, with\n" +
			"an example each. Links may be off. The log does not say with which key an event came, so evidence of\n" +
			"keys that stand in pages counts, too; without --trust pages it would link nobody. Ctrl-C stops\n" +
			"following; the preview continues. Requires a key with the permission admin.",
		Example: "  affinity identity preview\n  affinity identity preview --days 7",
		Args:    cli.Subcommand,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("days") && (days < 1 || days > api.MaxPreviewDays) {
				return cli.Usagef("--days %d: must be from 1 to %d", days, api.MaxPreviewDays)
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error { return preview(ctx, t, c, days) }),
	}
	cmd.Flags().IntVar(&days, "days", api.DefaultPreviewDays, "how many days before now are read")
	t.JSONFlag(cmd, command.JSONDocument)
	cmd.AddCommand(listPreviewsCommand(t), &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a preview that is under way",
		Args:  cli.Args("ID"),
		RunE: t.Tell("cancel preview %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			j, err := c.Jobs().CancelIdentityPreview(ctx, args[0])
			return command.IsNow("preview", j.ID, j.State), err
		}),
	})
	return cmd
}

// preview starts a preview and follows it to its end.
func preview(ctx context.Context, t *command.Tool, c *client.Client, days int) error {
	j, err := c.Jobs().StartIdentityPreview(ctx, api.IdentityPreviewRequest{Days: days})
	if err != nil {
		return fmt.Errorf("start a preview: %w", err)
	}
	fmt.Fprintf(t.Err, "preview %s is under way\n", cli.Printable(j.ID))
	j, err = command.Follow(ctx, t, c, "watch preview "+j.ID, func(c *client.Client) (api.IdentityPreview, error) {
		return c.Jobs().IdentityPreview(ctx, j.ID)
	}, render.PreviewProgress)
	if err != nil {
		return err
	}
	if err := command.Failure("preview "+j.ID, j.State, j.Error); err != nil {
		return err
	}
	if j.Faulty > 0 {
		fmt.Fprintln(t.Err, command.FaultList(command.Unread(j.Faulty), j.Faults))
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, j)
	}
	return render.LinkPreview(t.Out, j)
}

func listPreviewsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use: "list", Short: "List the latest previews, the newest first", Args: cli.Subcommand,
	}, "list previews", func(ctx context.Context, c *client.Client, _ []string) (api.IdentityPreviews, error) {
		return c.Jobs().IdentityPreviews(ctx)
	}, func(t *command.Tool, list api.IdentityPreviews) error {
		if len(list.Previews) == 0 {
			fmt.Fprintln(t.Err, "the app has had no preview: `affinity identity preview` starts one")
			return nil
		}
		return cli.Table(t.Out, "ID\tSTATE\tDAYS\tUSERS\tEVENTS\tSTARTED", list.Previews, func(j api.IdentityPreview) []any {
			return []any{j.ID, j.State, j.Days, j.Users, j.Events, j.StartedAt.UTC().Format(time.RFC3339)}
		})
	})
}
