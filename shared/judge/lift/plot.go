package lift

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// The measures of a plot, in the units of its view box. They suit the width of a phone.
const (
	plotWidth  = 480
	plotLeft   = 64
	plotRight  = 14
	plotTop    = 34
	plotLegend = 22 // a line of names
	plotHigh   = 220
	plotBottom = 34
	// namesInLine is how many names of arms a line has.
	namesInLine = 3
	plotTicks   = 6 // at most so many, about
)

// armColors are those of the arms of a plot, in their order. They can be read on white and on a dark page.
var armColors = []string{"#2f7fd0", "#d0562f", "#3f9a4f", "#8f6ad0", "#a08a1f"}

// Plot draws the lift over the days of a report as an SVG: for each arm a line through the lifts, and its intervals as
// a band. Text and axes have the color of the page around it. Its title and its description say in words what it shows.
func Plot(r api.ExperimentReport) []byte {
	p := newPlot(r)
	over := "the control"
	if len(r.Lift) > 0 {
		over = r.Lift[0].Over
	}
	title := fmt.Sprintf("%s: %s per user over %s", r.Experiment, r.Metric, over)
	id := "lift-" + r.Experiment
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" class="lift-plot" viewBox="0 0 %d %d" role="img" `+
		`aria-labelledby="%s-title %s-words" font-family="sans-serif" font-size="14" fill="currentColor">`,
		plotWidth, p.bottom+plotBottom, id, id)
	p.print(`<title id="%s-title">%s</title><desc id="%s-words">%s</desc>`, id, html.EscapeString(title), id,
		html.EscapeString(r.Words))
	p.print(`<text x="%d" y="22" font-size="15">%s</text>`, plotLeft, html.EscapeString(title))
	for v := p.low; v <= p.high+p.step/2; v += p.step {
		p.print(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="currentColor" stroke-opacity="0.15"/>`, plotLeft, p.y(v),
			plotWidth-plotRight, p.y(v))
		p.print(`<text x="%d" y="%.1f" text-anchor="end">%+.0f %%</text>`, plotLeft-8, p.y(v)+5, 100*v)
	}
	p.print(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="currentColor" stroke-dasharray="4 3"/>`, plotLeft, p.y(0),
		plotWidth-plotRight, p.y(0))
	p.print(`<text x="%d" y="%d">%s</text>`, plotLeft, p.bottom+24, html.EscapeString(r.From))
	p.print(`<text x="%d" y="%d" text-anchor="end">%s</text>`, plotWidth-plotRight, p.bottom+24, html.EscapeString(r.To))
	for i, l := range r.Lift {
		color := armColors[i%len(armColors)]
		p.arm(r.Series, l.Arm, color)
		p.print(`<text x="%d" y="%d" fill="%s">%s</text>`, plotLeft+140*(i%namesInLine),
			plotTop+14+plotLegend*(i/namesInLine), color, html.EscapeString(shortened(l.Arm)))
	}
	p.print("</svg>")
	return p.out.Bytes()
}

// PlotFile returns a plot as a file of its own, on white.
func PlotFile(r api.ExperimentReport) []byte {
	plot := Plot(r)
	head := bytes.IndexByte(plot, '\n') // the end of the first tag
	return fmt.Appendf(nil, "%s color=\"#222\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>%s",
		plot[:head-1], plot[head:])
}

// plot is a drawing under way.
type plot struct {
	out             bytes.Buffer
	first, last     int64 // days
	low, high, step float64
	top, bottom     int
}

// newPlot returns a drawing whose scale has all lifts and intervals.
func newPlot(r api.ExperimentReport) *plot {
	p := &plot{first: dayNumber(r.From), last: dayNumber(r.To), low: -0.05, high: 0.05}
	for _, point := range r.Series {
		for _, v := range []*float64{point.Relative, point.Low, point.High} {
			if v != nil { // an interval of few people may be endless
				p.low, p.high = min(p.low, max(*v, -1)), max(p.high, min(*v, 2))
			}
		}
	}
	p.step = TickStep(p.high-p.low, plotTicks)
	p.low, p.high = p.step*math.Floor(p.low/p.step), p.step*math.Ceil(p.high/p.step)
	p.top = plotTop + plotLegend*((len(r.Lift)+namesInLine-1)/namesInLine)
	p.bottom = p.top + plotHigh
	return p
}

func (p *plot) print(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func (p *plot) x(day string) float64 {
	return plotLeft + float64(dayNumber(day)-p.first)/max(1, float64(p.last-p.first))*(plotWidth-plotLeft-plotRight)
}

func (p *plot) y(v float64) float64 {
	return float64(p.top) + (p.high-min(max(v, p.low), p.high))/(p.high-p.low)*plotHigh
}

// arm draws the band and the line of an arm.
func (p *plot) arm(series []api.ReportPoint, arm, color string) {
	var line, upper, lower []string
	for _, point := range series {
		if point.Arm != arm || point.Relative == nil {
			continue
		}
		at := p.x(point.Day)
		line = append(line, fmt.Sprintf("%.1f,%.1f", at, p.y(*point.Relative)))
		if point.Low != nil && point.High != nil {
			upper = append(upper, fmt.Sprintf("%.1f,%.1f", at, p.y(*point.High)))
			lower = append([]string{fmt.Sprintf("%.1f,%.1f", at, p.y(*point.Low))}, lower...)
		}
		p.print(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`, at, p.y(*point.Relative), color)
	}
	p.print(`<polygon points="%s" fill="%s" fill-opacity="0.18" stroke="%s" stroke-opacity="0.35"/>`,
		strings.Join(append(upper, lower...), " "), color, color)
	p.print(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(line, " "), color)
}

// TickStep returns a round distance between ticks of an axis, of which there are about so many.
func TickStep(length float64, ticks int) float64 {
	rough := length / float64(ticks)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if factor*power >= rough {
			return factor * power
		}
	}
	return 10 * power
}

func dayNumber(day string) int64 {
	at, _ := time.Parse(time.DateOnly, day) // the engine writes days
	return at.Unix() / (24 * 60 * 60)
}

func shortened(name string) string {
	const most = 16
	if len(name) > most {
		return name[:most-1] + "…" // a name is ASCII
	}
	return name
}
