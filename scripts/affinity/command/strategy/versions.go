package strategy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func versionsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:     "list",
		Short:   "List the versions of the strategy, the newest first",
		Long:    "List the versions of the strategy, the newest first. The engine keeps the last 200 and all of the last 90 days.",
		Example: "  affinity strategy list",
		Args:    cli.Subcommand,
	}, "list the versions of the strategy", func(ctx context.Context, c *client.Client, _ []string) (api.StrategyVersions, error) {
		return c.Strategies().Versions(ctx)
	}, func(t *command.Tool, list api.StrategyVersions) error {
		return render.Versions(t.Out, list.Versions, render.NewPalette(cli.Colored(t.Out)))
	})
}

func diffCommand(t *command.Tool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [FROM] [TO]",
		Short: "Show what changed between two strategies",
		Long: "Show what changed from one strategy to another, each a version or a JSON file, - for standard input. Without TO it is\n" +
			"the active one, without FROM the version before it.",
		Example: "  affinity strategy diff\n  affinity strategy diff 3\n  affinity strategy diff 3 strategy.json",
		Args:    cobra.MaximumNArgs(2),
		PreRunE: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if n, err := strconv.ParseInt(arg, 10, 64); arg == "" || err == nil && n < 1 {
					return cli.Usagef("%q: want a version from 1 on, or a file", arg)
				}
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error { return diffVersions(ctx, t, c, args) }),
	}
	t.JSONFlag(cmd, "print the changes as JSON")
	return cmd
}

// side is one of two strategies to compare.
type side struct {
	name     string
	strategy strategy.Strategy
}

func diffVersions(ctx context.Context, t *command.Tool, c *client.Client, args []string) error {
	for len(args) < 2 {
		list, err := c.Strategies().Versions(ctx)
		if err != nil {
			return fmt.Errorf("list the versions of the strategy: %w", err)
		}
		if n := 2 - len(args); len(list.Versions) < n {
			return fmt.Errorf("the app has %s of the strategy, to compare takes %d", cli.Count(len(list.Versions), "version"), n)
		}
		if len(args) == 0 {
			args = []string{strconv.FormatInt(list.Versions[1].Version, 10)}
		}
		args = append(args, strconv.FormatInt(list.Versions[0].Version, 10))
	}
	from, err := readSide(ctx, t, c, args[0])
	if err != nil {
		return err
	}
	to, err := readSide(ctx, t, c, args[1])
	if err != nil {
		return err
	}
	changes, rescored := strategy.Diff(from.strategy, to.strategy), !from.strategy.SameScoring(to.strategy)
	if t.JSON {
		return printDiff(t.Out, args, changes, rescored)
	}
	return render.Changes(t.Out, from.name, to.name, changes, rescored, render.NewPalette(cli.Colored(t.Out)))
}

// readSide reads the strategy that an argument names.
func readSide(ctx context.Context, t *command.Tool, c *client.Client, arg string) (side, error) {
	if n, err := strconv.ParseInt(arg, 10, 64); err == nil {
		s, err := c.Strategies().Version(ctx, n)
		if err != nil {
			return side{}, fmt.Errorf("read version %d of the strategy: %w", n, err)
		}
		return side{fmt.Sprintf("version %d", n), s}, nil
	}
	text, err := t.ReadStrategy(arg)
	if err != nil {
		return side{}, err
	}
	s, err := strategy.Decode(text)
	if err != nil {
		return side{}, fmt.Errorf("the strategy %s: %w", arg, err)
	}
	return side{arg, s}, nil
}

func printDiff(out io.Writer, args []string, changes []strategy.Change, rescored bool) error {
	if changes == nil {
		changes = []strategy.Change{}
	}
	text, err := json.Marshal(struct {
		From          string            `json:"from"`
		To            string            `json:"to"`
		ScoringChange bool              `json:"scoringChange"`
		Changes       []strategy.Change `json:"changes"`
	}{args[0], args[1], rescored, changes})
	if err != nil {
		return err
	}
	return command.PrintRaw(out, text)
}

func restoreCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "restore VERSION",
		Short: "Set the strategy of an earlier version again",
		Long: "Set the strategy of an earlier version again, as a new version. Every read that begins 5 s later uses it.\n" +
			"affinity strategy diff shows before what it would change back.",
		Example: "  affinity strategy list\n  affinity strategy restore 3",
		Args:    cli.Args("VERSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || n < 1 {
				return cli.Usagef("%q: VERSION must be 1 or more", args[0])
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			if err := c.Strategies().Restore(cmd.Context(), n, nil); err != nil {
				return fmt.Errorf("restore version %d of the strategy: %w", n, err)
			}
			_, err = fmt.Fprintf(t.Out, "the strategy is that of version %d again: reads use it within 5 s, and stored profiles follow "+
				"(affinity recompute watch)\n", n)
			return err
		},
	}
}
