package measure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const plotWidth, plotHeight = 6.5 * vg.Inch, 4 * vg.Inch

// looks of the lines, in colors for the color-blind. Compact values are dashed:
// they often lie on top of JSON.
var looks = map[string]struct {
	color  color.RGBA
	dashes []vg.Length
	shape  draw.GlyphDrawer
}{
	NarrowJSON:    {color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, nil, draw.RingGlyph{}},
	NarrowCompact: {color.RGBA{R: 0xe6, G: 0x9f, A: 0xff}, dashed, draw.CircleGlyph{}},
	NarrowProto:   {color.RGBA{R: 0x80, G: 0x80, B: 0x80, A: 0xff}, dashed, draw.PlusGlyph{}},
	NarrowGob:     {color.RGBA{A: 0xff}, nil, draw.TriangleGlyph{}},
	WideJSON:      {color.RGBA{G: 0x72, B: 0xb2, A: 0xff}, nil, draw.SquareGlyph{}},
	WideCompact:   {color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, dashed, draw.BoxGlyph{}},
	WideClient:    {color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, nil, draw.CrossGlyph{}},
	History:       {color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, nil, draw.PyramidGlyph{}},
}

var dashed = []vg.Length{vg.Points(6), vg.Points(3)}

// plot draws a scenario as SVG.
func (r SchemasReport) plot(scenario string, out io.Writer) error {
	p, err := r.drawing(scenario)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(canvas))
	_, err = canvas.WriteTo(out)
	return err
}

// drawing is the plot of a scenario: the number of events on the x axis, seconds on
// the y axis, both logarithmic, and a line per schema.
func (r SchemasReport) drawing(scenario string) (*plot.Plot, error) {
	lines := map[string]plotter.XYs{}
	low, high := math.Inf(1), 0.0
	var results []SchemaResult
	for _, x := range r.Results {
		if x.Scenario != scenario {
			continue
		}
		seconds := max(x.Seconds, 1e-6) // the logarithm of 0 does not exist
		low, high = min(low, seconds), max(high, seconds)
		lines[x.Schema] = append(lines[x.Schema], plotter.XY{X: float64(x.Users * x.Events), Y: seconds})
		results = append(results, x)
	}
	p := axes(results)
	p.Y.Tick.Marker, p.Y.Min, p.Y.Max = decades(low, high)
	for _, name := range CompareSchemas {
		if lines[name] == nil {
			continue
		}
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", name, err)
		}
		look := looks[name]
		line.Color, line.Width, line.Dashes = look.color, vg.Points(1.5), look.dashes
		points.Color, points.Shape = look.color, look.shape
		p.Add(line, points)
		p.Legend.Add(name, line, points)
	}
	return p, nil
}

// axes is the plot of a scenario without its lines.
func axes(results []SchemaResult) *plot.Plot {
	p := plot.New()
	first, last := results[0], results[len(results)-1]
	p.Title.Text = fmt.Sprintf("%s: %d users", first.Scenario, first.Users)
	if first.Users != last.Users {
		p.Title.Text = fmt.Sprintf("%s: %d events a user", first.Scenario, first.Events)
	}
	p.X.Label.Text, p.Y.Label.Text = "events of all users", "seconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	var ticks plot.ConstantTicks
	for _, x := range results {
		n := x.Users * x.Events
		if len(ticks) == 0 || ticks[len(ticks)-1].Value != float64(n) {
			ticks = append(ticks, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
		}
	}
	p.X.Tick.Marker = ticks
	p.X.Min, p.X.Max = ticks[0].Value/1.1, ticks[len(ticks)-1].Value*1.1
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 224}, color.Gray{Y: 224}
	p.Add(grid)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = true, true, vg.Points(6), -vg.Points(6)
	for _, style := range []*font.Font{&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		style.Size = vg.Points(9)
	}
	return p
}

// decades returns the ticks of an axis from the power of ten below low to the one
// above high, and its ends.
func decades(low, high float64) (ticks plot.ConstantTicks, from, to float64) {
	first, last := int(math.Floor(math.Log10(low))), int(math.Floor(math.Log10(high)))+1
	for n := first; n <= last; n++ {
		power := math.Pow10(n)
		ticks = append(ticks, plot.Tick{Value: power, Label: strconv.FormatFloat(power, 'f', -1, 64)})
		for i := 2; i < 10 && n < last; i++ {
			ticks = append(ticks, plot.Tick{Value: power * float64(i)})
		}
	}
	return ticks, math.Pow10(first), math.Pow10(last)
}
