package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

// Crowd returns the command crowd.
func Crowd(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "crowd",
		Short: "Build, list and cancel crowd statistics, which rankings use",
		Long: "Build and list crowd statistics: how often events name an object, which objects follow each other, and how many\n" +
			"objects carry each filter. A build runs every night, at the end of an import, and after a\n" +
			"load of objects into an index that has no statistics or grows by a tenth. Requires a key with the\n" +
			"permission recommendation.",
	}, buildCrowdCommand(t), crowdStatusCommand(t), cancelCrowdCommand(t))
}

func buildCrowdCommand(t *command.Tool) *cobra.Command {
	request := api.CrowdRequest{}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the statistics of all indexes, or of one, and follow the build to its end",
		Long: "Build the statistics of all indexes, or of one, and follow the build to its end. A newer build supersedes one that\n" +
			"builds nothing more. Exit 0 when it is done, 1 if it failed, was superseded or cancelled. Ctrl-C stops following;\n" +
			"the build continues.",
		Example: "  affinity crowd build\n  affinity crowd build --index products --json",
		Args:    cli.Subcommand,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("index") && request.Index == "" {
				return cli.Usagef("--index must not be empty: leave it out to build the statistics of all indexes")
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error { return buildCrowd(ctx, t, c, request) }),
	}
	cmd.Flags().StringVar(&request.Index, "index", "", "index to build the statistics of (default all)")
	t.JSONFlag(cmd, command.JSONUsage)
	return cmd
}

func cancelCrowdCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a build; rankings keep the statistics that they use",
		Args:  cli.Args("ID"),
		RunE: t.Tell("cancel build %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			job, err := checkCrowdBuild(c.Jobs().CancelCrowd(ctx, args[0]))
			return command.IsNow("build", job.ID, job.State), err
		}),
	}
}

// buildCrowd starts a build and follows it to its end.
func buildCrowd(ctx context.Context, t *command.Tool, c *client.Client, request api.CrowdRequest) error {
	job, err := checkCrowdBuild(c.Jobs().BuildCrowd(ctx, request))
	if err != nil {
		return fmt.Errorf("build crowd statistics: %w", err)
	}
	fmt.Fprintf(t.Err, "build %s is under way\n", cli.Printable(job.ID))
	job, err = command.Follow(ctx, t, c, "watch build "+job.ID, func(c *client.Client) (api.CrowdBuild, error) {
		return findCrowdBuild(ctx, c, job.ID)
	}, render.CrowdProgress)
	if err != nil {
		return err
	}
	if t.JSON {
		err = cli.PrintJSON(t.Out, job)
	} else {
		_, err = fmt.Fprintf(t.Out, "%s of %s%s: statistics of %s%s\n", cli.Count(job.Events, "event"),
			cli.Count(job.Users, "user"),
			sampled(job.Sampled), indexList(job.Indexes), render.Took(job.StartedAt, job.FinishedAt))
	}
	if job.WithUnknownObjects > 0 {
		fmt.Fprintf(t.Err, "events that name objects which the catalog does not know: %d; such objects do not count\n", job.WithUnknownObjects)
	}
	if job.Faulty > 0 {
		fmt.Fprintln(t.Err, command.FaultList(command.Unread(job.Faulty), job.Faults))
	}
	return errors.Join(err, command.Failure("build "+job.ID, job.State, job.Error))
}

// findCrowdBuild returns the build with an id. A sampled build takes the place of
// one that has read too many events.
func findCrowdBuild(ctx context.Context, c *client.Client, id string) (api.CrowdBuild, error) {
	crowd, err := c.Jobs().Crowd(ctx)
	if err != nil {
		return api.CrowdBuild{}, err
	}
	find := func(id string) int {
		return slices.IndexFunc(crowd.Builds, func(b api.CrowdBuild) bool { return b.ID == id })
	}
	i := find(id)
	if sampled := find(id + "-sampled"); sampled >= 0 {
		i = sampled
	}
	if i < 0 {
		return api.CrowdBuild{}, fmt.Errorf("the engine no longer lists build %s: `affinity crowd status` lists the "+
			"latest ones", id)
	}
	return checkCrowdBuild(crowd.Builds[i], nil)
}

// checkCrowdBuild passes an answer on if it is a build.
func checkCrowdBuild(job api.CrowdBuild, err error) (api.CrowdBuild, error) {
	if err == nil && (job.ID == "" || job.State == "") {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a build of crowd statistics: %+v", job)
	}
	return job, err
}

func sampled(is bool) string {
	if is {
		return " (a sample)"
	}
	return ""
}

func indexList(indexes []string) string {
	if len(indexes) > 5 {
		return fmt.Sprintf("%d indexes", len(indexes))
	}
	return cli.Printable(strings.Join(indexes, ", "))
}

func crowdStatusCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "status",
		Short: "List the statistics that rankings use, and the latest builds",
		Args:  cli.Subcommand,
	}, "list crowd statistics", func(ctx context.Context, c *client.Client, _ []string) (api.Crowd, error) {
		return c.Jobs().Crowd(ctx)
	}, printCrowd)
}

// printCrowd prints the statistics of each index, and the builds that are not
// among them.
func printCrowd(t *command.Tool, crowd api.Crowd) error {
	if len(crowd.Generations) == 0 {
		fmt.Fprintln(t.Err, "the app has no crowd statistics: `affinity crowd build` builds them")
	} else {
		err := cli.Table(t.Out, "INDEX\tAS OF\tEVENTS\tUSERS\tSTATE", crowd.Generations, func(g api.CrowdGeneration) []any {
			return []any{g.Index, event.FormatTime(g.AsOf.UnixMilli()), g.Events,
				fmt.Sprint(g.Users) + sampled(g.Sampled), g.State}
		})
		if err != nil {
			return err
		}
	}
	for _, b := range crowd.Builds {
		if b.Faulty > 0 {
			what := fmt.Sprintf("build %s of %s: %s", cli.Printable(b.ID), indexList(b.Indexes), command.Unread(b.Faulty))
			if _, err := fmt.Fprintln(t.Out, command.FaultList(what, b.Faults)); err != nil {
				return err
			}
		}
		if b.State == api.JobDone || !b.State.Ended() {
			continue
		}
		err := command.Failure(fmt.Sprintf("build %s of %s", b.ID, indexList(b.Indexes)), b.State, b.Error)
		if _, err := fmt.Fprintln(t.Out, cli.Printable(err.Error())); err != nil {
			return err
		}
	}
	return nil
}
