package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	domain "github.com/affinityengine/affinity/shared/score/strategy"
)

// defaultImpact is the personalizationImpact of a strategy file without one. The
// engine requires the field but its profiles do not depend on it.
const defaultImpact = 50

func strategyCommand(t *tool) *cobra.Command {
	version := int64(0)
	get := &cobra.Command{
		Use:     "get",
		Short:   "Print the active strategy, or a version of it",
		Example: "  affinity strategy get > strategy.json\n  affinity strategy get --version 3",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("version") && version < 1 {
				return cli.Usagef("--version %d: must be 1 or more", version)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			return printStrategy(cmd.Context(), c, t.out, version)
		},
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
			c, err := t.client()
			if err != nil {
				return err
			}
			strategy, err := t.readStrategy(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("if-version") {
				err = c.SetStrategyIf(cmd.Context(), strategy, note, ifVersion)
			} else {
				err = c.SetNotedStrategyJSON(cmd.Context(), strategy, note)
			}
			if err != nil {
				return fmt.Errorf("set the strategy: %w", err)
			}
			_, err = fmt.Fprintln(t.out, "the strategy is set: reads use it within 5 s, and stored profiles follow (affinity recompute watch)")
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
		_, err = c.Strategy(ctx)
	} else {
		_, err = c.StrategyVersion(ctx, version)
	}
	if err != nil {
		return fmt.Errorf("get the strategy: %w", err)
	}
	return printIndented(out, raw)
}

// readStrategy reads a strategy file and adds the personalizationImpact if it is
// missing. The engine checks everything else.
func (t *tool) readStrategy(path string) (json.RawMessage, error) {
	text, added, err := t.completeStrategy(path)
	if added {
		fmt.Fprintf(t.err, "the strategy %s has no personalizationImpact: it is sent with %d\n", path, defaultImpact)
	}
	return text, err
}

// setStrategy sets the strategy of a file, if one is given, and waits for a busy engine.
func (t *tool) setStrategy(ctx context.Context, c *client.Client, path string) error {
	if path == "" {
		return nil
	}
	strategy, err := t.readStrategy(path)
	if err != nil {
		return err
	}
	return t.sendStrategy(ctx, c, strategy)
}

// sendStrategy sets a strategy that has been read, if there is one. Without a client it
// checks the strategy.
func (t *tool) sendStrategy(ctx context.Context, c *client.Client, strategy json.RawMessage) error {
	if strategy == nil {
		return nil
	}
	if c == nil { // to be checked
		if _, err := domain.Decode(strategy); err != nil {
			return fmt.Errorf("the strategy: %w", err)
		}
		return nil
	}
	if err := t.patient(c).SetStrategyJSON(ctx, strategy); err != nil {
		return fmt.Errorf("set the strategy: %w", err)
	}
	return nil
}

// completeStrategy reads a strategy file. added reports that the file has no
// personalizationImpact and text has the default one.
func (t *tool) completeStrategy(path string) (text json.RawMessage, added bool, err error) {
	strategy, err := t.readFile(path)
	if err != nil {
		return nil, false, fmt.Errorf("read the strategy: %w", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(strategy, &keys); err != nil {
		return nil, false, fmt.Errorf("the strategy %s is not a JSON object: %w", path, err)
	}
	if _, ok := keys["personalizationImpact"]; ok || keys == nil {
		return strategy, false, nil
	}
	keys["personalizationImpact"] = json.RawMessage(fmt.Sprint(defaultImpact))
	text, err = json.Marshal(keys)
	return text, true, err
}

func previewCommand(t *tool) *cobra.Command {
	sample, asJSON := 0, false
	cmd := &cobra.Command{
		Use:   "preview FILE",
		Short: "Show what a strategy would change",
		Long: "Show what a strategy from a JSON file, - for standard input, would change, and change nothing: for how many users of\n" +
			"a sample the order of values would change, and the order of 20 objects of the catalog, and which values would rise and fall\n" +
			"most, by their shares of a profile. A strategy that only counts in another unit changes nothing. --json has scores too.",
		Example: "  affinity strategy preview strategy.json --sample 500",
		Args:    cli.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sample < 1 || sample > api.MaxPreviewSample {
				return cli.Usagef("--sample %d: must be from 1 to %d", sample, api.MaxPreviewSample)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			strategy, err := t.readStrategy(args[0])
			if err != nil {
				return err
			}
			return preview(cmd.Context(), c, t.out, api.PreviewRequest{Strategy: strategy, Sample: &sample}, asJSON)
		},
	}
	cmd.Flags().IntVar(&sample, "sample", api.DefaultPreviewSample, "how many users to compute profiles of")
	cmd.Flags().BoolVar(&asJSON, "json", false, jsonUsage)
	return cmd
}

func preview(ctx context.Context, c *client.Client, out io.Writer, request api.PreviewRequest, asJSON bool) error {
	var raw []byte
	p, err := c.PreviewStrategy(client.WithRawAnswer(ctx, &raw), request)
	if err != nil {
		return fmt.Errorf("preview the strategy: %w", err)
	}
	if asJSON {
		return printRaw(out, raw)
	}
	return render.Preview(out, p, render.NewPalette(cli.Colored(out)))
}
