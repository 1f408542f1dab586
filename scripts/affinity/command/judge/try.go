package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/suggest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// triedStrategy is the file of the strategy if no flag names one.
const triedStrategy = "strategy.try.json"

// Try returns the command try.
func Try(t *command.Tool) *cobra.Command {
	f := tuneFlags{}
	cmd := &cobra.Command{
		Use:   "try --objects FILE EVENTS...",
		Short: "Say what personalization is worth on your own events",
		Long: "Read an export of events and objects, search for a strategy, and say in words by how much it ranks\n" +
			"what your users turned to next higher than the best list that everybody sees: within a category, as\n" +
			"a page shows it, and in the whole catalog, the smaller lift first. functions/docs/guides/lift.md says what\n" +
			"that means and what it does not. It shows the results of two users before and after, with the\n" +
			"reasons, and writes the better strategy to a file. Without --strategy it begins with the one that\n" +
			"`affinity strategy suggest` would suggest for the data, with prices as bands, and prints why. No\n" +
			"engine is needed, and nothing leaves this machine. The figures are those of `affinity tune`, on\n" +
			"cases that the search has not seen.",
		Example: "  affinity try --index shoes --objects objects.ndjson.gz events.ndjson.gz\n" +
			"  affinity try --objects objects.ndjson --strategy strategy.json --out better.json 2026-*.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.parse(cmd, args); err != nil {
				return err
			}
			return runTry(cmd.Context(), t, f)
		},
	}
	f.flags(t, cmd, "strategy to begin with: a JSON file (default: guessed from the data)")
	cmd.Flags().StringVar(&f.out, "out", triedStrategy,
		"file of the better strategy: the tuned one if it is recommended, else the one that the search began with")
	return cmd
}

func runTry(ctx context.Context, t *command.Tool, f tuneFlags) error {
	var given strategy.Strategy
	if f.strategy != "" {
		read, err := readGiven(t, []string{f.strategy})
		if err != nil {
			return err
		}
		given = read[0].Strategy
	}
	objects, bands := &suggest.Objects{}, map[string][]float64(nil)
	if f.strategy == "" {
		f.prepare = func(all []backtest.Object) {
			for _, o := range all {
				objects.Add(o.Filters)
			}
			bands = objects.Bands()
			inBands(all, bands)
		}
	}
	log, err := f.read(ctx, t, freshnessAttributes(given))
	if err != nil {
		return err
	}
	if f.strategy == "" {
		if given, err = begin(t, log, objects); err != nil {
			return err
		}
	}
	outcome, err := search(ctx, t, log, given, f)
	if err != nil {
		return err
	}
	tried := render.Tried{Found: foundIn(outcome, given), Guessed: f.strategy == "", Log: log, Path: f.out}
	better := given
	if outcome.Recommended {
		better = outcome.Strategy
	}
	if err := f.write(tried.Report, better); err != nil {
		return err
	}
	if t.JSON {
		return f.judged(cli.PrintJSON(t.Out, tried.Tuning))
	}
	if tried.Shown, err = drawn(outcome.Untouched, better); err != nil {
		return err
	}
	if err := render.Trial(t.Out, tried, render.NewPalette(cli.Colored(t.Out))); err != nil {
		return err
	}
	suggested := api.StrategySuggestion{NumericBands: map[string]map[string][]float64{f.index: bands}}
	return f.judged(render.BandCommands(t.Out, suggested))
}

// begin suggests a strategy by what the files hold, and prints why.
func begin(t *command.Tool, log *backtest.Log, objects *suggest.Objects) (strategy.Strategy, error) {
	var kinds []suggest.Kind
	for _, k := range log.Kinds() {
		kinds = append(kinds, suggest.Kind{Type: k.Type, Name: k.Name, Count: int64(k.Named)})
	}
	found, err := suggest.Find(kinds, objects, nil)
	if err != nil {
		return found.Strategy, fmt.Errorf("%w; are the objectIDs and the index of both files the same?", err)
	}
	fmt.Fprintln(t.Err, "the search begins with a strategy by what the files hold:")
	return found.Strategy, render.Reasons(t.Err, found.API().Reasons)
}

// inBands puts the names of bands in the place of the numbers of the facets that have bands.
func inBands(objects []backtest.Object, bands catalog.Bands) {
	for i := range objects {
		banded := objects[i].Filters[:0:0]
		for _, f := range objects[i].Filters {
			if n, err := strconv.ParseFloat(f.Value, 64); err == nil && bands[f.Facet] != nil {
				f.Value = bands.Of(f.Facet, n)
			}
			banded = append(banded, f)
		}
		slices.SortFunc(banded, func(a, b event.Filter) int {
			return cmp.Or(strings.Compare(a.Facet, b.Facet), strings.Compare(a.Value, b.Value))
		})
		objects[i].Filters = slices.Compact(banded)
	}
}

// shownUsers is how many users' results try shows, minHistory how many objects
// each has turned to before, if there are such users, so that there is a taste to
// see.
const (
	shownUsers = 2
	minHistory = 3
)

// drawn returns the results of some users of the cases under a strategy. A hash
// chooses the users, not how well they came out.
func drawn(cases *backtest.Cases, s strategy.Strategy) ([]backtest.Shown, error) {
	order := make([]int, cases.Len())
	for i := range order {
		order[i] = i
	}
	short := func(i int) int {
		if cases.HistoryLen(i) < minHistory {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(short(a), short(b)), cmp.Compare(cases.Key(a), cases.Key(b)))
	})
	var users []backtest.Shown
	for _, i := range order[:min(shownUsers, len(order))] {
		shown, err := cases.Show(i, s)
		if err != nil {
			return nil, fmt.Errorf("show the results of a user: %w", err)
		}
		users = append(users, shown)
	}
	return users, nil
}
