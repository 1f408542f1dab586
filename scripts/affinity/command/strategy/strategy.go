// Package strategy holds the command strategy: it gets, previews, sets, compares and
// restores the strategy of an app, and suggests aliases and allowed values for it. It keeps nothing.
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

// Command returns the command strategy.
func Command(t *command.Tool) *cobra.Command {
	version := int64(0)
	get := &cobra.Command{
		Use:     "get",
		Short:   "Print the active strategy, or a version of it",
		Example: "  affinity strategy get > strategy.json\n  affinity strategy get --version 3",
		Args:    cli.Subcommand,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("version") && version < 1 {
				return cli.Usagef("--version %d: must be 1 or more", version)
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, _ []string) error {
			return printStrategy(ctx, c, t.Out, version)
		}),
	}
	get.Flags().Int64Var(&version, "version", 0, "the version to print (default: the active one)")
	options, ifVersion := client.SetOptions{}, int64(0)
	set := &cobra.Command{
		Use:   "set FILE",
		Short: "Set the strategy from a JSON file",
		Long: "Set the strategy from a JSON file, - for standard input. Every read that begins 5 s later uses it.\n" +
			"A file without personalizationImpact is sent with 50. A note is kept with the version: affinity strategy list shows it.\n" +
			"Names that can match nothing, such as a facet with a colon, are set too, with a warning.\n" +
			"With --if-version, nothing is set if another version is active: nothing that you have not seen is replaced.",
		Example: "  affinity strategy set strategy.json\n  affinity strategy set strategy.json --note 'brands count more before the sale'\n  affinity strategy set strategy.json --if-version 7",
		Args:    cli.Args("FILE"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if ifVersion < 0 {
				return cli.Usagef("--if-version %d: must be 0 or more", ifVersion)
			}
			if cmd.Flags().Changed("if-version") {
				options.If = &ifVersion
			}
			return nil
		},
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			strategy, err := t.ReadStrategy(args[0])
			if err != nil {
				return err
			}
			err = t.SetStrategy(ctx, func(ctx context.Context) error { return c.Strategies().SetJSON(ctx, strategy, options) })
			if err != nil {
				return fmt.Errorf("set the strategy: %w", err)
			}
			_, err = fmt.Fprintln(t.Out, "the strategy is set: reads use it within 5 s, and stored profiles follow "+
				"(affinity recompute watch)")
			return err
		}),
	}
	set.Flags().StringVar(&options.Note, "note", "", "why the strategy is set, at most 200 characters")
	set.Flags().Int64Var(&ifVersion, "if-version", 0,
		"the version that must be active, 0 if none was ever set (default: any)")
	return cli.Group(&cobra.Command{
		Use:   "strategy",
		Short: "Suggest, get, preview, set, compare or restore the strategy: how much each event and each facet counts",
	}, get, set, previewCommand(t), versionsCommand(t), diffCommand(t), restoreCommand(t), suggestCommand(t),
		suggestAliasesCommand(t), allowCommand(t))
}

// printStrategy prints a version of the strategy as the engine sent it, indented.
// Version 0 is the active strategy.
func printStrategy(ctx context.Context, c *client.Client, out io.Writer, version int64) error {
	var raw []byte
	var err error
	if ctx := client.WithRawAnswer(ctx, &raw); version == 0 {
		_, err = c.Strategies().Get(ctx)
	} else {
		_, err = c.Strategies().Version(ctx, version)
	}
	if err != nil {
		return fmt.Errorf("get the strategy: %w", err)
	}
	return command.PrintIndented(out, raw)
}

func previewCommand(t *command.Tool) *cobra.Command {
	sample := 0
	cmd := command.Show(t, &cobra.Command{
		Use:   "preview FILE",
		Short: "Show what a strategy would change",
		Long: "Show what a strategy from a JSON file, - for standard input, would change, and change nothing: for how many users of\n" +
			"a sample the order of values would change, and the order of 20 objects of the catalog, and which values would rise and fall\n" +
			"most, by their shares of a profile. A strategy that only counts in another unit changes nothing. --json " +
			"has scores too.",
		Example: "  affinity strategy preview strategy.json --sample 500",
		Args:    cli.Args("FILE"),
		PreRunE: func(*cobra.Command, []string) error { return cli.Within("sample", sample, 1, api.MaxPreviewSample) },
	}, "", func(ctx context.Context, c *client.Client, args []string) (api.Preview, error) {
		strategy, err := t.ReadStrategy(args[0])
		if err != nil {
			return api.Preview{}, err
		}
		p, err := c.Strategies().Preview(ctx, api.PreviewRequest{Strategy: strategy, Sample: &sample})
		if err != nil {
			return p, fmt.Errorf("preview the strategy: %w", err)
		}
		return p, nil
	}, func(t *command.Tool, p api.Preview) error {
		t.Warn(p.Warnings)
		return render.Preview(t.Out, p, render.NewPalette(cli.Colored(t.Out)))
	})
	cmd.Flags().IntVar(&sample, "sample", api.DefaultPreviewSample, "how many users to compute profiles of")
	return cmd
}

func versionsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "list",
		Short: "List the versions of the strategy, the newest first",
		Long: "List the versions of the strategy, the newest first. The engine keeps the last 200 and all of the " +
			"last 90 days.",
		Example: "  affinity strategy list",
		Args:    cli.Subcommand,
	}, "list the versions of the strategy", func(ctx context.Context, c *client.Client,
		_ []string) (api.StrategyVersions, error) {
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
		RunE: t.With(func(ctx context.Context, c *client.Client,
			args []string) error {
			return diffVersions(ctx, t, c, args)
		}),
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
	version := int64(0)
	return &cobra.Command{
		Use:   "restore VERSION",
		Short: "Set the strategy of an earlier version again",
		Long: "Set the strategy of an earlier version again, as a new version. Every read that begins 5 s later uses it.\n" +
			"affinity strategy diff shows before what it would change back.",
		Example: "  affinity strategy list\n  affinity strategy restore 3",
		Args:    cli.Args("VERSION"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if version, err = strconv.ParseInt(args[0], 10, 64); err != nil || version < 1 {
				return cli.Usagef("%q: VERSION must be 1 or more", args[0])
			}
			return nil
		},
		RunE: t.Tell("restore version %s of the strategy",
			func(ctx context.Context, c *client.Client, _ []string) (string, error) {
				err := t.SetStrategy(ctx, func(ctx context.Context) error { return c.Strategies().Restore(ctx, version, nil) })
				return fmt.Sprintf("the strategy is that of version %d again: reads use it within 5 s, and stored profiles follow "+
					"(affinity recompute watch)", version), err
			}),
	}
}
