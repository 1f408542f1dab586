package shop

import (
	"math/rand/v2"
	"slices"
)

// Persona is a kind of visitor with a known taste.
type Persona struct {
	ID     string // also the beginning of its users' tokens
	Taste  string // in a sentence, to compare a profile with
	Phases []Phase
}

// Phase is what a persona loves from some day until its next phase.
type Phase struct {
	DaysAgo int      // how many days before the shop's clock it began
	Loves   []Filter // at most one filter per facet
}

// phaseAt is the number of the phase so many days before the shop's clock.
func (p Persona) phaseAt(daysAgo float64) int {
	at := 0
	for i, phase := range p.Phases {
		if daysAgo <= float64(phase.DaysAgo) {
			at = i
		}
	}
	return at
}

func personas() []Persona {
	sneakers := []Filter{{"categories.lvl0", "Sneakers"}, {"brand", "Vandal"}, {"color", "White"}, {"price", "200+"},
		{"tags", "limited edition"}}
	kids := []Filter{{"categories.lvl0", "Kids"}, {"brand", "Littlebee"}, {"color", "Yellow"}, {"price", "0-25"},
		{"tags", "machine washable"}}
	steady := func(id, taste string, loves ...Filter) Persona {
		return Persona{ID: id, Taste: taste, Phases: []Phase{{DaysAgo: HistoryDays, Loves: loves}}}
	}
	return []Persona{
		steady("runner", "runs a lot, loves Stridewell, wears blue",
			Filter{"categories.lvl0", "Running"}, Filter{"brand", "Stridewell"}, Filter{"color", "Blue"},
			Filter{"tags", "lightweight"}),
		steady("cook", "cooks at home, in red cast iron by Ember & Oak",
			Filter{"categories.lvl0", "Kitchen"}, Filter{"brand", "Ember & Oak"}, Filter{"color", "Red"},
			Filter{"tags", "cast iron"}),
		steady("collector", "collects white Vandal sneakers, the dearer the better", sneakers...),
		steady("parent", "buys for the children, cheap and yellow, mostly Littlebee", kids...),
		steady("listener", "wants black Northwave hi-fi and pays for it",
			Filter{"categories.lvl0", "Audio"}, Filter{"brand", "Northwave"}, Filter{"color", "Black"},
			Filter{"price", "200+"}),
		steady("camper", "sleeps outdoors, in green waterproof Cairn gear",
			Filter{"categories.lvl0", "Outdoor"}, Filter{"brand", "Cairn"}, Filter{"color", "Green"},
			Filter{"tags", "waterproof"}),
		steady("teadrinker", "drinks green tea by 茶里",
			Filter{"categories.lvl0", "Tea"}, Filter{"brand", "茶里"}, Filter{"color", "Green"},
			Filter{"tags", "有机"}),
		{ID: "newparent", Taste: "collected white Vandal sneakers until 9 days ago; since then it is all Littlebee " +
			"for the baby",
			Phases: []Phase{{DaysAgo: HistoryDays, Loves: sneakers}, {DaysAgo: 9, Loves: kids}}},
	}
}

// taste is that of some users of a persona in a phase.
type taste struct {
	persona      string
	phase        int
	brand, color int // how far from the persona's in the lists of the catalog
}

// tasteOf gives three of seven users the brand of their persona, and half of them
// its color. Otherwise what sells best in a category would be what each of its
// visitors likes.
func tasteOf(persona string, phase, n int) taste {
	return taste{persona, phase, max(n%7-1, 0) / 2, max(n/7%8-3, 0)}
}

// loves returns what these users love in place of what their persona does.
func (t taste) loves(phase Phase) []Filter {
	loves := slices.Clone(phase.Loves)
	brands := brandsOf(loves)
	for i, f := range loves {
		switch f.Facet {
		case "brand":
			loves[i].Value = brands[(slices.Index(brands, f.Value)+t.brand)%len(brands)]
		case "color":
			at := slices.IndexFunc(colors, func(c color) bool { return c.name == f.Value })
			loves[i].Value = colors[(at+t.color)%len(colors)].name
		}
	}
	return loves
}

// brandsOf lists the brands of the loved category.
func brandsOf(loves []Filter) []string {
	for _, d := range departments() {
		if slices.Contains(loves, Filter{"categories.lvl0", d.name}) {
			return d.brands
		}
	}
	return nil
}

// How much more often an object with a loved value is chosen. The category weighs
// most: visitors come for a kind of product, then choose brand and color.
func pull(facet string) float64 {
	switch facet {
	case "categories.lvl0":
		return 40
	case "brand", "color":
		return 14
	default:
		return 4
	}
}

// choice is a distribution over the objects: a cumulative weight per object.
type choice struct {
	objects []Object
	upTo    []float64
}

func newChoice(objects []Object, loves []Filter) *choice {
	c := &choice{objects: objects, upTo: make([]float64, len(objects))}
	sum := 0.0
	for i, o := range objects {
		weight, own := 1.0, o.Filters()
		for _, f := range loves {
			if slices.Contains(own, f) {
				weight *= pull(f.Facet)
			}
		}
		sum += weight
		c.upTo[i] = sum
	}
	return c
}

// pickNew chooses an object that is not among seen, if a few tries find one: people
// look on.
func (c *choice) pickNew(r *rand.Rand, seen map[string]bool) Object {
	const tries = 20
	o := c.pick(r)
	for range tries {
		if !seen[o.ObjectID] {
			break
		}
		o = c.pick(r)
	}
	seen[o.ObjectID] = true
	return o
}

func (c *choice) pick(r *rand.Rand) Object {
	at := r.Float64() * c.upTo[len(c.upTo)-1]
	i, _ := slices.BinarySearch(c.upTo, at)
	return c.objects[min(i, len(c.objects)-1)]
}
