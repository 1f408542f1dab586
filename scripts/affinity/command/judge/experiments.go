package judge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
)

func startExperiment(t *command.Tool) *cobra.Command {
	var request api.SetExperiment
	var arms []string
	var start, end string
	coverage := 1.
	cmd := command.Show(t, &cobra.Command{
		Use:   "start NAME --arm ARM=VERSION --arm ARM=VERSION --metric METRIC",
		Short: "Begin an experiment, or change one",
		Long: "Begin an experiment: each user of an arm gets the version of the strategy that the arm names, at once. The\n" +
			"arms score as the active strategy does, and differ in ranking and personalizationImpact; the first is the\n" +
			"control. An app has one experiment at a time. Of one that runs, weights, --coverage, --end and --hypothesis\n" +
			"may change: give those again that are to stay.\n" +
			"The key needs the permission settings.",
		Example: "  affinity experiment start freshness --arm control=3 --arm fresh=4 --metric conversions\n" +
			"  affinity experiment start freshness --arm control=3:0.9 --arm fresh=4:0.1 --metric revenue --coverage 0.5 \\\n" +
			"    --end 2026-12-24T00:00:00Z --hypothesis 'New products sell better if they come first'",
		Args: cli.Args("NAME"),
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if request.Arms, err = parseArms(arms); err != nil {
				return err
			}
			if err := cli.Require(cmd, "metric", "conversions, revenue or clicks"); err != nil {
				return err
			}
			if request.StartAt, err = parseInstant("start", start); err != nil {
				return err
			}
			request.EndAt, err = parseInstant("end", end)
			request.Coverage = &coverage
			return err
		},
	}, "start experiment %s", func(ctx context.Context, c *client.Client, args []string) (api.Experiment, error) {
		return c.Experiments().Set(ctx, args[0], request)
	}, showExperiment)
	flags := cmd.Flags()
	flags.StringArrayVar(&arms, "arm", nil,
		"an arm: its name, the version of its strategy, and its weight, such as fresh=4:0.5 (default: equal weights)")
	flags.StringVar(&request.Metric, "metric", "", "what decides: conversions, revenue or clicks (required)")
	flags.Float64Var(&coverage, "coverage", coverage, "share of the users who take part")
	flags.StringVar(&request.Seed, "seed", "", "decides which arm each user is in (default: the name)")
	flags.StringVar(&start, "start", "", "when it begins, such as 2026-12-01T00:00:00Z (default: now)")
	flags.StringVar(&end, "end", "", "when it ends by itself (default: it does not)")
	flags.StringVar(&request.Hypothesis, "hypothesis", "", "what you expect")
	return cmd
}

// parseArms reads arms such as fresh=4:0.5. If no arm has a weight, all have the same.
func parseArms(texts []string) ([]api.ExperimentArm, error) {
	if len(texts) < 2 {
		return nil, cli.Usagef("--arm is required twice or more: the first is the control, such as control=3")
	}
	arms, weighed := make([]api.ExperimentArm, len(texts)), 0
	for i, text := range texts {
		name, rest, ok := strings.Cut(text, "=")
		version, weight, weighs := strings.Cut(rest, ":")
		n, err := strconv.ParseInt(version, 10, 64)
		if !ok || name == "" || err != nil {
			return nil, cli.Usagef("--arm %q: must be a name and a version, such as fresh=4 or fresh=4:0.5", text)
		}
		arms[i] = api.ExperimentArm{Name: name, Strategy: n, Weight: 1 / float64(len(texts))}
		if !weighs {
			continue
		}
		if arms[i].Weight, err = strconv.ParseFloat(weight, 64); err != nil {
			return nil, cli.Usagef("--arm %q: %q is no weight: must be a share, such as 0.5", text, weight)
		}
		weighed++
	}
	if weighed != 0 && weighed != len(texts) {
		return nil, cli.Usagef("--arm: give all arms a weight, or none")
	}
	return arms, nil
}

// parseInstant reads the value of a flag; nil if it is empty.
func parseInstant(flag, text string) (*api.Time, error) {
	if text == "" {
		return nil, nil
	}
	ms, err := event.ParseDate(text)
	if err != nil {
		return nil, cli.Usagef("--%s %q: %v", flag, text, err)
	}
	at := api.AtMillis(ms)
	return &at, nil
}

func listExperiments(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "list",
		Short: "List experiments, the one that began last first",
		Args:  cli.Subcommand,
	}, "list experiments", func(ctx context.Context, c *client.Client, _ []string) (api.Experiments, error) {
		return c.Experiments().List(ctx)
	}, func(t *command.Tool, list api.Experiments) error {
		if len(list.Experiments) == 0 {
			fmt.Fprintln(t.Err, "the app has no experiments: `affinity experiment start` begins one")
			return nil
		}
		return cli.Table(t.Out, "EXPERIMENT\tSTATE\tSTART\tMETRIC\tARMS", list.Experiments, func(e api.Experiment) []any {
			names := make([]string, len(e.Arms))
			for i, arm := range e.Arms {
				names[i] = arm.Name
			}
			return []any{e.Name, e.State, instant(e.StartAt), e.Metric, strings.Join(names, ", ")}
		})
	})
}

// oneExperiment is a command about an experiment that it names first.
func oneExperiment(t *command.Tool, verb string, cmd *cobra.Command,
	ask func(ctx context.Context, c client.Experiments, args []string) (api.Experiment, error)) *cobra.Command {
	return command.Show(t, cmd, verb+" experiment %s",
		func(ctx context.Context, c *client.Client, args []string) (api.Experiment, error) {
			return ask(ctx, c.Experiments(), args)
		}, showExperiment)
}

// showExperiment writes an experiment: a line, then one per arm.
func showExperiment(t *command.Tool, e api.Experiment) error {
	line := fmt.Sprintf("experiment %s, %s: from %s", e.Name, e.State, instant(e.StartAt))
	switch {
	case e.StoppedAt != nil:
		line += " to " + instant(*e.StoppedAt)
	case e.EndAt != nil:
		line += " to " + instant(*e.EndAt)
	}
	line += fmt.Sprintf(", %g %% of the users, by %s per user", e.Coverage*100, e.Metric)
	if e.Hypothesis != "" {
		line += ": " + e.Hypothesis
	}
	fmt.Fprintln(t.Out, cli.Printable(line))
	return cli.Table(t.Out, "ARM\tSTRATEGY\tWEIGHT\t", e.Arms, func(arm api.ExperimentArm) []any {
		promoted := ""
		if arm.Name == e.Promoted {
			promoted = "promoted"
		}
		return []any{arm.Name, arm.Strategy, fmt.Sprintf("%.4g %%", arm.Weight*100), promoted}
	})
}

func instant(at api.Time) string { return at.UTC().Format(time.RFC3339) }
