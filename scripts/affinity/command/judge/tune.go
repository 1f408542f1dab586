package judge

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/tune"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// tuneFlags are the flags that tune and try share.
type tuneFlags struct {
	logFiles
	judgeFlags
	strategy, out, plot string
	trials              int
	all                 bool
}

func (f *tuneFlags) flags(t *command.Tool, cmd *cobra.Command, strategyUsage string) {
	f.logFiles.flags(cmd)
	f.judgeFlags.flags(cmd, "search and judge")
	flags := cmd.Flags()
	flags.StringVar(&f.strategy, "strategy", "", strategyUsage)
	flags.IntVar(&f.trials, "trials", tune.DefaultTrials, "the most strategies to judge")
	flags.StringVar(&f.plot, "plot", "", "write an SVG of the gains over the best list that everybody sees to this file")
	t.JSONFlag(cmd, command.JSONDocument)
}

// parse checks the command line.
func (f *tuneFlags) parse(cmd *cobra.Command, args []string) error {
	if err := f.logFiles.parse(cmd, args); err != nil {
		return err
	}
	if f.all {
		return cli.Usagef("--all needs --url: a search on files reads all of them")
	}
	return f.parseSearch(cmd)
}

// parseSearch checks the flags that say how to search.
func (f *tuneFlags) parseSearch(cmd *cobra.Command) error {
	if f.trials < 1 || f.trials > tune.MaxTrials {
		return cli.Usagef("--trials %d: must be from 1 to %d", f.trials, tune.MaxTrials)
	}
	return f.judgeFlags.parse(cmd)
}

// Tune returns the command tune.
func Tune(t *command.Tool) *cobra.Command {
	f := tuneFlags{}
	cmd := &cobra.Command{
		Use:   "tune --objects FILE --strategy FILE EVENTS...",
		Short: "Search for a strategy that would have ranked past events better",
		Long: "Search for a strategy that would have ranked higher what users turned to, by the judgements of\n" +
			"`affinity backtest`, on the same files and without an engine. It changes the scores of the\n" +
			"strategy's events, those of the catalog's facets, the first half-life and the ranking. The search\n" +
			"ranks what the pages of a category show, if a facet looks like one. It sees seven tenths of the\n" +
			"cases. The others are read once, at the end: the tables are theirs. The strategy is recommended if\n" +
			"its gain on them is more than chance. --out writes it; `affinity strategy preview` and `affinity\n" +
			"strategy set` take the file. With --url it searches on the log of a running engine instead, as a\n" +
			"job; the key needs the permission admin.",
		Example: "  affinity tune --objects objects.ndjson.gz --strategy strategy.json --out tuned.json events.ndjson.gz\n" +
			"  affinity tune --objects objects.ndjson --strategy now.json --trials 300 --plot lift.svg 2026-*.gz\n" +
			"  affinity tune --url https://affinity.example.com --app shop --key KEY --index shoes --out tuned.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("url") {
				if err := f.parseLive(cmd, args); err != nil {
					return err
				}
				c, err := t.Client()
				if err != nil {
					return err
				}
				return runTuneLive(cmd.Context(), t, c, f)
			}
			if err := f.parse(cmd, args); err != nil {
				return err
			}
			if err := cli.Require(cmd, "strategy", "a JSON file, such as --strategy strategy.json; `affinity try` "+
				"guesses one"); err != nil {
				return err
			}
			return runTune(cmd.Context(), t, f)
		},
	}
	f.flags(t, cmd, "strategy to begin with: a JSON file. Its events define the cases\n"+
		"With --url also active, the default: the app's own")
	cmd.Flags().BoolVar(&f.all, "all", false, "with --url: judge on all cases, and read up to 20 million events")
	cmd.Flags().StringVar(&f.out, "out", "", "write the tuned strategy to this file")
	return cmd
}

func runTune(ctx context.Context, t *command.Tool, f tuneFlags) error {
	read, err := readGiven(t, []string{f.strategy})
	if err != nil {
		return err
	}
	given := read[0].Strategy
	log, err := f.read(ctx, t, freshnessAttributes(given))
	if err != nil {
		return err
	}
	outcome, err := search(ctx, t, log, given, f)
	if err != nil {
		return err
	}
	if err := f.write(outcome.Report.API(), outcome.Strategy); err != nil {
		return err
	}
	if t.JSON {
		return f.judged(cli.PrintJSON(t.Out, outcome.API()))
	}
	return f.judged(render.Tuning(t.Out, foundIn(outcome, given), f.out, render.NewPalette(cli.Colored(t.Out))))
}

// foundIn returns what a search found, to be shown.
func foundIn(o *tune.Outcome, given strategy.Strategy) render.Found {
	return render.Found{Trials: o.Trials, Cases: o.Tuning, Given: given, Tuning: o.API(), Report: o.Report.API(),
		Gain: o.Gain.API(api.TunedOrder, api.GivenOrder)}
}

// freshnessAttributes are the attributes whose dates a search may rank by.
func freshnessAttributes(given strategy.Strategy) []string {
	return []string{given.RankingOrDefault().Freshness.Attribute}
}

// search tunes with a bar on a terminal.
func search(ctx context.Context, t *command.Tool, log *backtest.Log, given strategy.Strategy,
	f tuneFlags) (*tune.Outcome, error) {
	bar := cli.NewProgress(t.Err)
	defer bar.Finish()
	bar.Set("finding cases", 0)
	whole := f.Options
	whole.Within = backtest.None
	cases, err := log.Cases(ctx, given, whole)
	if err != nil {
		return nil, err
	}
	outcome, err := tune.Run(ctx, cases, given, tune.Options{Trials: f.trials, Within: f.Within,
		Progress: func(p tune.Progress) {
			bar.Set(fmt.Sprintf("trial %d, best nDCG %.4f", p.Trials, p.Best), float64(p.Trials)/float64(p.Most))
		}})
	if err == nil {
		f.unmatched(t, log, outcome.Report)
	}
	return outcome, err
}

// write writes the files that the flags ask for: a strategy and a plot.
func (f *tuneFlags) write(report api.Backtest, s strategy.Strategy) error {
	if f.out != "" {
		if err := command.WriteStrategy(f.out, s); err != nil {
			return err
		}
	}
	if f.plot == "" {
		return nil
	}
	return writePlot(f.plot, report)
}
