package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// defaultImpact is the personalizationImpact of a strategy file that has none: profiles do not depend on it, only how much those who
// rank by them let them weigh.
const defaultImpact = 50

const strategyPath = "/1/strategies/personalization"

func (t *tool) strategyCommand() *cobra.Command {
	group := cli.Group(&cobra.Command{
		Use:   "strategy",
		Short: "Get, try or set the strategy of an app: what each event and each facet counts",
	})
	group.AddCommand(&cobra.Command{
		Use:     "get",
		Short:   "Print the strategy in force",
		Example: "  affinity strategy get > strategy.json",
		Args:    cli.Subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return t.getStrategy(cmd.Context()) },
	}, &cobra.Command{
		Use:   "set FILE",
		Short: "Set the strategy from a JSON file, - for standard input",
		Long: "Set the strategy from a JSON file, - for standard input. Every read that begins 5 s later is under it.\n" +
			"A file without personalizationImpact is sent with 50.",
		Example: "  affinity strategy set strategy.json",
		Args:    cli.Args("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return t.setStrategyFile(cmd.Context(), args[0]) },
	}, t.previewCommand())
	return group
}

func (t *tool) getStrategy(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	body, err := c.do(ctx, http.MethodGet, strategyPath, nil)
	if err != nil {
		return fmt.Errorf("get the strategy: %w", err)
	}
	return t.printJSON(body)
}

func (t *tool) setStrategyFile(ctx context.Context, path string) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	strategy, err := t.readStrategy(path)
	if err != nil {
		return err
	}
	if err := setStrategy(ctx, c, strategy); err != nil {
		return fmt.Errorf("set the strategy: %w", err)
	}
	fmt.Fprintln(t.out, "the strategy is set: every read that begins in 5 s or later is under it, and stored profiles follow (affinity recompute watch)")
	return nil
}

func setStrategy(ctx context.Context, c *client, strategy []byte) error {
	_, err := c.do(ctx, http.MethodPost, strategyPath, strategy)
	return err
}

// readStrategy reads a strategy file and completes it; what else is wrong in it the engine says.
func (t *tool) readStrategy(path string) (strategy []byte, err error) {
	file, err := t.openInput(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	strategy, err = io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the strategy %s: %w", path, err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(strategy, &keys); err != nil {
		return nil, fmt.Errorf("the strategy %s is no JSON object: %w", path, err)
	}
	if _, ok := keys["personalizationImpact"]; ok || keys == nil {
		return strategy, nil
	}
	fmt.Fprintf(t.err, "the strategy %s has no personalizationImpact: it is sent with %d\n", path, defaultImpact)
	keys["personalizationImpact"] = json.RawMessage(fmt.Sprint(defaultImpact))
	return json.Marshal(keys)
}

// printJSON prints a document, indented.
func (t *tool) printJSON(body []byte) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(body), "", "  "); err != nil {
		return fmt.Errorf("the engine's answer is no JSON: %w", err)
	}
	_, err := fmt.Fprintln(t.out, indented.String())
	return err
}
