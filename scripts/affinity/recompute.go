package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

const recomputesPath = "/1/recomputes"

// recomputeAnswer is what the engine says of a recompute.
type recomputeAnswer struct {
	jobAnswer
	StrategyVersion int64 `json:"strategyVersion"`
}

// errNoRecompute says that the app never had one.
var errNoRecompute = errors.New("the app has had no recompute: `affinity recompute start` starts one")

func (t *tool) recomputeCommand() *cobra.Command {
	group := cli.Group(&cobra.Command{
		Use:   "recompute",
		Short: "Store the profiles of all users anew: start, watch, cancel, list",
		Long: "Store the profiles of all users anew. A new strategy starts a recompute by itself, and so does every night; reads are under\n" +
			"the new strategy before it is done. The key needs the right admin.",
	})
	group.AddCommand(t.recomputeStartCommand(), &cobra.Command{
		Use:   "watch [ID]",
		Short: "Follow a recompute, the newest unless one is named, to its end",
		Long:  "Follow a recompute, the newest unless one is named, to its end: exit 0 when it is done, 1 when it failed, was superseded or cancelled.",
		Args:  cli.OptionalArg("ID"),
		RunE:  t.onRecompute(t.watchRecompute),
	}, &cobra.Command{
		Use:   "cancel [ID]",
		Short: "Cancel a recompute, the newest unless one is named",
		Args:  cli.OptionalArg("ID"),
		RunE:  t.onRecompute(t.cancelRecompute),
	}, &cobra.Command{
		Use:   "list",
		Short: "List the app's latest recomputes, the newest first",
		Args:  cli.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return t.listRecomputes(cmd.Context()) },
	})
	return group
}

func (t *tool) recomputeStartCommand() *cobra.Command {
	var onlyStale, watch bool
	cmd := &cobra.Command{
		Use:     "start",
		Short:   "Start a recompute; it takes the place of one under way",
		Example: "  affinity recompute start --watch\n  affinity recompute start --only-stale",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			job, err := startRecompute(cmd.Context(), c, onlyStale)
			if err != nil {
				return fmt.Errorf("start a recompute: %w", err)
			}
			fmt.Fprintf(t.err, "recompute %s is started\n", job.ID)
			if watch {
				return t.watchRecompute(cmd.Context(), c, job.ID)
			}
			_, err = fmt.Fprintln(t.out, job.ID)
			return err
		},
	}
	cmd.Flags().BoolVar(&onlyStale, "only-stale", false, "leave profiles alone that can be served as they are")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow it to its end")
	return cmd
}

// onRecompute runs a command on the recompute that its argument names, else on
// the newest.
func (t *tool) onRecompute(do func(context.Context, *client, string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := t.client()
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

func startRecompute(ctx context.Context, c *client, onlyStale bool) (recomputeAnswer, error) {
	order, err := json.Marshal(map[string]bool{"onlyStale": onlyStale})
	if err != nil {
		return recomputeAnswer{}, err
	}
	return readRecompute(c.do(ctx, http.MethodPost, recomputesPath, order))
}

func readRecompute(body []byte, err error) (recomputeAnswer, error) {
	var job recomputeAnswer
	if err != nil {
		return job, err
	}
	if err := json.Unmarshal(body, &job); err != nil || job.ID == "" || job.State == "" {
		return job, fmt.Errorf("the answer is not what an Affinity engine says of a recompute: %.200q", body)
	}
	return job, nil
}

func listRecomputes(ctx context.Context, c *client) ([]recomputeAnswer, error) {
	var list struct {
		Recomputes []recomputeAnswer `json:"recomputes"`
	}
	if err := c.get(ctx, recomputesPath, &list); err != nil {
		return nil, fmt.Errorf("list recomputes: %w", err)
	}
	return list.Recomputes, nil
}

func (t *tool) cancelRecompute(ctx context.Context, c *client, id string) error {
	job, err := readRecompute(c.do(ctx, http.MethodPost, recomputesPath+"/"+url.PathEscape(id)+"/cancel", []byte("{}")))
	if err != nil {
		return fmt.Errorf("cancel recompute %s: %w", cli.Printable(id), err)
	}
	_, err = fmt.Fprintf(t.out, "recompute %s is %s\n", cli.Printable(job.ID), cli.Printable(job.State))
	return err
}

func (t *tool) listRecomputes(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	jobs, err := listRecomputes(ctx, c)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		took := ""
		if job.FinishedAt != nil {
			took = "  took " + job.FinishedAt.Sub(job.StartedAt).Round(time.Second).String()
		}
		fmt.Fprintf(t.out, "%-32s  %-10s  strategy version %d  %d users, %d events  started %s%s\n", cli.Printable(job.ID), cli.Printable(job.State),
			job.StrategyVersion, job.Users, job.Events, job.StartedAt.UTC().Format(time.RFC3339), took)
		if job.Error != "" {
			fmt.Fprintf(t.out, "    %s\n", cli.Printable(job.Error))
		}
	}
	if len(jobs) == 0 {
		fmt.Fprintln(t.err, errNoRecompute)
	}
	return nil
}
