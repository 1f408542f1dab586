// Package events holds the commands about events on their way into an engine: events
// sends one, and shows the refused and the newest ones; replay puts dead letters back.
// History in files is imported by package transfer. It keeps nothing.
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// Command returns the command events.
func Command(t *command.Tool) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "events",
		Short: "Send an event, see what events contain and which arrive, list refused ones, or name track calls",
	}, sendEventCommand(t), seenEventsCommand(t), tailEventsCommand(t), refusedEventsCommand(t), namesCommand(t))
}

func sendEventCommand(t *command.Tool) *cobra.Command {
	e := api.Event{EventType: api.EventView}
	cmd := &cobra.Command{
		Use:   "send USER",
		Short: "Send one event of a user, as a page or a server would",
		Long: "Send one event of a user, as a page or a server would: about objects of the catalog, or about values of facets. It is in\n" +
			"the profile within seconds, if the strategy scores its type and name. `affinity import` sends files. The key needs the\n" +
			"permission search.",
		Example: "  affinity events send ann --type click --name Clicked --object shoe-1\n" +
			"  affinity events send ann --name Seen --filter brand:Nike --filter color:Red",
		Args: cli.Args("USER"),
		PreRunE: func(*cobra.Command, []string) error {
			if (len(e.ObjectIDs) == 0) == (len(e.Filters) == 0) {
				return cli.Usagef("give --object or --filter: what the event is about, not both")
			}
			return nil
		},
		RunE: t.Tell("send an event of %s", func(ctx context.Context, c *client.Client, args []string) (string, error) {
			e.UserToken = args[0]
			e.Timestamp = time.Now().UnixMilli()
			return fmt.Sprintf("the event is accepted: `affinity profile %s` shows it within seconds, if the strategy scores it", cli.Printable(e.UserToken)),
				c.Events().Send(ctx, e)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&e.EventType, "type", e.EventType, "type of the event: view, click or conversion")
	flags.StringVar(&e.EventName, "name", "Viewed", "name of the event, by which the strategy scores it")
	flags.StringVar(&e.Index, "index", command.DefaultIndex, "index of the objects")
	flags.StringArrayVar(&e.ObjectIDs, "object", nil, "object that the event is about; repeat for several")
	flags.StringArrayVar(&e.Filters, "filter", nil, "facet:value that the event is about; repeat for several")
	return cmd
}

func refusedEventsCommand(t *command.Tool) *cobra.Command {
	return command.Show(t, &cobra.Command{
		Use:   "refused",
		Short: "List the events that were refused in the last days, with the reason",
		Long: "List how many requests with events were refused in the last days, by reason, and the latest ones with their first bad event. The\n" +
			"key needs the permission recommendation.",
		Example: "  affinity events refused\n  affinity events refused --json | jq .refused[0].event",
		Args:    cli.Subcommand,
	}, "list refused events", func(ctx context.Context, c *client.Client, _ []string) (api.RefusedEvents, error) {
		return c.Events().Refused(ctx)
	}, printRefused)
}

func printRefused(t *command.Tool, answer api.RefusedEvents) error {
	if len(answer.Counts) == 0 {
		_, err := fmt.Fprintf(t.Out, "no event was refused in the last %s\n", cli.Count(api.MaxRefusedDays, "day"))
		return err
	}
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REQUESTS\tREASON")
	for _, reason := range slices.Sorted(maps.Keys(answer.Counts)) {
		fmt.Fprintf(w, "%d\t%s\n", answer.Counts[reason], cli.Printable(reason))
	}
	if len(answer.Refused) > 0 {
		fmt.Fprintln(w, "\nAT\tREASON\tEVENT")
	}
	var hints []string
	for _, r := range answer.Refused {
		reason := r.Reason
		if r.Field != "" && !strings.Contains(reason, r.Field) {
			reason += " (" + r.Field + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.At.UTC().Format(time.RFC3339), cli.Printable(reason),
			cli.Printable(compactJSON(r.Event)))
		if hint := hintOf(r); r.Hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print refused events: %w", err)
	}
	for _, hint := range hints {
		fmt.Fprintln(t.Out, "\n"+cli.Printable(hint))
	}
	return nil
}

// hintOf is the hint of a refusal, with the name that it is about.
func hintOf(r api.RefusedEvent) string {
	var e api.Event
	_ = json.Unmarshal(r.Event, &e) // a refusal with a hint has the event
	return fmt.Sprintf("%q: %s", e.EventName, r.Hint)
}

// maxShownEvent is how many characters of an event a line shows.
const maxShownEvent = 200

// compactJSON returns JSON in one line, cut to a length.
func compactJSON(text json.RawMessage) string {
	runes := []rune(string(text))
	if len(runes) > maxShownEvent {
		return string(runes[:maxShownEvent]) + "..."
	}
	return string(runes)
}

func seenEventsCommand(t *command.Tool) *cobra.Command {
	days := api.DefaultSeenDays
	cmd := command.Show(t, &cobra.Command{
		Use:   "seen",
		Short: "List the kinds of events that arrived in the last days, and their facets",
		Long: "List the accepted events of the last days in UTC by type and name, the facets of which they carried a\n" +
			"filter, and the user tokens that name nobody, such as undefined or 0, with the number of events. The\n" +
			"strategy need not score them: so you see which names and facets it can score. Imported events count on\n" +
			"the day of the import. The engine writes the counts every 5 seconds. Requires a key with the permission\n" +
			"recommendation.",
		Example: "  affinity events seen\n  affinity events seen --days 1 --json | jq .facets",
		Args:    cli.Subcommand,
		PreRunE: func(*cobra.Command, []string) error { return cli.Within("days", days, 1, api.MaxSeenDays) },
	}, "list what events contained", func(ctx context.Context, c *client.Client, _ []string) (api.SeenEvents, error) {
		return c.Events().Seen(ctx, days)
	}, printSeen)
	cmd.Flags().IntVar(&days, "days", days, "how many days, today included")
	return cmd
}

func printSeen(t *command.Tool, seen api.SeenEvents) error {
	if len(seen.Events) == 0 {
		fmt.Fprintf(t.Err, "no event arrived in the last %s\n", cli.Count(int64(seen.Days), "day"))
		return nil
	}
	table := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "EVENTS\tTYPE\tNAME")
	for _, e := range seen.Events {
		fmt.Fprintf(table, "%d\t%s\t%s\n", e.Count, cli.Printable(e.EventType), cli.Printable(e.EventName))
	}
	if len(seen.Facets) > 0 {
		fmt.Fprintln(table, "\nEVENTS\tFACET")
	}
	for _, f := range seen.Facets {
		fmt.Fprintf(table, "%d\t%s\n", f.Count, cli.Printable(f.Facet))
	}
	if len(seen.Nobody) > 0 {
		fmt.Fprintln(table, "\nEVENTS\tTOKEN THAT NAMES NOBODY")
	}
	for _, n := range seen.Nobody {
		fmt.Fprintf(table, "%d\t%s\n", n.Count, cli.Printable(n.UserToken))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(seen.Nobody) > 0 {
		fmt.Fprintf(t.Err, "a page or a server sends such a token where it knows no user, and all these visitors are "+
			"one user: let it send no event then, or a random token that it keeps; affinity user delete -- %s removes "+
			"what was collected\n", cli.Printable(seen.Nobody[0].UserToken))
	}
	if seen.Truncated {
		fmt.Fprintln(t.Err, "some names or facets are missing: there were more than the engine counts")
	}
	return nil
}
