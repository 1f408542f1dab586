package jobs

import (
	"context"
	"errors"
	"fmt"
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
		RunE: onRecompute(t, func(ctx context.Context, c *client.Client,
			id string) error {
			return watchRecompute(ctx, t, c, id)
		}),
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
			_, err = fmt.Fprintln(t.Out, command.IsNow("recompute", job.ID, job.State))
			return err
		}),
	}
	list := command.Show(t, &cobra.Command{
		Use:   "list",
		Short: "List the app's latest recomputes, the newest first",
		Args:  cli.Subcommand,
	}, "list recomputes", func(ctx context.Context, c *client.Client, _ []string) (api.Recomputes, error) {
		return c.Jobs().Recomputes(ctx)
	}, printRecomputes)
	return cli.Group(&cobra.Command{
		Use:   "recompute",
		Short: "Recompute the stored profiles of all users: start, watch, cancel, list; or that of one: user",
		Long: "Recompute the stored profiles of all users. A new strategy starts a recompute by itself, and so do every night and the end of an import.\n" +
			"Reads use the new strategy before the recompute is done. Each counts the events of the users that it computes: after an\n" +
			"import, and with --only-stale, these are fewer than all, because profiles that are up to date are left alone.\n" +
			"Requires a key with the permission admin.",
	}, startRecomputeCommand(t), watch, cancel, list, refreshUserCommand(t))
}

func startRecomputeCommand(t *command.Tool) *cobra.Command {
	request, watch := api.RecomputeRequest{}, false
	cmd := &cobra.Command{
		Use:     "start",
		Short:   "Start a recompute; it supersedes one under way",
		Example: "  affinity recompute start --watch\n  affinity recompute start --only-stale\n  affinity recompute start --only-stale --fold --watch",
		Long: "Start a recompute; it supersedes one under way. With --fold it packs the history of every user too, so that the next\n" +
			"read or recompute of users with long logs is fast. An import does so by itself at its end.\n" +
			"With --full it also maintains the histories of all users, as a full recompute does that Cloud Scheduler starts.",
		Args: cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error {
			if request.Full && request.OnlyStale {
				return cli.Usagef("--full and --only-stale exclude each other: a full recompute computes every profile")
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error {
			job, err := checkRecompute(c.Jobs().StartRecompute(ctx, request))
			if err != nil {
				return fmt.Errorf("start a recompute: %w", err)
			}
			fmt.Fprintf(t.Err, "recompute %s started\n", cli.Printable(job.ID))
			if watch {
				return watchRecompute(ctx, t, c, job.ID)
			}
			_, err = fmt.Fprintln(t.Out, cli.Printable(job.ID))
			return err
		}),
	}
	cmd.Flags().BoolVar(&request.OnlyStale, "only-stale", false, "leave profiles alone that are up to date")
	cmd.Flags().BoolVar(&request.Full, "full", false, "compute every profile, and maintain all histories")
	cmd.Flags().BoolVar(&request.Fold, "fold", false, "pack the history of every user as well")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow it to its end")
	return cmd
}

func refreshUserCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "user USER",
		Short: "Compute the profile of one user from their events, store it and show it",
		Long: "Compute the profile of one user from their events, whatever is stored, store it and show it. A read does so by itself if the\n" +
			"stored profile is no longer valid.",
		Example: "  affinity recompute user ann",
		Args:    cli.Args("USER"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if !event.ValidUserToken(args[0]) {
				return cli.Usagef("USER %q: must be 1 to 129 letters, digits and = + / - _", args[0])
			}
			return nil
		},
	}, "", func(ctx context.Context, c *client.Client, args []string) (api.Profile, error) {
		p, err := c.Jobs().RefreshUser(ctx, args[0])
		return p, command.NoProfile(c, "compute", args[0], err)
	}, func(t *command.Tool, p api.Profile) error {
		return render.Profile(t.Out, p, "", nil, render.NewPalette(cli.Colored(t.Out)))
	})
}

// onRecompute runs do on the recompute that the argument names, else on the
// newest.
func onRecompute(t *command.Tool, do func(context.Context, *client.Client, string) error) func(*cobra.Command,
	[]string) error {
	return t.With(func(ctx context.Context, c *client.Client, args []string) error {
		if len(args) == 1 {
			if args[0] == "" {
				return cli.Usagef("ID must not be empty")
			}
			return do(ctx, c, args[0])
		}
		list, err := c.Jobs().Recomputes(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("list recomputes: %w", err)
		case len(list.Recomputes) == 0:
			return errNoRecompute
		}
		return do(ctx, c, list.Recomputes[0].ID)
	})
}

// checkRecompute passes an answer on if it is a recompute.
func checkRecompute(job api.Recompute, err error) (api.Recompute, error) {
	if err == nil && (job.ID == "" || job.State == "") {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a recompute: %+v", job)
	}
	return job, err
}

func printRecomputes(t *command.Tool, list api.Recomputes) error {
	if len(list.Recomputes) == 0 {
		fmt.Fprintln(t.Err, errNoRecompute)
	}
	for _, job := range list.Recomputes {
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
		_, err := fmt.Fprintf(t.Out, "%-32s  %-10s  strategy version %d  %s, %s  started %s%s\n%s",
			cli.Printable(job.ID), cli.Printable(string(job.State)),
			job.StrategyVersion, cli.Count(job.Users, "user"), cli.Count(job.Events, "event"),
			job.StartedAt.UTC().Format(time.RFC3339), took, failed)
		if err != nil {
			return err
		}
	}
	return nil
}

// watchRecompute follows a recompute to its end. It fails unless the recompute is
// done.
func watchRecompute(ctx context.Context, t *command.Tool, c *client.Client, id string) error {
	job, err := command.Follow(ctx, t, c, "watch recompute "+id, func(c *client.Client) (api.Recompute, error) {
		return checkRecompute(c.Jobs().Recompute(ctx, id))
	}, render.RecomputeProgress)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("recompute %s %s: %s, %s, %d of %s%s", cli.Printable(job.ID), command.Outcome(job.State),
		cli.Count(job.Users, "user"),
		cli.Count(job.Events, "event"), job.Shards.Done, cli.Count(job.Shards.Total, "shard"),
		render.Took(job.StartedAt, job.FinishedAt))
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
