package segment

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

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
			if limit < 1 || limit > api.MaxValues {
				return cli.Usagef("--limit %d: must be from 1 to %d", limit, api.MaxValues)
			}
			if sample < 0 || sample > api.MaxValuesSample {
				return cli.Usagef("--sample %d: must be from 0 to %d", sample, api.MaxValuesSample)
			}
			return nil
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
		fmt.Fprintf(t.Err, "no profile has a value of %s, as of %s\n", cli.Printable(values.Facet), render.Timestamp(values.AsOf))
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
	_, err := fmt.Fprintf(t.Out, "%d of %s, as of %s\n", len(values.Values), cli.Count(int64(values.Total), "value"), render.Timestamp(values.AsOf))
	if s := values.Sample; err == nil && s != nil && !s.All {
		_, err = fmt.Fprintf(t.Out, "events are estimated from %s at random\n", cli.Count(int64(s.Users), "user"))
	}
	return err
}
