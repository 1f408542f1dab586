// Package strategy holds the command strategy: it gets, previews, sets, compares and
// restores the strategy of an app, and suggests aliases for it. It keeps nothing.
package strategy

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
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
	note, ifVersion := "", int64(0)
	set := &cobra.Command{
		Use:   "set FILE",
		Short: "Set the strategy from a JSON file",
		Long: "Set the strategy from a JSON file, - for standard input. Every read that begins 5 s later uses it.\n" +
			"A file without personalizationImpact is sent with 50. A note is kept with the version: affinity strategy list shows it.\n" +
			"With --if-version, nothing is set if another version is active: nothing that you have not seen is replaced.",
		Example: "  affinity strategy set strategy.json\n  affinity strategy set strategy.json --note 'brands count more before the sale'\n  affinity strategy set strategy.json --if-version 7",
		Args:    cli.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if ifVersion < 0 {
				return cli.Usagef("--if-version %d: must be 0 or more", ifVersion)
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			strategy, err := t.ReadStrategy(args[0])
			if err != nil {
				return err
			}
			options := client.SetOptions{Note: note}
			if cmd.Flags().Changed("if-version") {
				options.If = &ifVersion
			}
			if err := c.Strategies().SetJSON(cmd.Context(), strategy, options); err != nil {
				return fmt.Errorf("set the strategy: %w", err)
			}
			_, err = fmt.Fprintln(t.Out, "the strategy is set: reads use it within 5 s, and stored profiles follow (affinity recompute watch)")
			return err
		},
	}
	set.Flags().StringVar(&note, "note", "", "why the strategy is set, at most 200 characters")
	set.Flags().Int64Var(&ifVersion, "if-version", 0, "the version that must be active, 0 if none was ever set (default: any)")
	return cli.Group(&cobra.Command{
		Use:   "strategy",
		Short: "Get, preview, set, compare or restore the strategy: how much each event and each facet counts",
	}, get, set, previewCommand(t), versionsCommand(t), diffCommand(t), restoreCommand(t), suggestAliasesCommand(t))
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
			"most, by their shares of a profile. A strategy that only counts in another unit changes nothing. --json has scores too.",
		Example: "  affinity strategy preview strategy.json --sample 500",
		Args:    cli.Args("FILE"),
		PreRunE: func(*cobra.Command, []string) error {
			if sample < 1 || sample > api.MaxPreviewSample {
				return cli.Usagef("--sample %d: must be from 1 to %d", sample, api.MaxPreviewSample)
			}
			return nil
		},
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
		return render.Preview(t.Out, p, render.NewPalette(cli.Colored(t.Out)))
	})
	cmd.Flags().IntVar(&sample, "sample", api.DefaultPreviewSample, "how many users to compute profiles of")
	return cmd
}
