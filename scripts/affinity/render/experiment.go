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
	fmt.Fprintf(&text, "\n%s from %s to %s (%s), %s with an event in these days", cli.Printable(r.Experiment), r.From,
		r.To, plural(int64(r.Days), "day"), plural(r.People, "user"))
	if r.Crossed > 0 {
		fmt.Fprintf(&text, ", %s of two arms", plural(r.Crossed, "user"))
	}
	fmt.Fprintf(&text, ":\n\n")
	columns := "ARM\tUSERS\tEXPECTED\tCLICKS\tCONVERSIONS\tREVENUE\t" + strings.ToUpper(r.Metric) +
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
			return []any{a.Name, a.Users, int64(math.Round(a.Expected)), a.Clicks, a.Conversions, revenue(a.Revenue),
				strconv.FormatFloat(a.PerUser, 'f', 4, 64), lift, interval}
		})
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "\nThe interval may be read every day. Log read at %s.\n", r.AsOf.UTC().Format(time.RFC3339))
	_, err = out.Write(text.Bytes())
	return err
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
