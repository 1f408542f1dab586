package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// segmentRow is a filter as a form shows it.
type segmentRow struct {
	Facet, Value string
	Above        string // as it was typed
	HalfLife     string // as the strategy writes it; empty: its first
	Without      bool   // users for whom it holds are left out
	Fault        string
}

// blank reports whether nothing was typed.
func (r segmentRow) blank() bool { return r.Facet == "" && r.Value == "" }

// Hidden reports whether a field would change the facet or the value, or show less of it. The form
// then has no fields for them, and takes both from the JSON.
func (r segmentRow) Hidden() bool {
	fits := func(text string) bool { return plain(text) && text == strings.TrimSpace(text) }
	return r.Value != "" && (!fits(r.Facet) || !fits(r.Value) || len(r.Facet)+len(r.Value) > maxValueLink)
}

// Mark stands for the facet and the value: the first half for the facet.
func (r segmentRow) Mark() string { return jsonHash(r.Facet) + jsonHash(r.Value) }

// sameFacet reports whether a mark is that of another value of the row's facet.
func (r segmentRow) sameFacet(mark string) bool { return strings.HasPrefix(mark, jsonHash(r.Facet)) }

// Text is the filter as people read it.
func (r segmentRow) Text() string { return r.Facet + ": " + r.Value }

func rowOf(c api.SegmentCondition) (segmentRow, bool) {
	parsed, err := event.ParseFilter(c.Filter)
	if err != nil || c.Not != nil || len(c.And)+len(c.Or) > 0 {
		return segmentRow{}, false
	}
	r := segmentRow{Facet: parsed.Facet, Value: parsed.Value, HalfLife: c.HalfLife.String()}
	if c.Above != 0 {
		r.Above = plainNumber(c.Above)
	}
	return r, true
}

// partial says what a row lacks, empty if it lacks nothing. While a person types, it does not count.
func (r segmentRow) partial() string {
	switch {
	case r.blank():
		return ""
	case r.Facet == "":
		return "Type a facet, or remove this row"
	case r.Value == "":
		return "Type a value, or remove this row"
	}
	return ""
}

// filter is the condition of a row. ok is false if the row has none. A limit that is no number is a
// fault, and no part of the condition.
func (r *segmentRow) filter() (c api.SegmentCondition, ok bool) {
	if r.Facet == "" || r.Value == "" {
		return c, false
	}
	if strings.Contains(r.Facet, event.Operator) {
		r.Fault = "The name of a facet has no colon"
		return c, false
	}
	c.Filter = strings.ReplaceAll(r.Facet+event.Operator+r.Value, "%", "%25") // the engine decodes it
	if r.Above != "" {
		n, err := strconv.ParseFloat(r.Above, 64)
		if err != nil || n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			r.Fault = "Type a score of 0 or more"
		} else {
			c.Above = n
		}
	}
	if r.HalfLife != "" {
		h, err := strategy.ParseHalfLife(r.HalfLife)
		if err != nil {
			r.Fault = cmp.Or(r.Fault, "This is no half-life")
		}
		c.HalfLife = h
	}
	return c, true
}

// halfLifeChoice is a half-life to choose.
type halfLifeChoice struct{ Value, Text string }

// rowView is a row of the form with what it offers.
type rowView struct {
	segmentRow
	ID        int
	Offers    []string // values
	HalfLives []halfLifeChoice
	Max, Step string // of the slider; empty: there is none
	Swap      bool   // htmx replaces the slider
	SwapOffer bool   // and the values
}

// rows makes the rows of the form. of are the marks of the filters that the sliders of a page were
// made for, nil if the page is made now.
func (p *segmentPage) rows(of []string) {
	for i, r := range p.Form.Rows {
		row := rowView{segmentRow: r, ID: i, HalfLives: p.HalfLives}
		if r.HalfLife != "" && !slices.ContainsFunc(p.HalfLives,
			func(c halfLifeChoice) bool { return c.Value == r.HalfLife }) {
			row.HalfLives = append(slices.Clone(p.HalfLives), halfLifeChoice{r.HalfLife, span(r.HalfLife)})
		}
		if i < len(of) {
			row.Swap, row.SwapOffer = of[i] != r.Mark(), !r.sameFacet(of[i])
		}
		if of == nil {
			row.SwapOffer = true
		}
		p.Rows = append(p.Rows, row)
	}
}

// maxOffers is how many bytes of values a row offers.
const maxOffers = 2 << 10

// readOffers reads the values that a row offers for its facet.
func readOffers(v *visit, facet string) (offers []string) {
	got, err := v.engine.Segments().Values(v.Context(), facet, api.DefaultValues, 0)
	if err != nil {
		return nil // a person types the value
	}
	size := 0
	for _, value := range got.Values {
		if size += len(value.Value) + len(`<option value=""></option>`); size > maxOffers {
			break
		}
		if plain(value.Value) {
			offers = append(offers, value.Value)
		}
	}
	return offers
}

// offer reads the values of all facets whose rows need them.
func (p *segmentPage) offer(v *visit, a *asks) (after func()) {
	found := map[string]*part[[]string]{}
	for _, row := range p.Rows {
		if row.SwapOffer && row.Facet != "" && found[row.Facet] == nil {
			found[row.Facet] = &part[[]string]{}
			ask(a, found[row.Facet], func() ([]string, error) { return readOffers(v, row.Facet), nil })
		}
	}
	return func() {
		for i := range p.Rows {
			if values := found[p.Rows[i].Facet]; values != nil && p.Rows[i].SwapOffer {
				p.Rows[i].Offers = values.Got
			}
		}
	}
}

// slider gives a row a slider over the scores that its value has.
func (r *rowView) slider(above float64, h api.SegmentHistogram) {
	if h.Quantiles == nil {
		return
	}
	most := 0.0
	for _, b := range h.Buckets {
		if most = b.To; most > max(h.Quantiles.P99, above) {
			break
		}
	}
	if most > 0 {
		r.Max, r.Step = plainNumber(most), plainNumber(most/200)
	}
}
