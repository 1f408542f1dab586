package console

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// point is an event of a chart, with how much it counts there.
type point struct {
	at    time.Time
	typ   string
	value float64
}

// chart shows events by time and type. Its units are those of a drawing of 1000 x 100, which
// the page stretches.
type chart struct {
	Bars   []chartBar
	Curves []chartCurve
	// From and To are the days at the ends, and Step is how many days a bar has.
	From, To time.Time
	Step     int
	Most     string // the highest bar
	Types    []string
	Caption  string
	Label    string // in words, for those who do not see it
}

// chartBar is the part of a bar that one type has.
type chartBar struct {
	Class, Title  string
	X, Y, W, High string
}

// chartCurve is a curve of decay: at each time, the factor by which events of it count.
type chartCurve struct{ Name, Dash, Points string }

const (
	chartDays  = 14 // fewest
	chartBars  = 90 // most
	chartWidth = 1000.0
	chartHigh  = 100.0
	day        = 24 * time.Hour
)

var chartTypes = []string{string(event.View), string(event.Click), string(event.Conversion)}

// dashes tell curves apart without color.
var dashes = []string{"none", "7 4", "2 3", "10 3 2 3"}

// newChart draws points, oldest first, until now. write writes a value. It is nil without points.
func newChart(points []point, now time.Time, halfLives []string, write func(float64) string) *chart {
	if len(points) == 0 {
		return nil
	}
	last := now.UTC().Truncate(day)
	first := points[0].at.UTC().Truncate(day)
	for _, p := range points {
		if at := p.at.UTC().Truncate(day); at.After(last) {
			last = at
		}
	}
	if least := last.Add(-(chartDays - 1) * day); first.After(least) {
		first = least
	}
	days := int(last.Sub(first)/day) + 1
	c := &chart{From: first, To: last, Step: (days + chartBars - 1) / chartBars}
	n := (days + c.Step - 1) / c.Step
	sums := make([]map[string]float64, n)
	totals := map[string]float64{}
	most := 0.0
	for _, p := range points {
		i := min(max(int(p.at.UTC().Truncate(day).Sub(first)/day)/c.Step, 0), n-1)
		if sums[i] == nil {
			sums[i] = map[string]float64{}
		}
		sums[i][p.typ] += p.value
		totals[p.typ] += p.value
	}
	for _, s := range sums {
		sum := 0.0
		for _, x := range s {
			sum += x
		}
		most = math.Max(most, sum)
	}
	c.Most = write(most)
	c.draw(sums, most, write)
	c.describe(totals, write)
	c.curve(halfLives, n)
	return c
}

// draw stacks the types of each bar.
func (c *chart) draw(sums []map[string]float64, most float64, write func(float64) string) {
	if most <= 0 {
		return
	}
	width := chartWidth / float64(len(sums))
	for i, s := range sums {
		y := chartHigh
		for _, typ := range chartTypes {
			if s[typ] <= 0 {
				continue
			}
			high := math.Max(s[typ]/most*chartHigh, 0.8)
			y -= high
			c.Bars = append(c.Bars, chartBar{
				Class: typ, Title: c.period(i) + ": " + write(s[typ]) + " by " + typ + "s",
				X: coordinate(float64(i)*width + width*0.12), Y: coordinate(y), W: coordinate(width * 0.76), High: coordinate(high),
			})
		}
	}
}

// period names the days of a bar.
func (c *chart) period(i int) string {
	from := c.From.Add(time.Duration(i*c.Step) * day)
	if c.Step == 1 {
		return from.Format("2 Jan 2006")
	}
	return from.Format("2 Jan") + " to " + from.Add(time.Duration(c.Step-1)*day).Format("2 Jan 2006")
}

// describe says in words what the chart shows.
func (c *chart) describe(totals map[string]float64, write func(float64) string) {
	var parts []string
	for _, typ := range chartTypes {
		if totals[typ] > 0 {
			c.Types = append(c.Types, typ)
			parts = append(parts, write(totals[typ])+" by "+typ+"s")
		}
	}
	c.Label = fmt.Sprintf("Chart of %s to %s: %s", c.From.Format("2 Jan 2006"), c.To.Format("2 Jan 2006"),
		strings.Join(parts, ", "))
}

// curve draws how much an event of each time still counts: all of it at the right end.
func (c *chart) curve(halfLives []string, n int) {
	const steps = 100
	span := time.Duration(n*c.Step) * day
	for i, name := range halfLives {
		h, err := strategy.ParseHalfLife(name)
		if err != nil || h.Millis() <= 0 {
			continue
		}
		var b strings.Builder
		for s := range steps + 1 {
			age := float64(span.Milliseconds()) * float64(steps-s) / steps
			fmt.Fprintf(&b, "%s,%s ", coordinate(chartWidth*float64(s)/steps),
				coordinate(chartHigh*(1-math.Exp2(-age/h.Millis()))))
		}
		c.Curves = append(c.Curves, chartCurve{name, dashes[i%len(dashes)], strings.TrimSpace(b.String())})
	}
}

func coordinate(x float64) string { return fmt.Sprintf("%.1f", x) }
