package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Export returns the command export.
func Export(t *command.Tool) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "export USER",
		Short: "Write all that the engine counts of a user: their profile and every event",
		Long: "Write all that the engine counts of a user, one JSON document a line: who they are, whether events were deleted and what\n" +
			"they have opted out of, their profile, and every event in the retention, in the order of the log. `affinity import`\n" +
			"reads the file: into an empty app it restores the user exactly, also without the catalog. If the stream is cut off, the\n" +
			"command ends with exit code 1, and the last line of the file is not {\"exportEnd\":...}. The audit log records the export.\n" +
			"Requires a key with the permission admin.",
		Example: "  affinity export user-1 --out user-1.ndjson\n  affinity export user-1 | jq .exportedProfile",
		Args:    cli.Args("USER"),
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			end, err := exportTo(ctx, t, c, args[0], out)
			if errors.Is(err, client.ErrCut) {
				return fmt.Errorf("export user %s: %w (%s arrived; run the command again)", cli.Printable(args[0]), err,
					cli.Count(end.Events, "event"))
			}
			if err != nil {
				return fmt.Errorf("export user %s: %w", cli.Printable(args[0]), err)
			}
			fmt.Fprintf(t.Err, "complete: %s\n", cli.Count(end.Events, "event"))
			if end.Faults > 0 {
				return fmt.Errorf("export user %s: the engine could not read %s", cli.Printable(args[0]),
					cli.Count(end.Faults, "event"))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return cmd
}

func exportTo(ctx context.Context, t *command.Tool, c *client.Client, user, out string) (end api.ExportEnd, err error) {
	if out == "" {
		return c.Export(ctx, user, t.Out)
	}
	// Only its owner may read it: it is about a person.
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return c.Export(ctx, user, file)
}
