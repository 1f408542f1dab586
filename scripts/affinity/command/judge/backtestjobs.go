package judge

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

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
		_, err := fmt.Fprintf(t.Out, "%-32s  %-10s  %s  %s, %s  started %s%s\n%s", cli.Printable(j.ID), cli.Printable(string(j.State)), what,
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
