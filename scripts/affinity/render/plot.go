package render

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/affinityengine/affinity/shared/judge/lift"
)

// Lift is one line of a plot: a ratio with its interval.
type Lift struct {
	Name             string
	Ratio, Low, High float64
}

// The measures of a plot, in px.
const (
	plotWidth   = 720
	plotLeft    = 220 // of the axis; names are left of it
	plotRight   = 160 // of the figures right of the axis
	plotTop     = 64
	plotRow     = 34
	plotBottom  = 56
	plotTicks   = 6 // at most so many, about
	maxNameRune = 30
)

// Plot writes an SVG of ratios to a base, which stands at 1.
func Plot(out io.Writer, title, axis string, lifts []Lift) error {
	var p bytes.Buffer
	height := plotTop + plotRow*len(lifts) + plotBottom
	highest := 1.0
	for _, l := range lifts {
		highest = max(highest, l.High, l.Ratio)
	}
	step := lift.TickStep(highest, plotTicks)
	end := step * math.Ceil(highest/step)
	x := func(ratio float64) float64 { return plotLeft + ratio/end*(plotWidth-plotLeft-plotRight) }
	bottom := height - plotBottom
	fmt.Fprintf(&p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(&p, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(&p, `<text x="16" y="30" font-size="16" fill="#222">%s</text>`+"\n", escaped(title))
	for i := 0; float64(i)*step <= end*(1+1e-9); i++ {
		at := x(float64(i) * step)
		fmt.Fprintf(&p, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e4e4e4"/>`+"\n", at, plotTop-8, at, bottom)
		fmt.Fprintf(&p, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", at, bottom+18,
			strconv.FormatFloat(float64(i)*step, 'g', 6, 64)+"x")
	}
	fmt.Fprintf(&p, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888" stroke-dasharray="4 3"/>`+"\n", x(1),
		plotTop-8, x(1), bottom)
	fmt.Fprintf(&p, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", x(end/2), bottom+40,
		escaped(axis))
	for i, l := range lifts {
		y := plotTop + plotRow*i + plotRow/2
		color := "#1f6fb2" // better than the base
		switch {
		case l.High < 1:
			color = "#b2451f"
		case l.Low <= 1:
			color = "#777" // undecided
		}
		fmt.Fprintf(&p, `<text x="%d" y="%d" text-anchor="end" fill="#222">%s</text>`+"\n", plotLeft-12, y+4,
			escaped(shortened(l.Name)))
		fmt.Fprintf(&p, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="3"/>`+"\n", x(l.Low), y,
			x(l.High), y, color)
		fmt.Fprintf(&p, `<circle cx="%.1f" cy="%d" r="5" fill="%s"/>`+"\n", x(l.Ratio), y, color)
		fmt.Fprintf(&p, `<text x="%d" y="%d" fill="#222">%.2f (%.2f to %.2f)</text>`+"\n", plotWidth-plotRight+14,
			y+4, l.Ratio, l.Low, l.High)
	}
	p.WriteString("</svg>\n")
	_, err := out.Write(p.Bytes())
	return err
}

func shortened(name string) string {
	if r := []rune(name); len(r) > maxNameRune {
		return "…" + string(r[len(r)-maxNameRune+1:])
	}
	return name
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer does not fail
	return b.String()
}
