package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

// errNoRecompute is the error for an app that never had a recompute.
var errNoRecompute = errors.New("the app has had no recompute: `affinity recompute start` starts one")

// Recompute returns the command recompute.
func Recompute(t *command.Tool) *cobra.Command {
	watch := &cobra.Command{
		Use:   "watch [ID]",
		Short: "Follow a recompute to its end, the newest unless ID names one",
		Long: "Follow a recompute to its end, the newest unless ID names one. Exit 0 when it is done, 1 if it failed, was superseded\n" +
			"or cancelled. Ctrl-C stops following; the recompute continues.",
		Args: cli.OptionalArg("ID"),
		RunE: onRecompute(t, func(ctx context.Context, c *client.Client, id string) error { return watchRecompute(ctx, t, c, id) }),
	}
	cancel := &cobra.Command{
		Use:   "cancel [ID]",
		Short: "Cancel a recompute, the newest unless ID names one",
		Args:  cli.OptionalArg("ID"),
		RunE: onRecompute(t, func(ctx context.Context, c *client.Client, id string) error {
			job, err := checkRecompute(c.Jobs().CancelRecompute(ctx, id))
			if err != nil {
				return fmt.Errorf("cancel recompute %s: %w", id, err)
			}
			_, err = fmt.Fprintf(t.Out, "recompute %s is %s\n", cli.Printable(job.ID), cli.Printable(string(job.State)))
			return err
		}),
	}
	listJSON := false
	list := &cobra.Command{
		Use:   "list",
		Short: "List the app's latest recomputes, the newest first",
		Args:  cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := t.Client()
			if err != nil {
				return err
			}
			var raw []byte
			jobs, err := listRecomputes(client.WithRawAnswer(cmd.Context(), &raw), c)
			if err != nil {
				return err
			}
			if listJSON {
				return command.PrintRaw(t.Out, raw)
			}
			if len(jobs) == 0 {
				fmt.Fprintln(t.Err, errNoRecompute)
			}
			return printRecomputes(t.Out, jobs)
		},
	}
	list.Flags().BoolVar(&listJSON, "json", false, command.JSONUsage)
	return cli.Group(&cobra.Command{
		Use:   "recompute",
		Short: "Recompute the stored profiles of all users: start, watch, cancel, list; or that of one: user",
		Long: "Recompute the stored profiles of all users. A new strategy starts a recompute by itself, and so do every night and the end of an import.\n" +
			"Reads use the new strategy before the recompute is done. Requires a key with the permission admin.",
	}, startRecomputeCommand(t), watch, cancel, list, refreshUserCommand(t))
}

func startRecomputeCommand(t *command.Tool) *cobra.Command {
	request, watch := api.RecomputeRequest{}, false
	cmd := &cobra.Command{
		Use:     "start",
		Short:   "Start a recompute; it supersedes one under way",
		Example: "  affinity recompute start --watch\n  affinity recompute start --only-stale\n  affinity recompute start --only-stale --fold --watch",
		Long: "Start a recompute; it supersedes one under way. With --fold it packs the history of every user too, so that the next\n" +
			"read or recompute of users with long logs is fast. An import does so by itself a minute after its last events.\n" +
			"With --full it also maintains the histories of all users, as a full recompute does that Cloud Scheduler starts.",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if request.Full && request.OnlyStale {
				return cli.Usagef("--full and --only-stale exclude each other: a full recompute computes every profile")
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			job, err := checkRecompute(c.Jobs().StartRecompute(cmd.Context(), request))
			if err != nil {
				return fmt.Errorf("start a recompute: %w", err)
			}
			fmt.Fprintf(t.Err, "recompute %s started\n", cli.Printable(job.ID))
			if watch {
				return watchRecompute(cmd.Context(), t, c, job.ID)
			}
			_, err = fmt.Fprintln(t.Out, cli.Printable(job.ID))
			return err
		},
	}
	cmd.Flags().BoolVar(&request.OnlyStale, "only-stale", false, "leave profiles alone that are up to date")
	cmd.Flags().BoolVar(&request.Full, "full", false, "compute every profile, and maintain all histories")
	cmd.Flags().BoolVar(&request.Fold, "fold", false, "pack the history of every user as well")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow it to its end")
	return cmd
}

func refreshUserCommand(t *command.Tool) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "user USER",
		Short: "Compute the profile of one user from their events, store it and show it",
		Long: "Compute the profile of one user from their events, whatever is stored, store it and show it. A read does so by itself if the\n" +
			"stored profile is no longer valid.",
		Example: "  affinity recompute user ann",
		Args:    cli.Args("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !event.ValidUserToken(args[0]) {
				return cli.Usagef("USER %q: must be 1 to 129 letters, digits and = + / - _", args[0])
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			var raw []byte
			p, err := c.Jobs().RefreshUser(client.WithRawAnswer(cmd.Context(), &raw), args[0])
			if command.StatusOf(err) == http.StatusNotFound {
				return command.NoProfile(c, args[0], err)
			}
			if err != nil {
				return fmt.Errorf("compute the profile of %s: %w", args[0], err)
			}
			if asJSON {
				return command.PrintRaw(t.Out, raw)
			}
			return render.Profile(t.Out, p, "", render.NewPalette(cli.Colored(t.Out)))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, command.JSONUsage)
	return cmd
}

// onRecompute runs do on the recompute that the argument names, else on the
// newest.
func onRecompute(t *command.Tool, do func(context.Context, *client.Client, string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := t.Client()
		if err != nil {
			return err
		}
		if len(args) == 1 {
			if args[0] == "" {
				return cli.Usagef("ID must not be empty")
			}
			return do(cmd.Context(), c, args[0])
		}
		jobs, err := listRecomputes(cmd.Context(), c)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			return errNoRecompute
		}
		return do(cmd.Context(), c, jobs[0].ID)
	}
}

// checkRecompute passes an answer on if it is a recompute.
func checkRecompute(job api.Recompute, err error) (api.Recompute, error) {
	if err == nil && (job.ID == "" || job.State == "") {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a recompute: %+v", job)
	}
	return job, err
}

func listRecomputes(ctx context.Context, c *client.Client) ([]api.Recompute, error) {
	list, err := c.Jobs().Recomputes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list recomputes: %w", err)
	}
	return list.Recomputes, nil
}

func printRecomputes(out io.Writer, jobs []api.Recompute) error {
	for _, job := range jobs {
		took := ""
		if job.FinishedAt != nil {
			took = "  took " + job.FinishedAt.Sub(job.StartedAt.Time).Round(time.Second).String()
		}
		if !job.State.Ended() {
			took = render.Before(job.Place) + render.EstimatedEnd(job.Wait)
		}
		failed := ""
		if job.Error != "" {
			failed = "    " + cli.Printable(job.Error) + "\n"
		}
		_, err := fmt.Fprintf(out, "%-32s  %-10s  strategy version %d  %s, %s  started %s%s\n%s", cli.Printable(job.ID), cli.Printable(string(job.State)),
			job.StrategyVersion, cli.Count(job.Users, "user"), cli.Count(job.Events, "event"), job.StartedAt.UTC().Format(time.RFC3339), took, failed)
		if err != nil {
			return err
		}
	}
	return nil
}

// watchRecompute follows a recompute to its end. It fails unless the recompute is
// done.
func watchRecompute(ctx context.Context, t *command.Tool, c *client.Client, id string) error {
	var job api.Recompute
	c = t.Patient(c)
	err := command.WatchJob(ctx, t, func() (_ render.Progress, err error) {
		job, err = checkRecompute(c.Jobs().Recompute(ctx, id))
		return render.RecomputeProgress(job), err
	})
	if err != nil {
		return fmt.Errorf("watch recompute %s: %w", id, err)
	}
	text := fmt.Sprintf("recompute %s %s: %s, %s, %d of %s%s", cli.Printable(job.ID), command.Outcome(job.State), cli.Count(job.Users, "user"),
		cli.Count(job.Events, "event"), job.Shards.Done, cli.Count(job.Shards.Total, "shard"), render.Took(job.StartedAt, job.FinishedAt))
	if job.FoldedUsers > 0 {
		text += "\nfolded the histories of " + cli.Count(job.FoldedUsers, "user")
	}
	if job.Faulty > 0 {
		text += "\n" + command.FaultList(cli.Count(job.Faulty, "user")+" could not be computed or stored", job.Faults)
	}
	if job.State == api.JobDone {
		_, err := fmt.Fprintln(t.Out, text)
		return err
	}
	if job.Error != "" {
		text += ": " + job.Error
	}
	return errors.New(text)
}
