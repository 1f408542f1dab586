package measure

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// The measures of a plot, in px.
const (
	plotWidth, plotHeight                     = 720, 440
	plotLeft, plotTop, plotRight, plotBottom  = 80, 48, 24, 56
	legendLeft, legendTop, legendRow, markAt  = plotLeft + 12, plotTop + 16, 18, 14
	gray, darkGray, plain, dashed, markRadius = "#e0e0e0", "#555", "", "6 3", 4
)

// looks of the lines, in colors for the color-blind. Compact values are dashed:
// they often lie on top of JSON. filled marks tell lines of near colors apart.
var looks = map[string]struct {
	color, dashes string
	filled        bool
}{
	NarrowJSON:    {"#d55e00", plain, false},
	NarrowCompact: {"#e69f00", dashed, true},
	NarrowProto:   {"#808080", dashed, false},
	NarrowGob:     {"#000000", plain, false},
	WideJSON:      {"#0072b2", plain, false},
	WideCompact:   {"#56b4e9", dashed, true},
	WideClient:    {"#cc79a7", plain, false},
	History:       {"#009e73", plain, true},
}

type point struct{ x, y float64 }

// plot draws a scenario as SVG: the number of events on the x axis, seconds on the y axis,
// both logarithmic, and a line per schema.
func (r SchemasReport) plot(scenario string, out io.Writer) error {
	lines := map[string][]point{}
	var all []SchemaResult
	low, high := math.Inf(1), 0.0
	for _, x := range r.Results {
		if x.Scenario != scenario {
			continue
		}
		seconds := max(x.Seconds, 1e-6) // the logarithm of 0 does not exist
		low, high = min(low, seconds), max(high, seconds)
		lines[x.Schema] = append(lines[x.Schema], point{float64(x.Users * x.Events), seconds})
		all = append(all, x)
	}
	events := func(x SchemaResult) int { return x.Users * x.Events }
	most := slices.MaxFunc(all, func(a, b SchemaResult) int { return cmp.Compare(events(a), events(b)) })
	fewest := slices.MinFunc(all, func(a, b SchemaResult) int { return cmp.Compare(events(a), events(b)) })
	d := drawing{
		x: logAxis{float64(events(fewest)) / 1.1, float64(events(most)) * 1.1, plotLeft, plotWidth - plotRight},
		y: logAxis{decade(low), 10 * decade(high), plotHeight - plotBottom, plotTop},
	}
	title := fmt.Sprintf("%s: %d users", all[0].Scenario, all[0].Users)
	if all[0].Users != all[len(all)-1].Users {
		title = fmt.Sprintf("%s: %d events a user", all[0].Scenario, all[0].Events)
	}
	d.begin(title, all)
	row := 0
	for _, name := range CompareSchemas {
		if lines[name] != nil {
			d.line(name, lines[name], row)
			row++
		}
	}
	d.WriteString("</svg>\n")
	_, err := out.Write(d.Bytes())
	return err
}

// decade returns the power of ten at or below a number.
func decade(n float64) float64 { return math.Pow10(int(math.Floor(math.Log10(n)))) }

// logAxis maps numbers to px.
type logAxis struct{ low, high, from, to float64 }

func (a logAxis) at(n float64) float64 {
	return a.from + (a.to-a.from)*math.Log(n/a.low)/math.Log(a.high/a.low)
}

type drawing struct {
	bytes.Buffer
	x, y logAxis
}

func (d *drawing) text(x, y float64, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">`, x, y, anchor, darkGray)
	_ = xml.EscapeText(d, []byte(text)) // a buffer does not fail
	d.WriteString("</text>\n")
}

func (d *drawing) rule(x1, y1, x2, y2 float64) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, gray)
}

// begin draws the title and the axes.
func (d *drawing) begin(title string, all []SchemaResult) {
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	d.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	d.text((d.x.from+d.x.to)/2, 28, "middle", title)
	d.text((d.x.from+d.x.to)/2, plotHeight-16, "middle", "events of all users")
	d.text(d.x.from, plotTop-10, "end", "seconds")
	ticks := map[int]bool{}
	for _, x := range all {
		if n := x.Users * x.Events; !ticks[n] {
			ticks[n] = true
			at := d.x.at(float64(n))
			d.rule(at, d.y.from, at, d.y.to)
			d.text(at, d.y.from+18, "middle", strconv.Itoa(n))
		}
	}
	for n := d.y.low; n <= d.y.high*1.001; n *= 10 {
		at := d.y.at(n)
		d.rule(d.x.from, at, d.x.to, at)
		d.text(d.x.from-8, at+4, "end", strconv.FormatFloat(n, 'g', 3, 64))
	}
}

// line draws the line of a schema, and its row of the legend.
func (d *drawing) line(name string, points []point, row int) {
	look := looks[name]
	stroke := fmt.Sprintf(`stroke="%s" stroke-width="1.5" stroke-dasharray="%s"`, look.color, look.dashes)
	fill := "#fff"
	if look.filled {
		fill = look.color
	}
	mark := func(x, y float64) {
		fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="%d" fill="%s" stroke="%s"/>`+"\n", x, y, markRadius, fill, look.color)
	}
	d.WriteString(`<polyline fill="none" ` + stroke + ` points="`)
	for _, p := range points {
		fmt.Fprintf(d, "%.1f,%.1f ", d.x.at(p.x), d.y.at(p.y))
	}
	d.WriteString(`"/>` + "\n")
	for _, p := range points {
		mark(d.x.at(p.x), d.y.at(p.y))
	}
	at := float64(legendTop + legendRow*row)
	fmt.Fprintf(d, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" %s/>`+"\n", legendLeft, at, legendLeft+2*markAt, at, stroke)
	mark(legendLeft+markAt, at)
	d.text(legendLeft+2*markAt+8, at+4, "start", name)
}
