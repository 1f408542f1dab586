package track

import (
	"maps"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
)

// specified is what Segment's specification of e-commerce says of a name: the type of event,
// or why calls of the name are no events.
type specified struct {
	kind string
	why  string
	// v1 says that the name is of version 1, in which the id of a product is the property id.
	v1 bool
}

// specification has all names of both versions, those of version 1 that version 2 lists as
// other names of its own, and Product Purchased, which the engine adds.
var specification = map[string]specified{
	"Product List Viewed":            {kind: api.EventView},
	"Product List Filtered":          {kind: api.EventView},
	"Product Viewed":                 {kind: api.EventView},
	"Cart Viewed":                    {kind: api.EventView},
	"Product Clicked":                {kind: api.EventClick},
	"Product Added":                  {kind: api.EventClick},
	"Checkout Started":               {kind: api.EventClick},
	"Product Added to Wishlist":      {kind: api.EventClick},
	"Wishlist Product Added to Cart": {kind: api.EventClick},
	"Product Shared":                 {kind: api.EventClick},
	"Cart Shared":                    {kind: api.EventClick},
	"Product Reviewed":               {kind: api.EventClick},
	"Order Completed":                {kind: api.EventConversion},
	"Product Purchased":              {kind: api.EventConversion},

	"Viewed Product Category": {kind: api.EventView, v1: true},
	"Viewed Product":          {kind: api.EventView, v1: true},
	"Clicked Product":         {kind: api.EventClick, v1: true},
	"Added Product":           {kind: api.EventClick, v1: true},
	"Started Order":           {kind: api.EventClick, v1: true},
	"Completed Order":         {kind: api.EventConversion, v1: true},

	"Products Searched":             {why: ofSearch},
	"Promotion Viewed":              {why: ofPromotion},
	"Promotion Clicked":             {why: ofPromotion},
	"Product Removed":               {why: takesBack},
	"Product Removed from Wishlist": {why: takesBack},
	"Checkout Step Viewed":          {why: ofCheckout},
	"Checkout Step Completed":       {why: ofCheckout},
	"Payment Info Entered":          {why: ofCheckout},
	"Order Updated":                 {why: "it repeats the products of Order Completed"},
	"Order Refunded":                {why: takesBack},
	"Order Cancelled":               {why: takesBack},
	"Coupon Entered":                {why: ofCoupon},
	"Coupon Applied":                {why: ofCoupon},
	"Coupon Denied":                 {why: ofCoupon},
	"Coupon Removed":                {why: ofCoupon},

	"Viewed Promotion":        {why: ofPromotion, v1: true},
	"Clicked Promotion":       {why: ofPromotion, v1: true},
	"Removed Product":         {why: takesBack, v1: true},
	"Viewed Checkout Step":    {why: ofCheckout, v1: true},
	"Completed Checkout Step": {why: ofCheckout, v1: true},
	"Updated Order":           {why: "it repeats the products of Completed Order", v1: true},
	"Refunded Order":          {why: takesBack, v1: true},
}

const (
	ofSearch    = "it is about a search and not about a product"
	ofPromotion = "it is about a promotion and not about a product"
	ofCheckout  = "it is a step of a checkout and names no product"
	ofCoupon    = "it is about a coupon and not about a product"
	takesBack   = "it takes back what another call said, and no event counts against a product"
)

// folded are the names of the specification, by their text in lower case.
var folded = func() map[string]string {
	names := make(map[string]string, len(specification))
	for name := range specification {
		names[strings.ToLower(name)] = name
	}
	return names
}()

// Names are the names of track calls that have a type of event in the specification, in order.
func Names() []string {
	names := slices.Sorted(maps.Keys(specification))
	return slices.DeleteFunc(names, func(name string) bool { return specification[name].kind == "" })
}

// Trim returns the name of a track call without white space around it and with one space
// between its words.
func Trim(name string) string { return strings.Join(strings.Fields(name), " ") }

// named returns the name of a call as the specification writes it, if that has it in any case.
func named(written string) (name string, s specified) {
	if s, ok := specification[written]; ok {
		return written, s
	}
	name = Trim(written)
	if known := folded[strings.ToLower(name)]; known != "" {
		name = known
	}
	return name, specification[name]
}

// Typed returns the call with the type that an app has given its name, unless the call says
// its type itself. names are types by names as Trim returns them.
func (c Call) Typed(names map[string]string) Call {
	if kind := names[c.written]; kind != "" && !c.typed {
		c.Name, c.EventType = c.written, kind
	}
	return c
}

// Ignored returns the reason for which calls of the name are no events, by the specification;
// empty: they may be.
func (c Call) Ignored() string {
	if why := specification[c.Name].why; c.EventType == "" && why != "" {
		return "Ignored: " + c.Name + " call: " + why
	}
	return ""
}

// Closest returns the name with a type, of the specification or of own, that is most like a
// name, and its type. The name is empty if none is like it.
func Closest(name string, own map[string]string) (closest, kind string) {
	if len(name) > 2*api.MaxEventName {
		return "", ""
	}
	plain := bare(name)
	least := len(plain)/4 + 1
	consider := func(other, of string) {
		d := distance(plain, bare(other))
		if d < least || d == least && closest != "" && other < closest {
			closest, kind, least = other, of, d
		}
	}
	for other, s := range specification {
		if s.kind != "" {
			consider(other, s.kind)
		}
	}
	for other, of := range own {
		consider(other, of)
	}
	return closest, kind
}

// bare is a name in lower case without what separates its words.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-.:/", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance is how many letters must be put in, taken out or replaced to make one text of
// the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
