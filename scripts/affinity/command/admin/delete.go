package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
)

// deleteOptions are the flags of `affinity app delete`.
type deleteOptions struct{ yes, again bool }

func (a *appTool) deleteCommand() *cobra.Command {
	o, leave := deleteOptions{}, false
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete an app and everything of it, for ever",
		Long: "Delete an app: its keys stop working within five seconds, and a job deletes its events, profiles, catalog, statistics,\n" +
			"usage, strategies and jobs. After a quarter of an hour (half a minute on a local engine) the job deletes what late\n" +
			"requests have written, and looks for the id everywhere: it fails if it finds it. The command waits for the end; ended\n" +
			"early, it may be repeated, and it starts a failed job again. Messages of the app that still wait in Pub/Sub are dropped.\n\n" +
			"The id cannot be used again for 30 days. Dead letters, logs and backups keep what they hold until they expire: see\n" +
			"\"Delete an app\" in functions/docs/operate/customers.md. --again repeats the deletion of a deleted app, as after a restore.",
		Example: "  affinity app delete shop\n  affinity app delete shop --yes",
		Args:    idArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(s engine) error {
				err := a.delete(cmd.Context(), s, args[0], o)
				if err != nil || leave {
					return err
				}
				return a.watchDeletion(cmd.Context(), s, args[0])
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.yes, "yes", false, "do not ask for the id")
	flags.BoolVar(&o.again, "again", false, "delete a deleted app again")
	flags.BoolVar(&leave, "no-wait", false, "start the job and do not wait for its end")
	a.queueFlag(cmd)
	return cmd
}

func (a *appTool) queueFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.queue, "queue", "",
		"queue of the worker, on a deployed engine: terraform output -raw tasks_queue")
}

// delete asks for the id, ends the app and starts the job.
func (a *appTool) delete(ctx context.Context, s engine, id string, o deleteOptions) error {
	_, err := s.App(ctx, id)
	if errors.Is(err, config.ErrNotFound) {
		_, err = s.Status(ctx, id)
		o.yes = true // the app is gone already
	}
	if err != nil {
		return fmt.Errorf("delete app %s: %w", id, missingApp(err))
	}
	if !o.yes {
		fmt.Fprintf(a.Err, "This deletes all data of app %s for ever. Type its id to go on: ", id)
		typed, err := bufio.NewReader(a.In).ReadString('\n')
		if strings.TrimSpace(typed) != id {
			return errors.Join(fmt.Errorf("app %s is not deleted: its id was not typed", id), ignoreEOF(err))
		}
	}
	status, err := s.Delete(ctx, id, o.again)
	if err != nil {
		return fmt.Errorf("delete app %s (run the command again): %w", id, missingApp(err))
	}
	if !status.Ended() {
		fmt.Fprintf(a.Err, "app %s has ended: its keys stop working within 5 seconds, and a job deletes what it stored\n", id)
	}
	return nil
}

// watchDeletion prints how far a deletion is until it has ended.
func (a *appTool) watchDeletion(ctx context.Context, s operations, id string) error {
	shown := ""
	for {
		status, err := s.Status(ctx, id)
		if err != nil {
			return fmt.Errorf("watch the deletion of app %s: %w", id, err)
		}
		switch {
		case status.Ended():
			_, err := fmt.Fprintf(a.Out, "app %s is deleted with its %s, and its id is found nowhere; it can be used "+
				"again from %s\n", id,
				cli.Count(status.Rows, "row"), status.ReusableFrom.UTC().Format(time.RFC3339))
			return err
		case status.State == job.Failed:
			return fmt.Errorf("app %s is not wholly deleted, run the command again: %s", id, status.Error)
		}
		if now := deletionProgress(status); now != shown {
			fmt.Fprintln(a.Err, now)
			shown = now
		}
		if err := gax.Sleep(ctx, a.WatchEvery); err != nil {
			return fmt.Errorf("%w; the deletion goes on, and the command may be repeated", err)
		}
	}
}

func deletionProgress(s deletion.Status) string {
	switch {
	case s.State == job.Planning:
		return "waiting until every function knows that the app has ended, and planning"
	case time.Now().Before(s.WaitsUntil):
		return fmt.Sprintf("%s deleted; looking for what late requests have written at %s",
			cli.Count(s.Deleted, "row"), s.WaitsUntil.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s deleted, %d of %s done", cli.Count(s.Deleted, "row"), s.Done, cli.Count(s.Shards, "shard"))
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// workerURL stands in tasks of this tool. The queue replaces its host with the
// worker's.
const workerURL = "https://worker"

// openTasks connects with the operator's Google credentials.
func openTasks(ctx context.Context, c taskqueue.Config) (queue.Queue, func() error, error) {
	if c.Queue == "" {
		return nil, nil, cli.Usagef("--queue is required on a deployed engine: `terraform output -raw tasks_queue` prints it")
	}
	tasks, err := taskqueue.Open(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return tasks, tasks.Close, nil
}

// deletions calls do with the runner of deletions of a deployed engine, which can
// start jobs if start is true.
func (s *deployedStore) deletions(ctx context.Context, start bool,
	do func(*deletion.Runner) (deletion.Status, error)) (status deletion.Status, err error) {
	r := job.Runner{
		Jobs:        job.Detailed(job.In(s.documents, deletion.Collection), s.details, deletion.Collection),
		Propagation: 2 * config.TTL, Now: time.Now,
		Log: slog.New(slog.DiscardHandler),
	}
	if start {
		tasks, closeTasks, err := s.queue(ctx)
		if err != nil {
			return status, err
		}
		defer func() { err = errors.Join(err, closeTasks()) }()
		r.Queue = tasks
	}
	return do(deletion.New(r, s.Store, nil, nil, deletion.Late))
}

// Delete ends an app and starts the job that deletes it, or resumes that job. again deletes
// what may have come back to an app that is deleted, as from a backup.
func (s *deployedStore) Delete(ctx context.Context, appID string, again bool) (deletion.Status, error) {
	return s.deletions(ctx, true, func(r *deletion.Runner) (deletion.Status, error) { return r.Delete(ctx, appID, again) })
}

// Status returns how far the deletion of an app is.
func (s *deployedStore) Status(ctx context.Context, appID string) (deletion.Status, error) {
	return s.deletions(ctx, false, func(r *deletion.Runner) (deletion.Status, error) { return r.Status(ctx, appID) })
}
