package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// ReportProgress is how far a report of an experiment is.
func ReportProgress(j api.ReportJob) Progress {
	return Progress{State: j.State, Planned: j.PlannedUsers, Visited: j.Users, Count: j.Events,
		Wait: api.Wait{Place: j.Place}}
}

// ExperimentReport writes what the arms of an experiment have shown, in words first.
func ExperimentReport(out io.Writer, r api.ExperimentReport, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintln(&text, colors.Bold(cli.Printable(r.Words)))
	who := "with an event in these days"
	if r.Population == "exposed" {
		who = "for whom an arm has answered"
	}
	fmt.Fprintf(&text, "\n%s from %s to %s (%s), %s %s", cli.Printable(r.Experiment), r.From, r.To,
		plural(int64(r.Days), "day"), plural(r.People, "user"), who)
	if r.Crossed > 0 {
		fmt.Fprintf(&text, ", %s of two arms", plural(r.Crossed, "user"))
	}
	fmt.Fprintf(&text, ":\n\n")
	columns := "ARM\tUSERS\tEXPECTED\tEXPOSED\tCLICKS\tCONVERSIONS\tREVENUE\t" + strings.ToUpper(r.Metric) +
		" PER USER\tLIFT\t95 % INTERVAL"
	err := cli.Table(&text, columns,
		r.Arms, func(a api.ReportArm) []any {
			lift, interval := "control", "-"
			for _, l := range r.Lift {
				if l.Arm == a.Name {
					lift, interval = Share(l.Relative), "-"
					if l.Low != nil && l.High != nil {
						interval = Share(l.Low) + " to " + Share(l.High)
					}
				}
			}
			return []any{a.Name, a.Users, int64(math.Round(a.Expected)), a.Exposed, a.Clicks, a.Conversions, revenue(a.Revenue),
				strconv.FormatFloat(a.PerUser, 'f', 4, 64), lift, interval}
		})
	if err == nil {
		err = attributed(&text, r)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "\nThe interval may be read every day. Log read at %s.\n", r.AsOf.UTC().Format(time.RFC3339))
	_, err = out.Write(text.Bytes())
	return err
}

// attributed writes what was bought after answers that the conversions name, if any do.
func attributed(text *bytes.Buffer, r api.ExperimentReport) error {
	if !slices.ContainsFunc(r.Arms, func(a api.ReportArm) bool { return a.Attributed.Conversions > 0 }) {
		return nil
	}
	fmt.Fprintf(text, "\nConversions that name the answer which led to them:\n\n")
	return cli.Table(text, "ARM\tCONVERSIONS\tREVENUE\tMEAN POSITION", r.Arms, func(a api.ReportArm) []any {
		position := "-"
		if p := a.Attributed.Position; p != nil {
			position = strconv.FormatFloat(*p, 'f', 1, 64)
		}
		return []any{a.Name, a.Attributed.Conversions, revenue(a.Attributed.Revenue), position}
	})
}

// Share writes a relative difference in percent, - if there is none.
func Share(of *float64) string {
	if of == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100**of)
}

// revenue writes amounts by currency.
func revenue(by map[string]float64) string {
	var parts []string
	for _, currency := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, strings.TrimSpace(strconv.FormatFloat(by[currency], 'f', 2, 64)+" "+currency))
	}
	return cmp.Or(strings.Join(parts, ", "), "0")
}
