package render

// Palette colors text. Each facet keeps its color. The zero value leaves text as
// it is.
type Palette struct {
	on    bool
	given map[string]int
}

// NewPalette returns a palette that colors text if on is set.
func NewPalette(on bool) *Palette { return &Palette{on: on, given: map[string]int{}} }

// Blue, green, yellow, magenta, cyan, red: readable on dark and on light.
var ansiColors = []string{"\x1b[34m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m", "\x1b[31m"}

func (p *Palette) paint(facet, text string) string {
	if !p.on {
		return text
	}
	n, ok := p.given[facet]
	if !ok {
		n = len(p.given)
		p.given[facet] = n
	}
	return ansiColors[n%len(ansiColors)] + text + "\x1b[0m"
}

// Bold returns text in bold.
func (p *Palette) Bold(text string) string {
	if !p.on {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}
