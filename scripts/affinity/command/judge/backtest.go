package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

type backtestOptions struct {
	logFiles
	judgeFlags
	strategies []string
	plot       string
	all        bool
}

// Backtest returns the command backtest.
func Backtest(t *command.Tool) *cobra.Command {
	o := backtestOptions{}
	cmd := &cobra.Command{
		Use:   "backtest --objects FILE --strategy FILE EVENTS...",
		Short: "Judge strategies on past events: how high would each have ranked what users turned to next?",
		Long: "Judge strategies on files of events and objects, without an engine. The files are those of `affinity import`, plain\n" +
			"or gzip. For every user who was active after the cut, four fifths of the time that the events span, each strategy\n" +
			"ranks the objects that the user had not turned to before, as of the user's last instant. The table says how high\n" +
			"those stand that the user turned to then, beside random order, popularity, and what users turn to together.\n" +
			"plain:FILE is the order by affinities alone, FILE that of the strategy's own ranking. Events do not leave the window.\n" +
			"A bad line ends the command, but for one whose time no event can have, such as 1970-01-01 or one of tomorrow: it is\n" +
			"printed and left out (exit 3).\n" +
			"With --url it judges on the log of a running engine instead, as a job; the key needs the permission admin.",
		Example: "  affinity backtest --index shoes --objects objects.ndjson.gz --strategy strategy.json events.ndjson.gz\n" +
			"  affinity backtest --objects objects.ndjson --strategy now.json --strategy next.json --plot lift.svg 2026-*.gz\n" +
			"  affinity backtest --url https://affinity.example.com --app shop --key KEY --index shoes --strategy next.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("url") {
				if err := o.parse(cmd, args); err != nil {
					return err
				}
				return runBacktest(cmd.Context(), t, o)
			}
			if err := o.parseLive(cmd, args); err != nil {
				return err
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			return runLive(cmd.Context(), t, c, o)
		},
	}
	cmd.AddCommand(listBacktestsCommand(t), cancelBacktestCommand(t))
	o.logFiles.flags(cmd)
	o.judgeFlags.flags(cmd, "judge also among the objects that share a value of this facet with what the user turned to")
	flags := cmd.Flags()
	flags.StringArrayVar(&o.strategies, "strategy", nil,
		"strategy to judge: a JSON file; give it again for more. The first one says which events count")
	flags.StringVar(&o.plot, "plot", "", "write an SVG of the lift over popularity to this file")
	flags.BoolVar(&o.all, "all", false, "with --url: judge all cases, and read up to 20 million events")
	t.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

// parse checks the command line.
func (o *backtestOptions) parse(cmd *cobra.Command, args []string) error {
	if err := o.logFiles.parse(cmd, args); err != nil {
		return err
	}
	if err := cli.Require(cmd, "strategy", "a JSON file, such as --strategy strategy.json"); err != nil {
		return err
	}
	if o.all {
		return cli.Usagef("--all needs --url: a backtest on files reads all of them")
	}
	return o.judgeFlags.parse(cmd)
}

// runBacktest judges on files.
func runBacktest(ctx context.Context, t *command.Tool, o backtestOptions) error {
	given, err := readGiven(t, o.strategies)
	if err != nil {
		return err
	}
	log, err := o.read(ctx, t, dates(given))
	if err != nil {
		return err
	}
	report, err := judge(ctx, t, log, given, o.Options)
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := writePlot(o.plot, report); err != nil {
			return err
		}
	}
	if t.JSON {
		return o.judged(cli.PrintJSON(t.Out, report.API()))
	}
	within := render.Gains(nil)
	if report.Within != nil {
		within = gains(report.Within)
	}
	return o.judged(render.Backtest(t.Out, report.API(), gains(report), within, render.NewPalette(cli.Colored(t.Out))))
}

// readGiven reads strategy files and checks that each can rank.
func readGiven(t *command.Tool, paths []string) (given []backtest.Given, err error) {
	for _, path := range paths {
		if slices.ContainsFunc(given, func(g backtest.Given) bool { return g.Name == path }) {
			return nil, cli.Usagef("--strategy %s is given twice", path)
		}
		text, _, err := t.CompleteStrategy(path) // the impact trades against relevancy, which a log does not have
		if err != nil {
			return nil, err
		}
		s, err := strategy.Decode(text)
		if err == nil {
			err = backtest.Check(s)
		}
		if err != nil {
			return nil, fmt.Errorf("the strategy %s: %w", path, err)
		}
		given = append(given, backtest.Given{Name: path, Strategy: s})
	}
	return given, nil
}

// dates returns the attributes by which the freshness of the rankings goes.
func dates(given []backtest.Given) (attributes []string) {
	for _, g := range given {
		if f := g.Strategy.RankingOrDefault().Freshness; f.Weight > 0 && !slices.Contains(attributes, f.Attribute) {
			attributes = append(attributes, f.Attribute)
		}
	}
	return attributes
}

// judge judges with a bar on a terminal.
func judge(ctx context.Context, t *command.Tool, log *backtest.Log, given []backtest.Given,
	o backtest.Options) (*backtest.Report, error) {
	bar := cli.NewProgress(t.Err)
	defer bar.Finish()
	return log.Judge(ctx, given, o, func(what string, done float64) { bar.Set("judging "+what, done) })
}

// gains compares the results of a report with popularity.
func gains(r *backtest.Report) render.Gains {
	base := r.Find(backtest.NamePopularity)
	return func(name string) (backtest.Gain, bool) {
		result := r.Find(name)
		if result == nil || base == nil {
			return backtest.Gain{}, false
		}
		return result.Over(base), true
	}
}

func writePlot(path string, r *backtest.Report) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return plotReport(file, r)
}

// plotReport plots the lift of each result over popularity.
func plotReport(out io.Writer, r *backtest.Report) error {
	var lifts []render.Lift
	of := gains(r)
	for _, n := range r.Results {
		if g, ok := of(n.Name); ok && n.Name != backtest.NamePopularity {
			lifts = append(lifts, render.Lift{Name: n.Name, Ratio: g.Ratio, Low: g.RatioLow, High: g.RatioHigh})
		}
	}
	title := fmt.Sprintf("nDCG@%d of %d cases", r.Cases.At(), r.Cases.Len())
	return render.Plot(out, title, "times the nDCG of popularity, with 95 % intervals", lifts)
}
