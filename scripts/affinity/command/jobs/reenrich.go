package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Reenrich returns the command reenrich.
func Reenrich(t *command.Tool) *cobra.Command {
	request := api.ReenrichRequest{}
	cmd := &cobra.Command{
		Use:   "reenrich",
		Short: "Fill in filters for events that arrived before their objects",
		Long: "Read all events within the retention whose objects the catalog did not know when the events arrived. Those whose\n" +
			"objects it knows now get the filters that the objects have now, and profiles follow within seconds. An app has one\n" +
			"re-enrichment under way at a time: a second start follows the first. Exit 1 if rows of the log could not be read.\n" +
			"A change of numeric bands starts one by itself; --bands is for events that were imported with filters of others.\n" +
			"Ctrl-C stops following; the re-enrichment continues. Requires a key with the permission admin.",
		Example: "  affinity reenrich --dry-run\n  affinity reenrich",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error {
			if request.DryRun && request.NumericBands {
				return cli.Usagef("--dry-run and --bands cannot both be given")
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error { return reenrich(ctx, t, c, request) }),
	}
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "count only and change nothing")
	cmd.Flags().BoolVar(&request.NumericBands, "bands", false, "also give events the current numeric bands of their index")
	cmd.AddCommand(&cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a re-enrichment that is under way",
		Args:  cli.Args("ID"),
		RunE: t.Tell("cancel re-enrichment %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			job, err := checkReenrichment(c.Jobs().CancelReenrichment(ctx, args[0]))
			return command.IsNow("re-enrichment", job.ID, job.State), err
		}),
	})
	return cmd
}

// reenrich starts a re-enrichment, or joins the one under way, and follows it to
// its end.
func reenrich(ctx context.Context, t *command.Tool, c *client.Client, request api.ReenrichRequest) error {
	job, err := checkReenrichment(c.Jobs().StartReenrichment(ctx, request))
	if err != nil {
		return fmt.Errorf("start a re-enrichment: %w", err)
	}
	if job.DryRun != request.DryRun {
		is := "changes events"
		if job.DryRun {
			is = "is a dry run"
		}
		return fmt.Errorf("re-enrichment %s is under way and %s: wait for its end, or run `affinity reenrich cancel %s`", job.ID, is, job.ID)
	}
	fmt.Fprintf(t.Err, "re-enrichment %s is under way\n", cli.Printable(job.ID))
	job, err = command.Follow(ctx, t, c, "watch re-enrichment "+job.ID, func(c *client.Client) (api.Reenrichment, error) {
		return checkReenrichment(c.Jobs().Reenrichment(ctx, job.ID))
	}, render.ReenrichProgress)
	if err != nil {
		return err
	}
	return printReenrichment(t, job)
}

// printReenrichment prints the outcome, and fails unless the job is done and read
// every row.
func printReenrichment(t *command.Tool, job api.Reenrichment) error {
	resolved := "resolved now"
	if job.DryRun {
		resolved = "would be resolved now"
	}
	picked := "unknown objects"
	if len(job.NumericBands) > 0 {
		picked += " or earlier numeric bands"
	}
	for _, fault := range job.Faults {
		fmt.Fprintln(t.Err, cli.Printable(fault))
	}
	_, err := fmt.Fprintf(t.Out, "%s read, %d with %s: %d %s, %d still unknown\n",
		cli.Count(job.Events, "event"), job.WithUnknownObjects, picked, job.Resolved, resolved, job.StillUnknown)
	err = errors.Join(err, command.Failure("re-enrichment "+job.ID, job.State, job.Error))
	if job.Faulty > 0 {
		err = errors.Join(err, fmt.Errorf("rows of the log that cannot be read and were left out: %d", job.Faulty))
	}
	return err
}

// checkReenrichment passes an answer on if it is a re-enrichment.
func checkReenrichment(job api.Reenrichment, err error) (api.Reenrichment, error) {
	if err == nil && (job.ID == "" || job.State == "") {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a re-enrichment: %+v", job)
	}
	return job, err
}
