package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Index returns the command index.
func Index(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "index",
		Short: "Show or set the settings of an index: its facets, their numeric bands, and which are private",
	}, indexShowCommand(t), indexSetCommand(t), indexBandsCommand(t))
}

func indexShowCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "show INDEX",
		Short: "Print the settings of an index as JSON",
		Long: "Print the settings of an index as JSON, {} if none were ever set. Requires a key with the " +
			"permission settings.",
		Example: "  affinity index show products > settings.json",
		Args:    cli.Args("INDEX"),
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			var raw []byte
			if _, err := c.Catalog().Settings(client.WithRawAnswer(ctx, &raw), args[0]); err != nil {
				return fmt.Errorf("get the settings of %s: %w", cli.Printable(args[0]), err)
			}
			return command.PrintIndented(t.Out, raw)
		}),
	}
}

func indexSetCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "set INDEX FILE",
		Short: "Set settings of an index from a JSON file",
		Long: "Set settings of an index from a JSON file, - for standard input: attributesForFaceting, numericBands and\n" +
			"privateFacets. What the file does not have stays as it is. Requires a key with the permission settings.",
		Example: "  affinity index set products settings.json",
		Args:    cli.Args("INDEX", "FILE"),
		RunE: t.With(func(ctx context.Context, c *client.Client, args []string) error {
			text, err := t.ReadFile(args[1])
			if err != nil {
				return fmt.Errorf("read the settings: %w", err)
			}
			var settings api.Settings
			if err := json.Unmarshal(text, &settings); err != nil {
				return fmt.Errorf("the settings %s are not those of an index: %w", args[1], err)
			}
			return setSettings(ctx, t, c, args[0], settings)
		}),
	}
}

func indexBandsCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "bands INDEX FACET=NUMBERS...",
		Short: "Give facets numeric bands, or take them away",
		Long: "Give facets of an index numeric bands: price=0,50,100 makes the values <0, 0-50, 50-100 and 100+. An empty list,\n" +
			"price=, takes the bands of a facet away. Other facets keep theirs. The events in the log get the new bands by a\n" +
			"re-enrichment, which starts ten seconds later; `affinity reenrich` follows it. Requires a key with the " +
			"permission settings.",
		Example: "  affinity index bands products price=0,50,100\n  affinity index bands products price=",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := parseBands(args[1:])
			if err != nil {
				return err
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			settings, err := c.Catalog().Settings(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("get the settings of %s: %w", cli.Printable(args[0]), err)
			}
			bands := map[string][]float64{}
			maps.Copy(bands, settings.NumericBands)
			for facet, numbers := range changes {
				if bands[facet] = numbers; len(numbers) == 0 {
					delete(bands, facet)
				}
			}
			return setSettings(cmd.Context(), t, c, args[0], api.Settings{NumericBands: bands})
		},
	}
}

// parseBands reads arguments such as price=0,50,100.
func parseBands(args []string) (map[string][]float64, error) {
	bands := map[string][]float64{}
	for _, arg := range args {
		facet, list, ok := strings.Cut(arg, "=")
		if _, twice := bands[facet]; !ok || facet == "" || twice {
			return nil, cli.Usagef("%q: want each facet once with its numbers, such as price=0,50,100", arg)
		}
		bands[facet] = []float64{}
		if list == "" {
			continue
		}
		for _, text := range strings.Split(list, ",") {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, cli.Usagef("%q: %q is not a number", arg, text)
			}
			bands[facet] = append(bands[facet], n)
		}
	}
	return bands, nil
}

// setSettings sets settings of an index, and says when they hold.
func setSettings(ctx context.Context, t *command.Tool, c *client.Client, index string, s api.Settings) error {
	if _, err := c.Catalog().SetSettings(ctx, index, s); err != nil {
		return fmt.Errorf("set the settings of %s: %w", cli.Printable(index), err)
	}
	fmt.Fprintln(t.Out, "the settings are set: new events follow within 5 s")
	if s.NumericBands == nil {
		return nil
	}
	facets := slices.Sorted(maps.Keys(s.NumericBands))
	if len(facets) == 0 {
		facets = []string{"no facet"}
	}
	_, err := fmt.Fprintf(t.Out, "numeric bands: %s; the events in the log follow by a re-enrichment, which "+
		"affinity reenrich shows\n", cli.Printable(strings.Join(facets, ", ")))
	return err
}
