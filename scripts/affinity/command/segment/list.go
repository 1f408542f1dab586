package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

func listSegmentsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "list",
		Short: "List the saved segments with their sizes, and the latest builds of the lists",
		Args:  cli.Subcommand,
	}, "list segments", func(ctx context.Context, c *client.Client, _ []string) (api.Segments, error) {
		return c.Segments().List(ctx)
	}, printSegments)
}

func printSegments(t *command.Tool, list api.Segments) error {
	if len(list.Segments) == 0 {
		fmt.Fprintln(t.Err, "the app has no saved segments: `affinity segment save` makes one")
	} else {
		err := cli.Table(t.Out, "SEGMENT\tUSERS\tDAY\tSET", list.Segments, func(s api.Segment) []any {
			users, day := "-", "-"
			if n := len(s.Sizes); n > 0 {
				users, day = s.Sizes[n-1].Users.String(), s.Sizes[n-1].Day
			}
			return []any{s.Name, users, day, render.Timestamp(s.SetAt)}
		})
		if err != nil {
			return err
		}
	}
	if list.Lists == nil {
		fmt.Fprintln(t.Err, "the lists that queries read are not built yet: `affinity segment refresh` builds them")
		return nil
	}
	_, err := fmt.Fprintf(t.Out, "lists of %s, built %s; changes since are read with each query\n",
		cli.Count(list.Lists.Users, "user"), render.Timestamp(list.Lists.BuiltAt))
	return err
}

func showSegmentCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "show NAME",
		Short: "Show the condition of a saved segment, and its size on each day",
		Args:  cli.Args("NAME"),
	}, "show segment %s", func(ctx context.Context, c *client.Client, args []string) (api.Segment, error) {
		return checkSegment(c.Segments().Get(ctx, args[0]))
	}, showSegment)
}

func deleteSegmentCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a saved segment; profiles stay as they are",
		Args:  cli.Args("NAME"),
		RunE: t.Tell("delete segment %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			_, err := c.Segments().Delete(ctx, args[0])
			return fmt.Sprintf("segment %s is deleted", cli.Printable(args[0])), err
		}),
	}
}

func refreshSegmentsCommand(t *command.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "refresh",
		Short: "Build the lists that queries read, and follow the build to its end",
		Long: "Build the lists that queries read, and follow the build to its end. A build runs every night. Answers are exact without\n" +
			"it; a refresh makes queries faster after many changes. If another build takes its place,\n" +
			"the command follows that one. Requires a key with the permission admin.",
		Args: cli.Subcommand,
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error { return refreshSegments(ctx, t, c) }),
	}
	t.JSONFlag(cmd, command.JSONUsage)
	return cmd
}

// refreshSegments starts a build and follows it to its end.
func refreshSegments(ctx context.Context, t *command.Tool, c *client.Client) error {
	job, err := c.Segments().Refresh(ctx)
	if err == nil && (job.ID == "" || job.State == "") {
		err = fmt.Errorf("the answer is not what an Affinity engine sends about a build: %+v", job)
	}
	if err != nil {
		return fmt.Errorf("refresh segments: %w", err)
	}
	fmt.Fprintf(t.Err, "build %s is under way\n", cli.Printable(job.ID))
	job, err = command.Follow(ctx, t, c, "watch build "+job.ID, func(c *client.Client) (api.SegmentBuild, error) {
		list, err := c.Segments().List(ctx)
		if err != nil {
			return job, err
		}
		i := slices.IndexFunc(list.Builds, func(b api.SegmentBuild) bool { return b.ID == job.ID })
		if i < 0 {
			return job, fmt.Errorf("the engine no longer lists build %s", job.ID)
		}
		if list.Builds[i].State == api.JobSuperseded && i > 0 { // the newest are first
			fmt.Fprintf(t.Err, "build %s takes its place\n", cli.Printable(list.Builds[0].ID))
			i = 0
		}
		job = list.Builds[i]
		return job, nil
	}, render.SegmentProgress)
	if err != nil {
		return err
	}
	if t.JSON {
		err = cli.PrintJSON(t.Out, job)
	} else {
		_, err = fmt.Fprintf(t.Out, "lists of %s%s\n", cli.Count(job.Users, "user"),
			render.Took(job.StartedAt, job.FinishedAt))
	}
	if job.Faulty > 0 {
		fmt.Fprintln(t.Err, command.Unread(job.Faulty))
	}
	return errors.Join(err, command.Failure("build "+job.ID, job.State, job.Error))
}

func exportSegmentCommand(t *command.Tool) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Write all users of a saved segment, as of now, one JSON document a line",
		Long: "Write all users of a saved segment, as of now and in no order, one JSON document a line. A job finds them; the engine\n" +
			"keeps its file for 7 days. The audit log records the export. Requires a key with the permission admin.",
		Example: "  affinity segment export nike --out nike.ndjson\n  affinity segment export nike | jq -r .userToken",
		Args:    cli.Args("NAME"),
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			job, err := exportSegment(ctx, t, c, args[0])
			if err == nil {
				err = downloadSegment(ctx, t, c, job, out)
			}
			if err != nil {
				return fmt.Errorf("export segment %s: %w", cli.Printable(args[0]), err)
			}
			fmt.Fprintf(t.Err, "complete: %s as of %s\n", cli.Count(*job.Users, "user"), render.Timestamp(*job.AsOf))
			return nil
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return cmd
}

// exportSegment starts an export and follows it to its end.
func exportSegment(ctx context.Context, t *command.Tool, c *client.Client,
	name string) (job api.SegmentExport, err error) {
	if job, err = c.Segments().StartExport(ctx, name); err != nil {
		return job, err
	}
	fmt.Fprintf(t.Err, "export %s is under way\n", cli.Printable(job.ID))
	job, err = command.Follow(ctx, t, c, "", func(c *client.Client) (api.SegmentExport, error) {
		return c.Segments().Export(ctx, job.ID)
	}, func(job api.SegmentExport) render.Progress {
		return render.Progress{State: job.State, Wait: api.Wait{Place: job.Place}}
	})
	switch {
	case err != nil:
		return job, err
	case job.State != api.JobDone:
		return job, fmt.Errorf("export %s %s: %s", cli.Printable(job.ID), command.Outcome(job.State),
			cli.Printable(job.Error))
	case job.Users == nil || job.AsOf == nil:
		return job, fmt.Errorf("the answer is not what an Affinity engine sends about an export: %+v", job)
	}
	return job, nil
}

// downloadSegment writes the file of an export.
func downloadSegment(ctx context.Context, t *command.Tool, c *client.Client, job api.SegmentExport,
	out string) (err error) {
	var to io.Writer = t.Out
	if out != "" {
		// Only its owner may read it: it is about persons.
		file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		to = file
	}
	return c.Segments().File(ctx, job.ID, *job.Users, to)
}

// Values returns the command values.
func Values(t *command.Tool) *cobra.Command {
	facet, limit, sample := "", api.DefaultValues, defaultValuesSample
	cmd := command.Show(t, &cobra.Command{
		Use:   "values --facet FACET",
		Short: "List the values of a facet by users, and count their events",
		Long: "List the values of a facet by the number of users who have them in their profiles, as of the last build of the lists of\n" +
			"segments, and how many events have each value. The events are those of a random sample of users: exact if the app has\n" +
			"no more users, else estimated. An event counts once for each of its objects that has the value. The operator switches\n" +
			"segments on for an app with `affinity app segments APP on`.",
		Example: "  affinity values --facet brand\n  affinity values --facet brand --sample 1000",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if facet == "" {
				return cli.Usagef("--facet is required: the facet whose values to list")
			}
			return cmp.Or(cli.Within("limit", limit, 1, api.MaxValues), cli.Within("sample", sample, 0, api.MaxValuesSample))
		},
	}, "", func(ctx context.Context, c *client.Client, _ []string) (api.Values, error) {
		values, err := c.Segments().Values(ctx, facet, limit, sample)
		if err != nil {
			return values, fmt.Errorf("list values of %s: %w", cli.Printable(facet), err)
		}
		return values, nil
	}, printValues)
	flags := cmd.Flags()
	flags.StringVar(&facet, "facet", "", "facet whose values to list")
	flags.IntVar(&limit, "limit", limit, "values to list")
	flags.IntVar(&sample, "sample", sample, "users whose events are counted, at random; 0: none")
	return cmd
}

// defaultValuesSample is how many users the command samples without --sample.
const defaultValuesSample = 300

// eventsText writes a number of events, which is an estimate unless it is exact.
func eventsText(events *int64, exact bool) string {
	switch {
	case events == nil:
		return "-"
	case exact:
		return fmt.Sprint(*events)
	}
	return fmt.Sprintf("about %d", *events)
}

func printValues(t *command.Tool, values api.Values) error {
	if len(values.Values) == 0 {
		fmt.Fprintf(t.Err, "no profile has a value of %s, as of %s\n", cli.Printable(values.Facet),
			render.Timestamp(values.AsOf))
		return nil
	}
	table := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	if values.Sample == nil {
		fmt.Fprintln(table, "VALUE\tUSERS")
	} else {
		fmt.Fprintln(table, "VALUE\tUSERS\tEVENTS")
	}
	for _, v := range values.Values {
		fmt.Fprintf(table, "%s\t%s", cli.Printable(v.Value), v.Users)
		if values.Sample != nil {
			fmt.Fprint(table, "\t"+eventsText(v.Events, values.Sample.All))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.Out, "%d of %s, as of %s\n", len(values.Values),
		cli.Count(int64(values.Total), "value"), render.Timestamp(values.AsOf))
	if s := values.Sample; err == nil && s != nil && !s.All {
		_, err = fmt.Fprintf(t.Out, "events are estimated from %s at random\n", cli.Count(int64(s.Users), "user"))
	}
	return err
}
