package shop

import (
	"fmt"
	"math/rand/v2"
)

// Object is one product as the catalog route takes it.
type Object struct {
	ObjectID   string     `json:"objectID"`
	Name       string     `json:"name"`
	Brand      string     `json:"brand"`
	Color      string     `json:"color"`
	Categories Categories `json:"categories"`
	PriceRange string     `json:"price_range"` // in whole euros
	Tags       []string   `json:"tags"`
}

// Categories is the path of a product in the shop's tree, a key per level.
type Categories struct {
	Lvl0 string `json:"lvl0"`
	Lvl1 string `json:"lvl1"`
}

// Filter is one facet with one value of it.
type Filter struct{ Facet, Value string }

// Filters lists the facet values that the object carries, as a strategy names them.
func (o Object) Filters() []Filter {
	filters := []Filter{
		{"categories.lvl0", o.Categories.Lvl0},
		{"categories.lvl1", o.Categories.Lvl1},
		{"brand", o.Brand},
		{"color", o.Color},
		{"price_range", o.PriceRange},
	}
	for _, tag := range o.Tags {
		filters = append(filters, Filter{"tags", tag})
	}
	return filters
}

// carries reports whether the object has that value in that facet.
func (o Object) carries(f Filter) bool {
	for _, own := range o.Filters() {
		if own == f {
			return true
		}
	}
	return false
}

// department is a top category and its products. Each brand has a price band and
// a tag: those at its place in the lists beside it.
type department struct {
	name   string
	kinds  []string
	brands []string
	prices []string
	tags   []string // one per brand, and one for all
}

// objectsPerDepartment has each pair of the three brands and six colors at least
// twice.
const objectsPerDepartment = 38

func departments() []department {
	return []department{
		{"Running", []string{"Road Shoe", "Trail Shoe", "Windbreaker", "Shorts"},
			[]string{"Stridewell", "Kestrel", "Fernhill"},
			[]string{"50-100", "100-200", "25-50"}, []string{"lightweight", "breathable", "waterproof", "reflective"}},
		{"Kitchen", []string{"Casserole", "Chef's Knife", "Skillet", "Mortar"}, []string{"Ember & Oak", "Blanc", "Homestead"},
			[]string{"50-100", "25-50", "0-25"}, []string{"cast iron", "dishwasher safe", "handmade", "induction"}},
		{"Sneakers", []string{"High Top", "Low Top", "Slip-On", "Retro Runner"}, []string{"Vandal", "Kestrel", "Stridewell"},
			[]string{"200+", "100-200", "50-100"}, []string{"limited edition", "leather", "vegan", "retro"}},
		{"Kids", []string{"Romper", "Raincoat", "Building Blocks", "Backpack"},
			[]string{"Littlebee", "Homestead", "Fernhill"},
			[]string{"0-25", "25-50", "50-100"}, []string{"machine washable", "organic cotton", "age 3-5", "age 0-2"}},
		{"Audio", []string{"Headphones", "Turntable", "Speaker", "Amplifier"}, []string{"Northwave", "Monoplay", "Tessera"},
			[]string{"200+", "100-200", "50-100"}, []string{"hi-res", "wireless", "refurbished", "noise cancelling"}},
		{"Outdoor", []string{"Tent", "Sleeping Bag", "Stove", "Rucksack"}, []string{"Cairn", "Fernhill", "Homestead"},
			[]string{"200+", "50-100", "25-50"}, []string{"waterproof", "ultralight", "recycled", "four seasons"}},
		{"Beauty", []string{"Serum", "Lipstick", "Perfume", "Hair Oil"}, []string{"Blanc", "Verbena", "Littlebee"},
			[]string{"25-50", "100-200", "0-25"}, []string{"refill", "vegan", "unscented", "travel size"}},
		{"Home", []string{"Lamp", "Cushion", "Rug", "Vase"}, []string{"Homestead", "Blanc", "Tessera"},
			[]string{"0-25", "50-100", "200+"}, []string{"recycled", "linen", "oak", "handmade"}},
	}
}

// catalog cycles through brands and colors, so that every seed has products for
// every taste. The second tag is random, and so is the price of all but the first
// product of each pair.
func catalog(r *rand.Rand) []Object {
	colors := []string{"Black", "White", "Blue", "Green", "Red", "Yellow"}
	var objects []Object
	for d, dep := range departments() {
		for i := range objectsPerDepartment {
			b := i % len(dep.brands)
			kind, brand, color := dep.kinds[i%len(dep.kinds)], dep.brands[b], colors[i/len(dep.brands)%len(colors)]
			price := dep.prices[b]
			if i >= len(dep.brands)*len(colors) && r.IntN(2) == 0 {
				price = dep.prices[r.IntN(len(dep.prices))]
			}
			other := (b + 1 + r.IntN(len(dep.tags)-1)) % len(dep.tags)
			objects = append(objects, Object{
				ObjectID:   fmt.Sprintf("P%d%02d", d+1, i),
				Name:       fmt.Sprintf("%s %s %s", brand, color, kind),
				Brand:      brand,
				Color:      color,
				Categories: Categories{Lvl0: dep.name, Lvl1: dep.name + " > " + kind},
				PriceRange: price,
				Tags:       []string{dep.tags[b], dep.tags[other]},
			})
		}
	}
	return objects
}
