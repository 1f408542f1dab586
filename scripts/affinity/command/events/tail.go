package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

func tailEventsCommand(t *command.Tool) *cobra.Command {
	q := api.RecentEventsQuery{Limit: api.DefaultRecentEvents}
	follow := false
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print events that have just arrived, and follow those that come",
		Long: "Print a sample of the events that the engine received in the last 15 minutes, the newest last, each with its first objects\n" +
			"and filters. Of a busy app the sample has a few events of each second. With --follow it asks for newer events once a second,\n" +
			"until Ctrl-C. Events of users who have been deleted or have opted out are not printed. Requires a key " +
			"with the permission admin.",
		Example: "  affinity events tail\n  affinity events tail --follow --limit 5\n  affinity events tail --follow --json | jq -c .filters",
		Args:    cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 1 || q.Limit > api.MaxRecentEvents {
				return cli.Usagef("--limit %d: must be from 1 to %d", q.Limit, api.MaxRecentEvents)
			}
			if follow && t.Output == command.CSVOutput {
				return cli.Usagef("--follow has no end, and a table of CSV needs one: leave one of them out")
			}
			c, err := t.Client()
			if err != nil {
				return err
			}
			if follow {
				return followEvents(cmd.Context(), t, c, q)
			}
			var raw []byte
			answer, err := c.Events().Recent(client.WithRawAnswer(cmd.Context(), &raw), q)
			if err != nil {
				return fmt.Errorf("list recent events: %w", err)
			}
			if t.JSON {
				return command.PrintRaw(t.Out, raw)
			}
			if len(answer.Events) == 0 {
				fmt.Fprintln(t.Err, "no event arrived in the last 15 minutes")
			}
			return printRecent(t, answer.Events, false)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "print newer events as they arrive; with --json one in a line")
	flags.IntVar(&q.Limit, "limit", q.Limit, "events to print, and those of a second to print at most")
	t.JSONFlag(cmd, command.JSONUsage)
	return cmd
}

// tailEvery is how often the command asks for newer events.
const tailEvery = time.Second

// followEvents prints events until ctx ends.
func followEvents(ctx context.Context, t *command.Tool, c *client.Client, q api.RecentEventsQuery) error {
	c = t.Patient(c)
	for {
		answer, err := c.Events().Recent(ctx, q)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how it ends
		}
		if err != nil {
			return fmt.Errorf("follow events: %w", err)
		}
		if answer.Cursor != "" {
			q.After = answer.Cursor
		}
		if err := printRecent(t, answer.Events, t.JSON); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(tailEvery, 2*t.WatchEvery)):
		}
	}
}

// printRecent prints events in lines, the newest last.
func printRecent(t *command.Tool, events []api.RecentEvent, asJSON bool) error {
	for _, e := range slices.Backward(events) {
		line := recentLine(e)
		if asJSON {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			line = string(text)
		}
		if _, err := fmt.Fprintln(t.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func recentLine(e api.RecentEvent) string {
	line := fmt.Sprintf("%s  %-10s  %s  %s  %s", e.ReceivedAt.UTC().Format("15:04:05.000"),
		cli.Printable(e.EventType), cli.Printable(e.EventName),
		cli.Printable(e.UserToken), cli.Printable(e.Index))
	if len(e.ObjectIDs) > 0 {
		line += "  " + cli.Printable(strings.Join(e.ObjectIDs, " "))
	}
	if len(e.Filters) > 0 {
		line += "  " + cli.Printable(strings.Join(e.Filters, ", "))
	}
	return line
}
