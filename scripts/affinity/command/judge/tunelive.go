package judge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// activeStrategy is the value of --strategy for the strategy of the app.
const activeStrategy = "active"

// parseLive checks the command line of a search on the log of an engine.
func (f *tuneFlags) parseLive(cmd *cobra.Command, args []string) error {
	if err := f.logFiles.parseLive(args, "searches"); err != nil {
		return err
	}
	return f.parseSearch(cmd)
}

// runTuneLive searches on the log of an engine.
func runTuneLive(ctx context.Context, t *command.Tool, c *client.Client, f tuneFlags) error {
	request := api.BacktestRequest{
		Index: f.index, Protocol: string(f.Protocol), At: f.At, Within: f.Within, Sample: f.Sample, All: f.all,
		Tune: &api.TuneRequest{Trials: f.trials},
	}
	from := "the active strategy"
	if f.strategy != "" && f.strategy != activeStrategy {
		given, err := readGiven(t, []string{f.strategy})
		if err != nil {
			return err
		}
		text, err := json.Marshal(given[0].Strategy)
		if err != nil {
			return fmt.Errorf("encode the strategy: %w", err)
		}
		request.Strategies, from = []json.RawMessage{text}, cli.Printable(f.strategy)
	}
	fmt.Fprintf(t.Err, "reads the log of app %s at %s: %s\nthen searches from %s with at most %s\n",
		cli.Printable(t.App), cli.Printable(t.URL), liveBounds(f.all), from, cli.Count(f.trials, "trial"))
	j, err := c.Jobs().StartBacktest(ctx, request)
	if err != nil {
		return fmt.Errorf("start the search: %w", err)
	}
	if j, err = watchBacktest(ctx, t, t.Patient(c), j); err != nil {
		return err
	}
	if j.State != api.JobDone || j.Backtest == nil || j.Tune == nil || j.Search == nil || j.Search.Strategy == nil ||
		j.Search.Gain == nil {
		return fmt.Errorf("the search %s ended as %s: %s", j.ID, j.State, j.Error)
	}
	if j.Faulty > 0 {
		fmt.Fprintln(t.Err, command.FaultList(command.Unread(j.Faulty), j.Faults))
	}
	if j.Sampled {
		fmt.Fprintf(t.Err, "the app has more events than that: these are a sample of its users\n")
	}
	if err := f.write(*j.Backtest, j.Tune.Strategy); err != nil {
		return err
	}
	if t.JSON {
		return cli.PrintJSON(t.Out, j.Tune)
	}
	found := render.Found{Trials: j.Search.Trials, Cases: j.Search.Cases, Given: *j.Search.Strategy, Tuning: *j.Tune,
		Report: *j.Backtest, Gain: *j.Search.Gain}
	return render.Tuning(t.Out, found, f.out, render.NewPalette(cli.Colored(t.Out)))
}
