package suggest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Objects are objects of a catalog, of which Find asks what they have in common. The zero value is
// ready.
type Objects struct{ all [][]event.Filter }

// Add adds an object by its filters, which are distinct and sorted by facet. It keeps them.
func (o *Objects) Add(filters []event.Filter) { o.all = append(o.all, filters) }

// Len returns how many objects were added.
func (o *Objects) Len() int { return len(o.all) }

// facet is what the objects say of one facet.
type facet struct {
	name string
	all  int // objects that were added
	// objects carry it, and shared of them a value that another one carries too. values are its
	// different values.
	objects, shared, values int
	numbers                 []float64 // of the objects, in order; nil if a value is no number
}

// facets returns the facets of the objects, those that most objects share first.
func (o *Objects) facets() []facet {
	carried := map[event.Filter]int{} // by objects
	for _, filters := range o.all {
		for _, f := range filters {
			carried[f]++
		}
	}
	found := map[string]*facet{}
	texts := map[string]bool{} // facets with a value that is no number
	for f := range carried {
		if found[f.Facet] == nil {
			found[f.Facet] = &facet{name: f.Facet, all: len(o.all)}
		}
		found[f.Facet].values++
		if _, ok := number(f.Value); !ok {
			texts[f.Facet] = true
		}
	}
	for _, filters := range o.all {
		for start := 0; start < len(filters); {
			of, end, shares := found[filters[start].Facet], start, false
			for ; end < len(filters) && filters[end].Facet == of.name; end++ {
				shares = shares || carried[filters[end]] > 1
				if n, _ := number(filters[end].Value); !texts[of.name] {
					of.numbers = append(of.numbers, n)
				}
			}
			if of.objects++; shares {
				of.shared++
			}
			start = end
		}
	}
	list := make([]facet, 0, len(found))
	for _, f := range found {
		slices.Sort(f.numbers)
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b facet) int {
		return cmp.Or(cmp.Compare(b.shared, a.shared), cmp.Compare(a.values, b.values), strings.Compare(a.name, b.name))
	})
	return list
}

func number(text string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// Usable returns the facets of the objects that can be a taste, those that most objects share first.
func (o *Objects) Usable() (names []string) {
	for _, f := range o.facets() {
		if _, taken := f.judge(); taken {
			names = append(names, f.name)
		}
	}
	return names
}

// Bands returns the numeric bands of the facets of prices, by facet: none if the objects have no
// prices.
func (o *Objects) Bands() map[string][]float64 {
	bands := map[string][]float64{}
	for _, f := range o.facets() {
		if limits := f.bands(); limits != nil {
			bands[f.name] = limits
		}
	}
	return bands
}

// Limits of a taste.
const (
	// fewNumbers is up to how many different numbers are values of their own, such as a number of
	// stars or a size.
	fewNumbers = 20
	// sharedLeast is the share of all objects that must have a value in common with another one: a
	// fiftieth.
	sharedLeast = 50
)

// judge says whether a facet can be a taste, and why.
func (f facet) judge() (text string, taken bool) {
	has := fmt.Sprintf("%s on %s", count(int64(f.values), "value"), count(int64(f.objects), "object"))
	if f.objects < f.all {
		has += fmt.Sprintf(" of %d", f.all)
	}
	switch {
	case len(f.name) > strategy.MaxName:
		return has + ": the name is too long for a strategy", false
	case f.values == 1:
		return has + ": it tells no objects apart", false
	case f.bands() != nil:
		return fmt.Sprintf("%s: numbers from %s to %s are a taste only as bands", has, digits(f.numbers[0]),
			digits(f.numbers[len(f.numbers)-1])), true
	case f.numbers != nil && f.values > fewNumbers:
		return has + ": numbers, each of which is a value of its own", false
	case f.values*4 > f.objects && namesOne(f.name):
		return has + ": by its name, it says which object it is", false
	case f.shared*2 < f.objects:
		return has + ": most objects have a value of their own, so it says which object it is", false
	case f.shared*sharedLeast < f.all:
		return has + ": too few objects have one in common", false
	}
	return has + ": objects share them, so they can be a taste", true
}

// naming are the words of the names of facets that say which object it is.
var naming = []string{"id", "sku", "ean", "gtin", "isbn", "name", "title", "url", "link", "href", "image", "img",
	"picture", "thumbnail", "description", "slug", "headline"}

// namesOne reports whether a facet, by its name, says which object it is.
func namesOne(facet string) bool {
	words := strings.FieldsFunc(strings.ToLower(camel(facet)),
		func(r rune) bool { return strings.ContainsRune("._- /", r) })
	return len(words) > 0 && slices.Contains(naming, words[len(words)-1])
}

// camel puts a dot before each capital that follows a small letter: imageUrl is image.Url.
func camel(s string) string {
	var b strings.Builder
	small := false
	for _, r := range s {
		capital := r >= 'A' && r <= 'Z'
		if capital && small {
			b.WriteByte('.')
		}
		small = r >= 'a' && r <= 'z'
		b.WriteRune(r)
	}
	return b.String()
}

// prices are parts of the names of facets whose numbers are a taste as bands.
var prices = []string{"price", "preis", "prix", "precio", "prezzo", "cost", "amount", "msrp"}

// bands returns the limits of the bands of a price: round numbers, between which about as many
// objects lie. It returns nil for a facet that needs none.
func (f facet) bands() []float64 {
	name := strings.ToLower(f.name)
	if len(f.numbers) == 0 || f.values <= fewNumbers || f.numbers[0] < 0 ||
		!slices.ContainsFunc(prices, func(part string) bool { return strings.Contains(name, part) }) {
		return nil
	}
	limits := []float64{0}
	for i := 1; i < bandCount; i++ {
		limit := round(f.numbers[i*len(f.numbers)/bandCount])
		if limit > limits[len(limits)-1] && limit <= f.numbers[len(f.numbers)-1] {
			limits = append(limits, limit)
		}
	}
	if len(limits) < 2 {
		return nil
	}
	return limits
}

// bandCount is how many bands a price gets at most.
const bandCount = 5

// round returns the nearest number of one of these digits before its zeros, by ratio.
func round(n float64) float64 {
	if n <= 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(n)))
	best := power
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if math.Abs(math.Log(m*power/n)) < math.Abs(math.Log(best/n)) {
			best = m * power
		}
	}
	return best
}

func digits(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// count writes a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
