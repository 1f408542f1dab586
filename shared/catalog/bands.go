package catalog

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Bands are the numeric bands of an index: by facet the ascending numbers at which one
// band ends and the next begins. The numbers 0, 50, 100 make four bands, whose names are
// the values of filters:
//
//	<0      all numbers below 0
//	0-50    from 0, below 50
//	50-100  from 50, below 100
//	100+    from 100
//
// A facet without bands has its values as they are.
type Bands map[string][]float64

// Limits of the numeric bands of one index.
const (
	// MaxBandedFacets is the maximum number of facets with numeric bands.
	MaxBandedFacets = 50
	// MaxBandLimits is the maximum number of numbers of one facet: a profile keeps 1,000
	// values of a facet.
	MaxBandLimits = 100
)

// numberForm is a number of JSON. ParseFloat alone also takes 0x10, 1_000 and Inf.
var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number returns the number that a value of a record is, or false: a number, or a string
// that holds one. A number that is too large for a float64 is none.
func number(text string) (float64, bool) {
	if !numberForm.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// Of returns the name of the band of a facet that holds a number. The facet must have
// bands.
func (b Bands) Of(facet string, n float64) string {
	limits := b[facet]
	i := sort.Search(len(limits), func(i int) bool { return n < limits[i] })
	return Range{limits, i}.String()
}

// Range is a band: the numbers below limits[place], and from limits[place-1] on.
type Range struct {
	limits []float64
	place  int
}

// Range returns the band of a facet that has a name, or false if there is none.
func (b Bands) Range(facet, name string) (Range, bool) {
	limits := b[facet]
	if len(limits) == 0 {
		return Range{}, false
	}
	for i := range len(limits) + 1 {
		if r := (Range{limits, i}); r.String() == name {
			return r, true
		}
	}
	return Range{}, false
}

// From returns the lowest number of the band, or false if the band is open below.
func (r Range) From() (float64, bool) {
	if r.place == 0 {
		return 0, false
	}
	return r.limits[r.place-1], true
}

// Below returns the number that is above all of the band, or false if the band is open
// above.
func (r Range) Below() (float64, bool) {
	if r.place == len(r.limits) {
		return 0, false
	}
	return r.limits[r.place], true
}

// String returns the name of the band.
func (r Range) String() string {
	from, isFrom := r.From()
	below, isBelow := r.Below()
	switch {
	case !isFrom:
		return "<" + digits(below)
	case !isBelow:
		return digits(from) + "+"
	}
	return digits(from) + "-" + digits(below)
}

// digits returns a number of a band as names write it: the fewest digits that are this
// number, without an exponent.
func digits(n float64) string {
	return strconv.FormatFloat(n+0, 'f', -1, 64) // -0 + 0 is 0
}

// Equal reports whether two settings have the same bands.
func (b Bands) Equal(other Bands) bool { return maps.EqualFunc(b, other, slices.Equal) }

// decodeBands decodes and checks the numeric bands of a body, or returns nil if it has
// none. null is no bands. A facet is written as in attributesForFaceting.
func decodeBands(sent map[string]jsontext.Value) (Bands, error) {
	value, given := sent["numericBands"]
	if !given {
		return nil, nil
	}
	var raw map[string][]jsontext.Value
	if err := json.Unmarshal(value, &raw, lenient); err != nil {
		return nil, refuse(fault.Invalid,
			`numericBands must be an object with a list of numbers for each facet, such as {"price":[0,50,100]}`)
	}
	if len(raw) > MaxBandedFacets {
		return nil, refuse(fault.Invalid, "numericBands has %d facets, at most %d are accepted", len(raw), MaxBandedFacets)
	}
	bands := Bands{}
	for _, entry := range slices.Sorted(maps.Keys(raw)) {
		name := facet(entry)
		if _, twice := bands[name]; twice || name == "" {
			return nil, refuse(fault.Invalid, "numericBands names the attribute %q twice, or none", clip(entry))
		}
		limits, err := bandLimits(entry, raw[entry])
		if err != nil {
			return nil, err
		}
		bands[name] = limits
	}
	return bands, nil
}

func bandLimits(entry string, values []jsontext.Value) ([]float64, error) {
	if len(values) < 1 || len(values) > MaxBandLimits {
		return nil, refuse(fault.Invalid, "numericBands: %q has %d numbers, 1 to %d are accepted", clip(entry),
			len(values), MaxBandLimits)
	}
	limits := make([]float64, len(values))
	for i, v := range values {
		n, err := strconv.ParseFloat(string(v), 64)
		if v.Kind() != jsontext.KindNumber || err != nil || math.Abs(n) > maxBandLimit {
			return nil, refuse(fault.Invalid, "numericBands: %q holds %s, which is no number from -%s to %[3]s",
				clip(entry), clip(string(v)), digits(maxBandLimit))
		}
		if i > 0 && n <= limits[i-1] {
			return nil, refuse(fault.Invalid, "numericBands: the numbers of %q must ascend, but %s comes after %s",
				clip(entry), digits(n), digits(limits[i-1]))
		}
		limits[i] = n + 0
	}
	return limits, nil
}

// maxBandLimit bounds the numbers, and with them the names of bands: a name without an
// exponent would have 300 digits otherwise.
const maxBandLimit = 1e15
