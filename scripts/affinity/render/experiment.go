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
					lift, interval = share(l.Relative), "-"
					if l.Low != nil && l.High != nil {
						interval = share(l.Low) + " to " + share(l.High)
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

// share writes a relative difference in percent, - if there is none.
func share(of *float64) string {
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

// The measures of a plot over days, in px.
const (
	seriesHeight = 320
	seriesLeft   = 72
	seriesRight  = 24
	seriesTop    = 64
	seriesBottom = 48
)

// armColors are those of the arms of a plot, in their order.
var armColors = []string{"#1f6fb2", "#b2451f", "#3a8f3a", "#7a4fb2", "#8f7a1f"}

// PlotSeries writes an SVG of the lift over the days of a report, with its intervals.
func PlotSeries(out io.Writer, r api.ExperimentReport) error {
	var p bytes.Buffer
	days, first, last := dayNumbers(r)
	low, high := -0.05, 0.05
	for _, point := range r.Series {
		for _, v := range []*float64{point.Relative, point.Low, point.High} {
			if v != nil { // an interval of few people may be endless
				low, high = min(low, max(*v, -1)), max(high, min(*v, 2))
			}
		}
	}
	step := tickStep(high - low)
	low, high = step*math.Floor(low/step), step*math.Ceil(high/step)
	x := func(day string) float64 {
		return seriesLeft + float64(days[day]-first)/max(1, float64(last-first))*(plotWidth-seriesLeft-seriesRight)
	}
	y := func(v float64) float64 {
		return seriesTop + (high-min(max(v, low), high))/(high-low)*(seriesHeight-seriesTop-seriesBottom)
	}
	fmt.Fprintf(&p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="13">`+"\n", plotWidth, seriesHeight, plotWidth, seriesHeight)
	fmt.Fprintf(&p, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	over := "the control"
	if len(r.Lift) > 0 {
		over = r.Lift[0].Over
	}
	fmt.Fprintf(&p, `<text x="16" y="30" font-size="16" fill="#222">%s</text>`+"\n",
		escaped(fmt.Sprintf("%s: %s per user over %s", r.Experiment, r.Metric, over)))
	for v := low; v <= high+step/2; v += step {
		fmt.Fprintf(&p, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e4e4e4"/>`+"\n", seriesLeft, y(v),
			plotWidth-seriesRight, y(v))
		fmt.Fprintf(&p, `<text x="%d" y="%.1f" text-anchor="end" fill="#555">%s</text>`+"\n", seriesLeft-8, y(v)+4,
			fmt.Sprintf("%+.0f %%", 100*v))
	}
	fmt.Fprintf(&p, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#888" stroke-dasharray="4 3"/>`+"\n", seriesLeft,
		y(0), plotWidth-seriesRight, y(0))
	for _, end := range []struct{ day, anchor string }{{r.From, "start"}, {r.To, "end"}} {
		at := map[string]int{"start": seriesLeft, "end": plotWidth - seriesRight}[end.anchor]
		fmt.Fprintf(&p, `<text x="%d" y="%d" text-anchor="%s" fill="#555">%s</text>`+"\n", at, seriesHeight-16, end.anchor,
			escaped(end.day))
	}
	for i, l := range r.Lift {
		plotArm(&p, r.Series, l.Arm, armColors[i%len(armColors)], x, y)
		fmt.Fprintf(&p, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", seriesLeft+140*i, 50, armColors[i%len(armColors)],
			escaped(shortened(l.Arm)))
	}
	p.WriteString("</svg>\n")
	_, err := out.Write(p.Bytes())
	return err
}

// plotArm draws an arm: a bar for each interval, and a line through the lifts.
func plotArm(p *bytes.Buffer, series []api.ReportPoint, arm, color string, x func(string) float64,
	y func(float64) float64) {
	var line []string
	for _, point := range series {
		if point.Arm != arm || point.Relative == nil {
			continue
		}
		at := x(point.Day)
		if point.Low != nil && point.High != nil {
			fmt.Fprintf(p, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.35" stroke-width="6"/>`+
				"\n", at, y(*point.Low), at, y(*point.High), color)
		}
		fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", at, y(*point.Relative), color)
		line = append(line, fmt.Sprintf("%.1f,%.1f", at, y(*point.Relative)))
	}
	fmt.Fprintf(p, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(line, " "), color)
}

// dayNumbers returns the numbers of the days of a report, and those of the first and the last one.
func dayNumbers(r api.ExperimentReport) (of map[string]int64, first, last int64) {
	of = map[string]int64{}
	number := func(day string) int64 {
		at, _ := time.Parse(time.DateOnly, day) // the engine writes days
		return at.Unix() / (24 * 60 * 60)
	}
	for _, point := range r.Series {
		of[point.Day] = number(point.Day)
	}
	return of, number(r.From), number(r.To)
}
