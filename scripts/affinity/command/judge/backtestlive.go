package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/googleapis/gax-go/v2"
	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// parseLive checks the command line of a backtest on the log of an engine.
func (o *backtestOptions) parseLive(cmd *cobra.Command, args []string) error {
	if err := cli.Require(cmd, "strategy", "a JSON file, such as --strategy strategy.json"); err != nil {
		return err
	}
	if o.identity {
		return cli.Usagef("--identity judges files: leave out --url; `affinity identity preview` says what the log of an " +
			"engine would link")
	}
	if err := o.logFiles.parseLive(args, "judges"); err != nil {
		return err
	}
	return o.judgeFlags.parse(cmd)
}

// runLive judges on the log of an engine.
func runLive(ctx context.Context, t *command.Tool, c *client.Client, o backtestOptions) error {
	given, err := readGiven(t, o.strategies)
	if err != nil {
		return err
	}
	request := api.BacktestRequest{
		Index: o.index, Protocol: string(o.Protocol), At: o.At, Within: o.Within, Sample: o.Sample, All: o.all,
	}
	for _, g := range given {
		text, err := json.Marshal(g.Strategy)
		if err != nil {
			return fmt.Errorf("encode the strategy %s: %w", g.Name, err)
		}
		request.Strategies = append(request.Strategies, text)
	}
	fmt.Fprintf(t.Err, "reads the log of app %s at %s: %s\n", cli.Printable(t.App), cli.Printable(t.URL),
		liveBounds(o.all))
	j, err := c.Jobs().StartBacktest(ctx, request)
	if err != nil {
		return fmt.Errorf("start the backtest: %w", err)
	}
	if j, err = watchBacktest(ctx, t, t.Patient(c), j); err != nil {
		return err
	}
	if j.State != api.JobDone || j.Backtest == nil {
		return fmt.Errorf("backtest %s ended as %s: %s", j.ID, j.State, j.Error)
	}
	named(j.Backtest, given)
	if j.Faulty > 0 {
		fmt.Fprintln(t.Err, command.FaultList(command.Unread(j.Faulty), j.Faults))
	}
	if j.Sampled {
		fmt.Fprintf(t.Err, "the app has more events than that: these are a sample of its users\n")
	}
	if o.plot != "" {
		if err := writePlot(o.plot, *j.Backtest); err != nil {
			return err
		}
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, j.Backtest)
	}
	return render.Backtest(t.Out, *j.Backtest, render.NewPalette(cli.Colored(t.Out)))
}

// liveBounds says what a backtest reads at most.
func liveBounds(all bool) string {
	if all {
		return "at most 20 million events, of a sample of the users if there are more, and judges all cases"
	}
	return "at most 4 million events, of a sample of the users if there are more, and judges at most 20,000 " +
		"cases (--all: more)"
}

// watchBacktest waits until a backtest has ended.
func watchBacktest(ctx context.Context, t *command.Tool, c *client.Client, j api.BacktestJob) (api.BacktestJob, error) {
	bar := cli.NewProgress(t.Err)
	defer bar.Finish()
	for !j.State.Ended() {
		what, done := fmt.Sprintf("%d events of %s", j.Events, cli.Count(j.Users, "user")),
			float64(j.Users)/float64(max(j.PlannedUsers, j.Users, 1))
		if s := j.Search; s != nil && s.Trials > 0 {
			what, done = fmt.Sprintf("trial %d of %d", s.Trials, s.Most), float64(s.Trials)/float64(max(s.Most, 1))
		}
		if j.Users == 0 {
			what += render.Before(j.Place)
		}
		bar.Set(what, done)
		if err := gax.Sleep(ctx, t.WatchEvery); err != nil {
			return j, fmt.Errorf("backtest %s continues: %w", j.ID, err)
		}
		var err error
		if j, err = c.Jobs().Backtest(ctx, j.ID); err != nil {
			return j, fmt.Errorf("read the backtest: %w", err)
		}
	}
	return j, nil
}

// named gives results the names of the files: the engine numbers strategies.
func named(b *api.Backtest, given []backtest.Given) {
	name := func(of *string) {
		for n, g := range given {
			number := fmt.Sprintf("strategy %d", n+1)
			if plain, ok := strings.CutPrefix(*of, api.PlainPrefix); ok && plain == number {
				*of = api.PlainPrefix + g.Name
			} else if *of == number {
				*of = g.Name
			} else {
				continue
			}
			return
		}
	}
	lists, gains := [][]api.BacktestResult{b.Results}, [][]api.BacktestGain{b.Gains}
	if w := b.Within; w != nil {
		lists, gains = append(lists, w.Results), append(gains, w.Gains)
	}
	for _, list := range lists {
		for i := range list {
			name(&list[i].Name)
		}
	}
	for _, list := range gains {
		for i := range list {
			name(&list[i].Name)
		}
	}
}

func listBacktestsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "list",
		Short: "List the latest backtests and searches on the log of an engine, the newest first",
		Args:  cli.Subcommand,
	}, "list backtests", func(ctx context.Context, c *client.Client, _ []string) (api.Backtests, error) {
		return c.Jobs().Backtests(ctx)
	}, printBacktests)
}

func printBacktests(t *command.Tool, list api.Backtests) error {
	if len(list.Backtests) == 0 {
		fmt.Fprintln(t.Err, "the app has had no backtest: `affinity backtest --url` starts one")
	}
	for _, j := range list.Backtests {
		what := "judged"
		if s := j.Search; s != nil {
			what = fmt.Sprintf("trial %d of %d", s.Trials, s.Most)
		}
		failed := ""
		if j.Faulty > 0 {
			failed = "    " + command.Unread(j.Faulty) + "\n"
		}
		if j.Error != "" {
			failed += "    " + cli.Printable(j.Error) + "\n"
		}
		_, err := fmt.Fprintf(t.Out, "%-32s  %-10s  %s  %s, %s  started %s%s\n%s", cli.Printable(j.ID),
			cli.Printable(string(j.State)), what,
			cli.Count(j.Users, "user"), cli.Count(j.Events, "event"), j.StartedAt.UTC().Format(time.RFC3339),
			render.Took(j.StartedAt, j.FinishedAt)+render.Before(j.Place), failed)
		if err != nil {
			return err
		}
	}
	return nil
}

func cancelBacktestCommand(t *command.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a backtest or a search on the log of an engine",
		Args:  cli.Args("ID"),
		RunE: t.Tell("cancel backtest %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			j, err := c.Jobs().CancelBacktest(ctx, args[0])
			return command.IsNow("backtest", j.ID, j.State), err
		}),
	}
}
