package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/event"
)

// topOrders are the values of --by.
var topOrders = map[string]func(usage.Counts) int64{
	"events":  func(c usage.Counts) int64 { return c.Events },
	"refused": func(c usage.Counts) int64 { return c.Refused },
	"reads":   func(c usage.Counts) int64 { return c.Reads },
	"rows":    func(c usage.Counts) int64 { return c.Rows },
	"bytes":   func(c usage.Counts) int64 { return c.Bytes },
}

// topOptions are the flags of `affinity app top`.
type topOptions struct {
	days, limit int
	by          string
	money       moneyFlags
}

func (a *appTool) topCommand() *cobra.Command {
	o := topOptions{}
	orders := slices.Sorted(maps.Keys(topOrders))
	cmd := &cobra.Command{
		Use:   "top",
		Short: "List the apps that use the most, each with its hottest user",
		Long: "List the apps that use the most today, or in the last days, in UTC; `affinity usage --help` says what is counted.\n" +
			"The hottest user of an app is the one with the most events of the last 7 days at most, and their number is a lower\n" +
			"bound: a process counts 100 users of an app. A deletion takes its user from the list. A hottest user such as\n" +
			"undefined or 0 is marked: a page sends such a token where it knows no user, and all its visitors become one user.\n\n" +
			"With --money, USD estimates what each app costs, by the prices of `affinity plan`.",
		Example: "  affinity app top\n  affinity app top --days 7 --by bytes --limit 5\n" +
			"  affinity app top --days 30 --money --price bigtable_nodes=0.65 --price bigtable_ssd=0.17",
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topOrders[o.by] == nil {
				return cli.Usagef("--by %q does not exist: there are %s", o.by, strings.Join(orders, ", "))
			}
			if o.days < 1 || o.days > usage.Keep || o.limit < 1 {
				return cli.Usagef("--days must be 1 to %d, and --limit at least 1", usage.Keep)
			}
			if err := o.money.check(cmd); err != nil {
				return err
			}
			return a.with(cmd, func(s engine) error { return a.top(cmd.Context(), s, o) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.days, "days", 1, "how many days to add up, today included")
	flags.StringVar(&o.by, "by", "events", "order: "+strings.Join(orders, ", "))
	flags.IntVar(&o.limit, "limit", 20, "how many apps to list")
	o.money.add(cmd)
	a.JSONFlag(cmd, command.JSONDocument)
	return cmd
}

// costly is what an app used, and what that costs.
type costly struct {
	usage.AppUse
	Money *plan.Share `json:"money,omitempty"`
}

func (a *appTool) top(ctx context.Context, s engine, o topOptions) error {
	top, err := a.usageOfApps(ctx, s, o)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	of := topOrders[o.by]
	slices.SortStableFunc(top, func(x, y usage.AppUse) int { return cmp.Compare(of(y.Counts), of(x.Counts)) })
	top = top[:min(len(top), o.limit)]
	listed := make([]costly, len(top))
	for i, use := range top {
		if listed[i].AppUse = use; o.money.wanted {
			share := o.money.share(use.Events, use.Reads, use.Rows, use.Bytes)
			listed[i].Money = &share
		}
	}
	if a.JSON {
		return cli.PrintJSON(a.Out, listed)
	}
	return a.printTop(listed, o)
}

func (a *appTool) printTop(top []costly, o topOptions) error {
	head := "APP\tEVENTS\tREFUSED\tREADS\tROWS\tBYTES\t"
	if o.money.wanted {
		head += "USD\t"
	}
	err := cli.Table(a.Out, head+"HOTTEST USER", top, func(use costly) []any {
		cells := []any{use.App, use.Events, use.Refused, use.Reads, use.Rows, use.Bytes}
		if use.Money != nil {
			cells = append(cells, dollars(use.Money.USD))
		}
		hottest := "-"
		if use.Hottest != nil {
			hottest = fmt.Sprintf("%s (at least %s)", use.Hottest.Token, cli.Count(use.Hottest.Events, "event"))
			if event.NamesNobody(use.Hottest.Token) {
				hottest += " names nobody: see affinity events seen --app " + use.App
			}
		}
		return append(cells, hottest)
	})
	if err != nil || !o.money.wanted {
		return err
	}
	return writeTerms(a.Err, o.money.terms, o.money.share(0, 0, 0, 0).Unknown)
}

// usageOfApps reads what all apps used: from a local engine, or from the Bigtable
// of a deployed one.
func (a *appTool) usageOfApps(ctx context.Context, s engine, o topOptions) (top []usage.AppUse, err error) {
	if s.local != nil {
		return s.local.Top(ctx, o.days)
	}
	apps, err := s.Apps(ctx)
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	if err := a.checkRegions(ctx, s.deployed.Store, apps...); err != nil {
		return nil, err
	}
	table, err := a.open.Usage(ctx, a.bigtables(s.deployed.Store))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	today := usage.DayOf(time.Now())
	return usage.Top(ctx, table, apps, today-usage.Day(o.days)+1, today)
}
