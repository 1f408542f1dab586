package admin

import (
	"cmp"
	"context"
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

// Settings returns the command settings.
func Settings(t *command.Tool) *cobra.Command {
	return command.ShowAll(t, &cobra.Command{
		Use:   "settings",
		Short: "Print the settings, limits and keys of an app, as its operator has set them",
		Long: "Print an app as its operator has set it up: how long events count, where it lives, its limits, and its keys. A KEY is\n" +
			"named by the first 12 digits of its hash; * marks the one that the command uses. A limit marked with * is set for this\n" +
			"app, the others are the engine's defaults. The command changes nothing: `affinity app` does, with the operator's\n" +
			"credentials. Requires a key with the permission admin.",
		Example: "  affinity settings\n  affinity settings --json",
		Args:    cli.Subcommand,
	}, "read the settings of the app", func(ctx context.Context, c *client.Client,
		_ []string) (answer api.AppSettings, _ error) {
		for more := true; more; more = answer.Cursor != "" {
			page, err := c.AppSettings(ctx, api.AppSettingsQuery{Limit: api.MaxKeys, Cursor: answer.Cursor})
			if err != nil {
				return answer, err
			}
			page.Keys = append(answer.Keys, page.Keys...)
			answer = page
		}
		return answer, nil
	}, printSettings)
}

func printSettings(t *command.Tool, a api.AppSettings) error {
	table := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(table, "%s\t%s\n", name, cli.Printable(fmt.Sprint(value))) }
	limited := func(name, field string, n int) {
		if slices.Contains(a.OwnLimits, field) {
			line(name, fmt.Sprintf("%d *", n))
			return
		}
		line(name, n)
	}
	line("app", a.ID)
	line("created", a.CreatedAt.UTC().Format(time.RFC3339))
	if a.Region != "" {
		line("region", a.Region+also(a.MovingTo != "", ", moves to "+a.MovingTo))
	}
	line("tables", choose(a.Isolated, "its own", "shared with other apps"))
	line("queues", choose(a.Dedicated, "its own", "shared with other apps"))
	line("retention", retention(a.RetentionDays))
	line("consistency", a.Consistency)
	line("browser ranking", choose(a.BrowserRanking, "on", "off"))
	line("segments", choose(a.Segments, "on", "off"))
	line("links between tokens", identityLine(a.Identity))
	if a.Residency != nil {
		line("users live in", residencyLine(*a.Residency))
	}
	if len(a.Purposes) > 0 {
		line("purposes", purposesLine(a.Purposes))
	}
	if a.Holdout != nil {
		line("held out", fmt.Sprintf("%s of the users, by the seed %s", percent(a.Holdout.Share), a.Holdout.Seed))
	}
	if a.Experiment != "" {
		line("experiment", a.Experiment)
	}
	line("strategy version", a.StrategyVersion)
	line("names of track calls", cmp.Or(names(a.TrackNames), "none"))
	limited("events per second", "eventsPerSecond", a.Limits.EventsPerSecond)
	limited("imported events per second", "importsPerSecond", a.Limits.ImportsPerSecond)
	limited("reads per second", "readsPerSecond", a.Limits.ReadsPerSecond)
	limited("jobs per hour", "jobsPerHour", a.Limits.JobsPerHour)
	limited("strategies per hour", "strategiesPerHour", a.Limits.StrategiesPerHour)
	limited("events of a user per day", "userEventsPerDay", a.Limits.UserEventsPerDay)
	line("write window", time.Duration(a.Limits.WriteWindowMs)*time.Millisecond)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(t.Out)
	return cli.Table(t.Out, "KEY\tNAME\tRIGHTS\tCREATED\tENDS\tONLY FOR\tDESCRIPTION", a.Keys, func(k api.AppKey) []any {
		return []any{
			k.ID + also(k.Current, " *"), cmp.Or(k.Name, "-"),
			strings.Join(k.ACL, ",") + also(k.HashTokens, " (hashes tokens)") +
				also(k.Region != "", " (users begin in "+k.Region+")") + also(k.Parent, " (parent)"),
			k.CreatedAt.UTC().Format(time.DateOnly),
			keyEnd(k, time.Now()), keyBounds(k), cmp.Or(k.Description, "-"),
		}
	})
}

// names lists types by names.
func names(types map[string]string) string {
	parts := slices.Sorted(maps.Keys(types))
	for i, name := range parts {
		parts[i] = name + "=" + types[name]
	}
	return strings.Join(parts, ", ")
}

// keyEnd says when a key ends.
func keyEnd(k api.AppKey, now time.Time) string {
	if k.ValidUntil == nil {
		return "never"
	}
	return k.ValidUntil.UTC().Format(time.RFC3339) + also(!now.Before(k.ValidUntil.Time), " (ended)")
}

// keyBounds says what a key is only for.
func keyBounds(k api.AppKey) string {
	var bounds []string
	if len(k.Indexes) > 0 {
		bounds = append(bounds, "indexes "+strings.Join(k.Indexes, ","))
	}
	if len(k.Referers) > 0 {
		bounds = append(bounds, "pages "+strings.Join(k.Referers, ","))
	}
	if k.AddressRate > 0 {
		bounds = append(bounds, cli.Count(k.AddressRate, "request")+" a minute from an address")
	}
	return cmp.Or(strings.Join(bounds, "; "), "-")
}

// also returns a text that is only said if something is so.
func also(so bool, text string) string { return choose(so, text, "") }

func choose(so bool, yes, no string) string {
	if so {
		return yes
	}
	return no
}

// residencyLine says where the users of an app live.
func residencyLine(r api.AppResidency) string {
	if r.Mode != "on" {
		return r.Home + ", others are prepared"
	}
	return strings.Join(r.Regions, ", ") + ", and begin by the " + r.Rule
}

// purposesLine names what an app uses events for.
func purposesLine(purposes []api.AppPurpose) string {
	var all []string
	for _, p := range purposes {
		all = append(all, p.Name+choose(p.Default, " (granted by default)", ""))
	}
	return strings.Join(all, ", ")
}

// identityLine says whether an app links tokens.
func identityLine(i api.AppIdentity) string {
	if i.Mode == "off" {
		return i.Mode
	}
	return fmt.Sprintf("%s, lookback %s, evidence of %s%s", i.Mode, i.Lookback,
		choose(i.Trust == "pages", "servers and pages", "servers"), also(i.Serve == "person", ", serves the person"))
}
