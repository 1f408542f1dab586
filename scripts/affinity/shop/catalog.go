package shop

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// PriceBands are the numeric bands of the attribute price, in whole euros: 0-25
// is the first one that a product is in.
var PriceBands = []float64{0, 25, 50, 100, 200}

// Facets are the attributes that say what a product is like.
var Facets = []string{"categories.lvl0", "categories.lvl1", "brand", "color", "price", "tags"}

// Object is one product as the catalog route takes it.
type Object struct {
	ObjectID   string     `json:"objectID"`
	Name       string     `json:"name"`
	Brand      string     `json:"brand"`
	Color      string     `json:"color"`
	Categories Categories `json:"categories"`
	Price      float64    `json:"price"` // in euros
	Tags       []string   `json:"tags"`
	Image      string     `json:"image"` // a picture as a data URI
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
		{"price", priceBand(o.Price)},
	}
	for _, tag := range o.Tags {
		filters = append(filters, Filter{"tags", tag})
	}
	return filters
}

// priceBand names the band of a price as the engine does.
func priceBand(price float64) string {
	text := func(i int) string { return strconv.FormatFloat(PriceBands[i], 'f', -1, 64) }
	at := 0
	for at+1 < len(PriceBands) && price >= PriceBands[at+1] {
		at++
	}
	if at+1 == len(PriceBands) {
		return text(at) + "+"
	}
	return text(at) + "-" + text(at+1)
}

// dearest is the highest price, in euros.
const dearest = 500

// priceIn is a price in a band, which the number of the product chooses.
func priceIn(band string, n int) float64 {
	for i, from := range PriceBands {
		if priceBand(from) != band {
			continue
		}
		to := float64(dearest)
		if i+1 < len(PriceBands) {
			to = PriceBands[i+1]
		}
		euros := from + float64(n*7%int(to-from))
		return euros + 0.95
	}
	return 0
}

// department is a top category and its products. Each brand has a price band and
// a tag: those at its place in the lists beside it.
type department struct {
	name   string
	kinds  []string
	brands []string
	prices []string
	tags   []string // one per brand, and one for all
	shape  string   // of its products' pictures: a path in 40 by 40 units
}

// objectsPerDepartment has each pair of the three brands and six colors at least
// twice.
const objectsPerDepartment = 38

func departments() []department {
	return []department{
		{"Running", []string{"Road Shoe", "Trail Shoe", "Windbreaker", "Shorts"},
			[]string{"Stridewell", "Kestrel", "Fernhill"},
			[]string{"50-100", "100-200", "25-50"}, []string{"lightweight", "breathable", "waterproof", "reflective"},
			"M4 26l8-11 7 6 7 2q9 1 10 8H5z"},
		{"Kitchen", []string{"Casserole", "Chef's Knife", "Skillet", "Mortar"}, []string{"Ember & Oak", "Blanc", "Homestead"},
			[]string{"50-100", "25-50", "0-25"}, []string{"cast iron", "dishwasher safe", "handmade", "induction"},
			"M7 17h26v11q0 5-5 5H12q-5 0-5-5zM3 18h3v4H3zM34 18h3v4h-3zM10 11h20v4H10z"},
		{"Sneakers", []string{"High Top", "Low Top", "Slip-On", "Retro Runner"}, []string{"Vandal", "Kestrel", "Stridewell"},
			[]string{"200+", "100-200", "50-100"}, []string{"limited edition", "leather", "vegan", "retro"},
			"M6 10h9l3 8q10 4 17 6v7H6z"},
		{"Kids", []string{"Romper", "Raincoat", "Building Blocks", "Backpack"},
			[]string{"Littlebee", "Homestead", "Fernhill"},
			[]string{"0-25", "25-50", "50-100"}, []string{"machine washable", "organic cotton", "age 3-5", "age 0-2"},
			"M20 6a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM9 24h22v10H9z"},
		{"Audio", []string{"Headphones", "Turntable", "Speaker", "Amplifier"}, []string{"Northwave", "Monoplay", "Tessera"},
			[]string{"200+", "100-200", "50-100"}, []string{"hi-res", "wireless", "refurbished", "noise cancelling"},
			"M6 24q0-16 14-16t14 16v9h-7V22h3q-1-10-10-10T10 22h3v11H6z"},
		{"Outdoor", []string{"Tent", "Sleeping Bag", "Stove", "Rucksack"}, []string{"Cairn", "Fernhill", "Homestead"},
			[]string{"200+", "50-100", "25-50"}, []string{"waterproof", "ultralight", "recycled", "four seasons"},
			"M20 6l16 28H4zM20 20l-6 14h12z"},
		{"Beauty", []string{"Serum", "Lipstick", "Perfume", "Hair Oil"}, []string{"Blanc", "Verbena", "Littlebee"},
			[]string{"25-50", "100-200", "0-25"}, []string{"refill", "vegan", "unscented", "travel size"},
			"M16 5h8v7h-8zM13 14h14v20H13z"},
		{"Home", []string{"Lamp", "Cushion", "Rug", "Vase"}, []string{"Homestead", "Blanc", "Tessera"},
			[]string{"0-25", "50-100", "200+"}, []string{"recycled", "linen", "oak", "handmade"},
			"M13 6h14l6 16H7zM18 22h4v10h6v3H12v-3h6z"},
		// Texts in several scripts, one of which is written from right to left.
		{"Tea", []string{"龙井", "Пуэр", "شاي بالنعناع", "Matcha 🍵"}, []string{"茶里", "Самовар", "بيت الشاي"},
			[]string{"25-50", "0-25", "50-100"}, []string{"有机", "крепкий", "بلا كافيين", "gift 🎁"},
			"M7 14h22v4h6v10h-7q-3 6-10 6-11 0-11-12zM29 21v4h3v-4z"},
	}
}

// colors are those of the products, with the paint of their pictures.
var colors = []color{
	{"Black", "222"}, {"White", "fff"}, {"Blue", "36c"}, {"Green", "383"}, {"Red", "c33"}, {"Yellow", "eb2"},
}

type color struct{ name, paint string }

// picture draws a shape in a color, as a data URI of some 250 bytes.
func picture(shape, paint string) string {
	return "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 40'%3E%3Cpath fill='%23dde' " +
		"d='M0 0h40v40H0z'/%3E%3Cpath fill='%23" + paint + "' stroke='%23667' d='" + shape + "'/%3E%3C/svg%3E"
}

// catalog cycles through brands and colors, so that every seed has products for
// every taste. The second tag is random, and so is the price of all but the first
// product of each pair.
func catalog(r *rand.Rand) []Object {
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
				Name:       fmt.Sprintf("%s %s %s", brand, color.name, kind),
				Brand:      brand,
				Color:      color.name,
				Categories: Categories{Lvl0: dep.name, Lvl1: dep.name + " > " + kind},
				Price:      priceIn(price, i),
				Tags:       []string{dep.tags[b], dep.tags[other]},
				Image:      picture(dep.shape, color.paint),
			})
		}
	}
	return objects
}
