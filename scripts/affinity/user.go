package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/event"
)

func userCommand(t *tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "user",
		Short: "Delete a user",
	}, deleteUserCommand(t))
}

func deleteUserCommand(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "delete USER",
		Short: "Delete all that the engine has of a user",
		Long: "Delete all that the engine has of a user. From the answer on, no read counts an event that was received before; a task then\n" +
			"removes the events from the log. What the user does from now on starts a new profile: `affinity optout set` drops that too.\n" +
			"It reaches neither files that were exported, dumped or archived nor backups. The audit log records it. The key needs the\n" +
			"right deleteObject.",
		Example: "  affinity export ann --out ann.ndjson && affinity user delete ann",
		Args:    cli.Args("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			answer, err := c.DeleteProfile(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("delete user %s: %w", cli.Printable(args[0]), err)
			}
			_, err = fmt.Fprintf(t.out, "%s is deleted: nothing received up to %s counts\n", cli.Printable(args[0]), event.FormatTime(answer.DeletedUntil.UnixMilli()))
			return err
		},
	}
}
