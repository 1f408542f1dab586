package strategy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/importer"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/catalog/vocabulary"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// defaultSuggestions is how many suggestions a person reads at once.
const defaultSuggestions = 50

type suggestOptions struct {
	objects, facet string
	limit          int
	doubtful       bool
}

func suggestAliasesCommand(t *command.Tool) *cobra.Command {
	var o suggestOptions
	cmd := &cobra.Command{
		Use:   "suggest-aliases --objects FILE",
		Short: "List values of a catalog that probably mean the same",
		Long: "List values of a catalog that probably mean the same, the surest first, with the reason and the objects that carry\n" +
			"each: values that differ in HTML entities (& and &amp;), in the code points of the same letters, in case,\n" +
			"separators or accents, plurals, values of mostly the same objects, and values with a word of 6 letters or\n" +
			"more that is one letter apart. Values with other digits are never alike. The value of more objects is the\n" +
			"one to keep. The active strategy tells which values are merged already. Nothing is changed: read the list,\n" +
			"since a wrong alias mixes what users like. --json prints the aliases of the strategy with those of the\n" +
			"list. Values with digits beside the same value without them, such as iphone 7 and iphone, are listed apart:\n" +
			"most of them should stay so, and --json has them with --doubtful alone.",
		Example: "  affinity strategy suggest-aliases --objects objects.ndjson.gz\n" +
			"  affinity strategy suggest-aliases --objects objects.ndjson --facet brand --json",
		Args: cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "objects", "the catalog, such as --objects objects.ndjson.gz"); err != nil {
				return err
			}
			if o.limit < 1 || o.limit > strategy.MaxAliases {
				return cli.Usagef("--limit %d: must be from 1 to %d", o.limit, strategy.MaxAliases)
			}
			return suggestAliases(cmd.Context(), t, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.objects, "objects", "", "catalog: one JSON object per line, plain or gzip, - for standard input")
	flags.StringVar(&o.facet, "facet", "", "list values of this facet (default: of the facets that the strategy scores)")
	flags.IntVar(&o.limit, "limit", defaultSuggestions, "how many suggestions to list for each facet")
	flags.BoolVar(&o.doubtful, "doubtful", false, "add the doubtful ones to --json")
	t.JSONFlag(cmd, "print the aliases object for the strategy instead of the list")
	return cmd
}

func suggestAliases(ctx context.Context, t *command.Tool, o suggestOptions) error {
	c, err := t.Client()
	if err != nil {
		return err
	}
	active, err := strategyOrNone(ctx, c)
	if err != nil {
		return err
	}
	words, err := readVocabulary(ctx, t, o.objects)
	if err != nil {
		return err
	}
	if o.facet != "" && words.Values(o.facet) == 0 {
		return fmt.Errorf("no object of %s has the facet %s", o.objects, cli.Printable(o.facet))
	}
	var list, doubtful []vocabulary.Suggestion
	for _, facet := range o.facets(active, words) {
		found := words.Suggest(facet, active.Aliases[facet])
		sure := slices.IndexFunc(found, func(s vocabulary.Suggestion) bool { return s.Reason.Doubtful() })
		if sure < 0 {
			sure = len(found)
		}
		list = append(list, found[:min(sure, o.limit)]...)
		doubtful = append(doubtful, found[sure:min(len(found), sure+o.limit)]...)
	}
	if t.JSON {
		if o.doubtful {
			list = append(list, doubtful...)
		}
		return cli.PrintJSON(t.Out, map[string]any{"aliases": withSuggestions(active.Aliases, list)})
	}
	if err := printSuggestions(t.Out, list); err != nil || len(doubtful) == 0 {
		return err
	}
	fmt.Fprintln(t.Out, "\ndoubtful, as most of these mean other things:")
	return printSuggestions(t.Out, doubtful)
}

// facets returns the facets to look at: the one asked for, else those that the
// strategy scores, else all.
func (o suggestOptions) facets(active api.Strategy, words *vocabulary.Vocabulary) []string {
	if o.facet != "" {
		return []string{o.facet}
	}
	var facets []string
	for _, f := range active.FacetsScoring {
		facets = append(facets, f.FacetName)
	}
	if len(facets) == 0 {
		return words.Facets()
	}
	return facets
}

// withSuggestions returns the aliases of a strategy and those of a list.
func withSuggestions(aliases map[string]map[string]string, list []vocabulary.Suggestion) map[string]map[string]string {
	all := map[string]map[string]string{}
	for facet, pairs := range aliases {
		all[facet] = maps.Clone(pairs)
	}
	for _, s := range list {
		if all[s.Facet] == nil {
			all[s.Facet] = map[string]string{}
		}
		all[s.Facet][s.From] = s.To
	}
	return all
}

// strategyOrNone returns the app's strategy, or an empty one if it has none.
func strategyOrNone(ctx context.Context, c *client.Client) (api.Strategy, error) {
	s, err := c.Strategies().Get(ctx)
	if command.StatusOf(err) == http.StatusNotFound {
		return api.Strategy{}, nil
	}
	if err != nil {
		return api.Strategy{}, fmt.Errorf("get the strategy: %w", err)
	}
	return s, nil
}

func readVocabulary(ctx context.Context, t *command.Tool, path string) (v *vocabulary.Vocabulary, err error) {
	src, err := importer.Open(path, t.In)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	v = vocabulary.New()
	return v, importer.ReadObjects(ctx, src, t.Err, v.Add)
}

func printSuggestions(out io.Writer, list []vocabulary.Suggestion) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no values look alike")
		return err
	}
	return cli.Table(out, "facet\tvalue\tobjects\tcounts as\tobjects\tboth\tbecause of", list,
		func(s vocabulary.Suggestion) []any {
			return []any{s.Facet, s.From, s.FromObjects, s.To, s.ToObjects, s.SharedObjects, s.Reason}
		})
}
