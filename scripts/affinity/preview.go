package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// maxPreviewed is the most users the engine previews a strategy for.
const maxPreviewed = 1000

// previewAnswer is what POST /1/strategies/personalization/preview answers.
type previewAnswer struct {
	Sampled         int   `json:"sampled"`
	Known           int   `json:"known"`
	Changed         int   `json:"changed"`
	Unchanged       int   `json:"unchanged"`
	StrategyVersion int64 `json:"strategyVersion"`
	RankCorrelation *struct {
		Mean, Min, P10 float64
	} `json:"rankCorrelation"`
	Facets []struct {
		Facet  string
		Movers []struct {
			Value         string
			Before, After float64
			Users         int
		}
	} `json:"facets"`
	Examples []struct {
		UserToken       string           `json:"userToken"`
		RankCorrelation float64          `json:"rankCorrelation"`
		Before          []affinityAnswer `json:"before"`
		After           []affinityAnswer `json:"after"`
	} `json:"examples"`
}

type previewOptions struct {
	sample int
	json   bool
}

func (t *tool) previewCommand() *cobra.Command {
	o := previewOptions{}
	cmd := &cobra.Command{
		Use:   "preview FILE",
		Short: "Show what a strategy from a JSON file, - for standard input, would change",
		Long: "Show what a strategy from a JSON file, - for standard input, would change, and change nothing: how many profiles of a sample of\n" +
			"users, by how much their order, and which values would rise and fall most.",
		Example: "  affinity strategy preview strategy.json --sample 500",
		Args:    cli.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.sample < 1 || o.sample > maxPreviewed {
				return cli.Usagef("--sample %d: must be from 1 to %d", o.sample, maxPreviewed)
			}
			return t.previewStrategy(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().IntVar(&o.sample, "sample", 100, "how many users to compute profiles of")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the engine's answer as it is")
	return cmd
}

func (t *tool) previewStrategy(ctx context.Context, path string, o previewOptions) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	strategy, err := t.readStrategy(path)
	if err != nil {
		return err
	}
	order, err := json.Marshal(map[string]any{"strategy": json.RawMessage(strategy), "sample": o.sample})
	if err != nil {
		return fmt.Errorf("write the strategy of %s anew: %w", path, err)
	}
	body, err := c.do(ctx, http.MethodPost, strategyPath+"/preview", order)
	if err != nil {
		return fmt.Errorf("preview the strategy: %w", err)
	}
	if o.json {
		_, err := fmt.Fprintf(t.out, "%s\n", bytes.TrimSpace(body))
		return err
	}
	var p previewAnswer
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("read the preview, which is not what an Affinity engine sends: %w", err)
	}
	return drawPreview(t.out, p, newPalette(cli.Colored(t.out)))
}

// drawPreview writes a preview for people.
func drawPreview(out io.Writer, p previewAnswer, colors *palette) error {
	var text bytes.Buffer
	inForce := "no strategy is in force"
	if p.StrategyVersion > 0 {
		inForce = fmt.Sprintf("version %d is in force", p.StrategyVersion)
	}
	fmt.Fprintf(&text, "%s of %d profiles would change (%d users sampled; %s)\n", colors.bold(fmt.Sprint(p.Changed)), p.Known, p.Sampled, inForce)
	if r := p.RankCorrelation; r != nil {
		fmt.Fprintf(&text, "rank correlation: %.3f on average, %.3f or less for a tenth of the users, %.3f at least; 1 is the same order\n", r.Mean, r.P10, r.Min)
	}
	for _, f := range p.Facets {
		fmt.Fprintf(&text, "\n%s, mean scores:\n", cli.Printable(f.Facet))
		widest := 0
		for _, m := range f.Movers {
			widest = max(widest, len([]rune(cli.Printable(m.Value))))
		}
		for _, m := range f.Movers {
			fmt.Fprintf(&text, "  %-*s  %*s -> %-*s  %d users\n", widest, cli.Printable(m.Value), scoreWide, number(m.Before), scoreWide, number(m.After), m.Users)
		}
	}
	for i, e := range p.Examples {
		if i == 0 {
			fmt.Fprintf(&text, "\nthe most changed:\n")
		}
		fmt.Fprintf(&text, "  %s  rank correlation %.3f\n    before  %s\n    after   %s\n",
			colors.bold(cli.Printable(e.UserToken)), e.RankCorrelation, listAffinities(e.Before), listAffinities(e.After))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// listAffinities writes the first affinities of a profile in a line.
func listAffinities(list []affinityAnswer) string {
	const most = 5
	if len(list) == 0 {
		return "nothing"
	}
	var parts []string
	for _, a := range list[:min(most, len(list))] {
		parts = append(parts, label(a)+" "+number(a.Score))
	}
	if len(list) > most {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
}
