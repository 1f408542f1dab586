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
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

type backtestOptions struct {
	logFiles
	judgeFlags
	strategies []string
	plot       string
	all        bool
	identity   bool
}

// Backtest returns the command backtest.
func Backtest(t *command.Tool) *cobra.Command {
	o := backtestOptions{}
	cmd := &cobra.Command{
		Use:   "backtest --objects FILE --strategy FILE EVENTS...",
		Short: "Judge strategies on past events: how high would each have ranked what users turned to next?",
		Long: "Judge strategies on files of events and objects, without an engine. The files are those of `affinity\n" +
			"import`, plain or gzip. For every user who was active after the cut, four fifths of the time that\n" +
			"the events span, each strategy ranks the objects that the user had not turned to before, as of the\n" +
			"user's last instant. The table says how high those stand that the user turned to then, within the\n" +
			"category of what that was and then in the whole catalog, beside random order, best sellers, those of\n" +
			"late, and what others turned to next. The lift is that over the best list that everybody sees;\n" +
			"--baseline adds what you really showed. functions/docs/guides/lift.md says what a lift means. plain:FILE is\n" +
			"the order by affinities alone, FILE that of the strategy's own ranking. Events do not leave the\n" +
			"window. A bad line ends the command, but for one whose time no event can have, such as 1970-01-01 or\n" +
			"one of tomorrow: it is printed and left out (exit 3). --identity judges the same cases once more, by the\n" +
			"events of all tokens of a person, which those events link that name a userToken and the\n" +
			"authenticatedUserToken of who had signed in. With --url it judges on the log of a running engine\n" +
			"instead, as a job; the key needs the permission admin.",
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
	o.judgeFlags.flags(cmd, "judge")
	flags := cmd.Flags()
	flags.StringArrayVar(&o.strategies, "strategy", nil,
		"strategy to judge: a JSON file; give it again for more. The first one says which events count")
	flags.StringVar(&o.plot, "plot", "", "write an SVG of the gains over the best list that everybody sees to this file")
	flags.BoolVar(&o.all, "all", false, "with --url: judge all cases, and read up to 20 million events")
	flags.BoolVar(&o.identity, "identity", false,
		"say what it is worth to link the tokens of a person, by the events that have both tokens")
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
	var signIns signIns
	if o.identity {
		o.signIns = signIns.add
	}
	log, err := o.read(ctx, t, backtest.Dates(given))
	if err != nil {
		return err
	}
	report, err := judge(ctx, t, log, given, o.Options)
	if err != nil {
		return err
	}
	o.unmatched(t, log, report)
	var identity *api.BacktestIdentity
	if o.identity {
		if identity, err = signIns.judge(ctx, t, report, given); err != nil {
			return err
		}
	}
	if o.plot != "" {
		if err := writePlot(o.plot, report.API()); err != nil {
			return err
		}
	}
	if t.JSON {
		return o.judged(cli.PrintJSON(t.Out, struct {
			api.Backtest
			Identity *api.BacktestIdentity `json:"identity,omitempty"`
		}{report.API(), identity}))
	}
	colors := render.NewPalette(cli.Colored(t.Out))
	err = render.Backtest(t.Out, report.API(), colors)
	if err == nil && identity != nil {
		err = render.Identity(t.Out, *identity, report.API(), colors)
	}
	return o.judged(err)
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

// judge judges with a bar on a terminal.
func judge(ctx context.Context, t *command.Tool, log *backtest.Log, given []backtest.Given,
	o backtest.Options) (*backtest.Report, error) {
	bar := cli.NewProgress(t.Err)
	defer bar.Finish()
	return log.Judge(ctx, given, o, func(what string, done float64) { bar.Set("judging "+what, done) })
}

func writePlot(path string, b api.Backtest) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return plotReport(file, b)
}

// plotReport plots the gain of each result over the best list that everybody sees,
// within the facet if there is one.
func plotReport(out io.Writer, b api.Backtest) error {
	cases, gains, among := b.Cases, b.Gains, "in the whole catalog"
	if w := b.Within; w != nil {
		cases, gains, among = w.Cases, w.Gains, "within "+w.Facet
	}
	var lifts []render.Lift
	over := ""
	for _, g := range gains {
		over = g.Over
		lifts = append(lifts, render.Lift{Name: g.Name, Ratio: g.Ratio, Low: g.RatioLow, High: g.RatioHigh})
	}
	title := fmt.Sprintf("nDCG@%d of %d cases %s", b.At, cases, among)
	return render.Plot(out, title, "times the nDCG of "+over+", with 95 % intervals", lifts)
}
