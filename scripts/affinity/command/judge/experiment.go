package judge

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/judge/lift"
)

// Experiment returns the command experiment.
func Experiment(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "experiment",
		Short: "Compare strategies live: say how many days it takes, begin it, report it, end it",
	}, sizeCommand(t), reportCommand(t), reportsCommand(t), startExperiment(t), listExperiments(t),
		oneExperiment(t, "show", &cobra.Command{
			Use:   "show NAME",
			Short: "Show an experiment and its arms",
			Args:  cli.Args("NAME"),
		}, func(ctx context.Context, c client.Experiments, args []string) (api.Experiment, error) {
			return c.Get(ctx, args[0])
		}),
		oneExperiment(t, "stop", &cobra.Command{
			Use:   "stop NAME",
			Short: "End an experiment: all users get the active strategy, and it never goes on",
			Args:  cli.Args("NAME"),
		}, func(ctx context.Context, c client.Experiments, args []string) (api.Experiment, error) {
			return c.Stop(ctx, args[0])
		}),
		oneExperiment(t, "promote an arm of", &cobra.Command{
			Use:     "promote NAME ARM",
			Short:   "Make the strategy of an arm the active one, and end the experiment",
			Example: "  affinity experiment promote freshness fresh",
			Args:    cli.Args("NAME", "ARM"),
		}, func(ctx context.Context, c client.Experiments, args []string) (api.Experiment, error) {
			return c.Promote(ctx, args[0], args[1])
		}))
}

// sized is what size prints as JSON.
type sized struct {
	lift.Needs
	Words string `json:"words"`
}

func sizeCommand(t *command.Tool) *cobra.Command {
	test := lift.Test{Arms: 2, Control: 0.5}
	cmd := &cobra.Command{
		Use:   "size --base SHARE --effect SHARE --daily N",
		Short: "Say how many days an experiment needs to show a difference",
		Long: "Say how many days an experiment needs to show a difference. It is arithmetic: no engine is asked.\n" +
			"The days are those after which four of five experiments with such a difference are decided by the\n" +
			"always-valid interval of the report, which may be read every day. An experiment may take less:\n" +
			"what people did in the days before it makes the interval narrower. Of revenue, --spread says how much\n" +
			"amounts differ between buyers: 1 if their standard deviation is as large as their mean.",
		Example: "  affinity experiment size --base 0.02 --effect 0.05 --daily 4000\n" +
			"  affinity experiment size --base 0.02 --spread 1.5 --effect 0.1 --daily 40000 --control 0.1 --json",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, required := range [][2]string{
				{"base", "which share of the people convert today, such as 0.02"},
				{"effect", "which difference it has to show, such as 0.05 for 5 %"},
				{"daily", "how many new people come on a day"},
			} {
				if err := cli.Require(cmd, required[0], required[1]); err != nil {
					return err
				}
			}
			needs, err := lift.Size(test)
			if err != nil {
				return cli.Usagef("--%v", err)
			}
			words := test.Words(needs)
			if t.JSON {
				return cli.PrintJSON(t.Out, sized{needs, words})
			}
			_, err = fmt.Fprintln(t.Out, words)
			return err
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&test.Base, "base", 0, "share of the people who click, convert or buy today")
	flags.Float64Var(&test.Effect, "effect", 0, "relative difference that the experiment has to show")
	flags.Float64Var(&test.Daily, "daily", 0, "new people a day, in all arms")
	flags.Float64Var(&test.Spread, "spread", 0,
		"of revenue: the standard deviation of the amounts of buyers over their mean")
	flags.IntVar(&test.Arms, "arms", test.Arms, "arms, with the control")
	flags.Float64Var(&test.Control, "control", test.Control,
		"share of the people in the control; the other arms share the rest")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}
