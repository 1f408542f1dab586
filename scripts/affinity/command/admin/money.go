package admin

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/scripts/affinity/render"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// moneyFlags are the flags of a command that says what use costs.
type moneyFlags struct {
	wanted bool
	terms  plan.Terms
	given  command.PriceFlags
	prices price.Prices // once check has been called
}

func (f *moneyFlags) add(cmd *cobra.Command) {
	f.terms = plan.Terms{EventsPerRequest: 4, RetentionDays: 90, Clusters: 1}
	flags := cmd.Flags()
	flags.BoolVar(&f.wanted, "money", false, "say what it costs on Google Cloud, as an estimate in US dollars")
	flags.Float64Var(&f.terms.EventsPerRequest, "events-per-request", f.terms.EventsPerRequest,
		"with --money: events that a client sends together")
	flags.Float64Var(&f.terms.RetentionDays, "retention", f.terms.RetentionDays,
		"with --money: days for which events are kept")
	flags.Float64Var(&f.terms.Clusters, "clusters", f.terms.Clusters,
		"with --money: Bigtable clusters, each with all data")
	f.given.Add(flags)
}

// check reads the prices. Its errors are those of wrong usage.
func (f *moneyFlags) check(cmd *cobra.Command) (err error) {
	if !f.wanted {
		for _, name := range []string{"price", "price-file", "events-per-request", "retention", "clusters"} {
			if cmd.Flags().Changed(name) {
				return cli.Usagef("--%s needs --money", name)
			}
		}
		return nil
	}
	if err := f.terms.Check(); err != nil {
		return cli.Usagef("%v", err)
	}
	f.prices, err = f.given.List()
	return err
}

func (f *moneyFlags) share(events, reads, rows, bytes int64) plan.Share {
	use := plan.Use{Events: float64(events), Reads: float64(reads), Rows: float64(rows), Bytes: float64(bytes)}
	return plan.ShareOf(use, f.terms, plan.Now, f.prices)
}

// money is what the use of an app costs, by day.
type money struct {
	Days []dayMoney `json:"days"`
	// Total is that of all days, and MonthUSD that of a month like those since the first day with use.
	Total    plan.Share `json:"total"`
	MonthUSD float64    `json:"monthUSD"`
	Terms    plan.Terms `json:"terms"`
	Estimate string     `json:"estimate"` // what it is, and what it leaves out
}

type dayMoney struct {
	Day string  `json:"day"`
	USD float64 `json:"usd"`
}

func (f *moneyFlags) of(u api.Usage) *money {
	m := &money{Terms: f.terms, Estimate: plan.LeftOut, Days: []dayMoney{}}
	for _, d := range u.Days {
		m.Days = append(m.Days, dayMoney{d.Day, f.share(d.Events, d.Reads, d.Rows, d.Bytes).USD})
	}
	m.Total = f.share(u.Total.Events, u.Total.Reads, u.Total.Rows, u.Total.Bytes)
	first := slices.IndexFunc(u.Days, func(d api.UsageDay) bool { return d.Events|d.Reads|d.Rows|d.Bytes != 0 })
	if first >= 0 {
		m.MonthUSD = m.Total.USD / float64(len(u.Days)-first) * plan.MonthDays
	}
	return m
}

// write writes the items of the total, and what the estimate is.
func (m *money) write(out io.Writer) error {
	fmt.Fprintln(out)
	err := cli.Table(out, "QUANTITY\tPRICE\tUSD\tWHAT", m.Total.Lines, func(l plan.Line) []any {
		usd := "unknown"
		if l.USD != nil {
			usd = dollars(*l.USD)
		}
		return []any{render.Quantity(l.Quantity), l.Price, usd, l.What}
	})
	if err == nil {
		least := ""
		if len(m.Total.Unknown) > 0 {
			least = "at least "
		}
		_, err = fmt.Fprintf(out, "\n%s%s US dollars, or %s%s in a month of such days\n", least, dollars(m.Total.USD), least,
			dollars(m.MonthUSD))
	}
	if err != nil {
		return err
	}
	return writeTerms(out, m.Terms, m.Total.Unknown)
}

// writeTerms says what an estimate is of.
func writeTerms(out io.Writer, t plan.Terms, unknown []string) error {
	if len(unknown) > 0 {
		fmt.Fprintf(out, "It leaves out %s, whose price is unknown:\nread it on its page, which `affinity plan` names, "+
			"and give it as --price NAME=USD.\n", strings.Join(unknown, ", "))
	}
	_, err := fmt.Fprintf(out, "%s\nIt takes %s events a request, %s days of retention and %s.\n",
		strings.ReplaceAll(plan.LeftOut, ". ", ".\n"), render.Quantity(t.EventsPerRequest),
		render.Quantity(t.RetentionDays), cli.Count(int(t.Clusters), "cluster"))
	return err
}

// dollars is a cost to the cent, or to a hundredth of one below a dollar.
func dollars(usd float64) string {
	if usd > 0 && usd < 1 {
		return fmt.Sprintf("%.4f", usd)
	}
	return fmt.Sprintf("%.2f", usd)
}
