package main

// palette colors text. Each facet keeps its color; when off, text stays as it is.
type palette struct {
	on    bool
	given map[string]int
}

func newPalette(on bool) *palette { return &palette{on: on, given: map[string]int{}} }

// Blue, green, yellow, magenta, cyan, red: readable on dark and on light.
var ansiColors = []string{"\x1b[34m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m", "\x1b[31m"}

func (p *palette) paint(facet, text string) string {
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

func (p *palette) bold(text string) string {
	if !p.on {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}
