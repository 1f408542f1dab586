package main

import (
	"cmp"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gift is an object of the gift shop.
type gift struct {
	ObjectID   string   `json:"objectID"`
	Name       string   `json:"name"`
	Colour     []string `json:"colour,omitempty"`
	Material   []string `json:"material,omitempty"`
	Keywords   []string `json:"keywords"`
	PriceRange string   `json:"price_range"`
}

// maxNamed is how many objects one event names at most.
const maxNamed = 20

var (
	product = regexp.MustCompile(`^\d{5}`)
	letters = regexp.MustCompile(`[a-z]+`)

	colours = []string{"amber", "black", "blue", "brown", "copper", "cream", "gold", "green", "grey", "ivory", "lilac",
		"multicolour", "orange", "pink", "purple", "red", "silver", "turquoise", "white", "yellow"}
	materials = map[string]string{
		"bead": "bead", "beaded": "bead", "ceramic": "ceramic", "porcelain": "ceramic", "enamel": "enamel", "felt": "felt",
		"crystal": "glass", "glass": "glass", "metal": "metal", "tin": "metal", "wire": "metal", "zinc": "metal",
		"paper": "paper", "cotton": "textile", "fabric": "textile", "knitted": "textile", "lace": "textile",
		"bamboo": "wood", "wicker": "wood", "wood": "wood", "wooden": "wood",
	}
	// common are words that say nothing of a product.
	common = []string{"set", "with", "and", "pack", "the", "for", "you", "from"}

	bands = []struct {
		below float64
		name  string
	}{{1, "under 1"}, {2, "1 to 2"}, {5, "2 to 5"}, {10, "5 to 10"}, {20, "10 to 20"}}
)

// invoice is what one row begins.
type invoice struct{ number, time string }

// onlineRetail converts the invoices of data set 352 of UCI, its sheet as CSV. Rows
// without a customer and rows that are no product are left out. The distinct products
// of an invoice at one time are an event, or several of 20.
func onlineRetail(in io.Reader) (events []event, objects []any, err error) {
	t, err := newTable(in, ',', "invoiceno", "stockcode", "description", "invoicedate", "unitprice", "customerid")
	if err != nil {
		return nil, nil, err
	}
	names, prices := map[string]*counts{}, map[string]*counts{}
	at := map[invoice]int{} // place in events of the invoice
	for {
		ok, err := t.next()
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			break
		}
		customer, _, _ := strings.Cut(t.cell("customerid"), ".") // some programs write numbers as 17850.0
		id := t.cell("stockcode")
		if customer == "" || !product.MatchString(id) {
			continue
		}
		if names[id] == nil {
			names[id], prices[id] = &counts{}, &counts{}
		}
		names[id].add(t.cell("description"))
		prices[id].add(t.cell("unitprice"))
		key := invoice{t.cell("invoiceno"), t.cell("invoicedate")}
		i, known := at[key]
		if !known {
			e, err := purchase(t, customer)
			if err != nil {
				return nil, nil, err
			}
			i = len(events)
			at[key], events = i, append(events, e)
		}
		if !slices.Contains(events[i].ObjectIDs, id) {
			events[i].ObjectIDs = append(events[i].ObjectIDs, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		g, err := giftOf(id, names[id].most(), prices[id].most())
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, g)
	}
	return split(events), objects, nil
}

// purchase returns the event of an invoice without its products.
func purchase(t *table, customer string) (e event, err error) {
	var at time.Time
	for _, layout := range []string{"1/2/2006 15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.RFC3339} {
		if at, err = time.Parse(layout, t.cell("invoicedate")); err == nil {
			break
		}
	}
	if err != nil {
		return e, t.fault("invoicedate")
	}
	name := "Products Purchased"
	if strings.HasPrefix(t.cell("invoiceno"), "C") {
		name = "Order Cancelled"
	}
	return event{EventType: "conversion", EventName: name, UserToken: "customer-" + customer, Timestamp: at.UnixMilli()}, nil
}

// split returns events that name at most maxNamed objects each.
func split(events []event) (parts []event) {
	for _, e := range events {
		for some := range slices.Chunk(e.ObjectIDs, maxNamed) {
			e.ObjectIDs = some
			parts = append(parts, e)
		}
	}
	return parts
}

// giftOf returns the object of a product with its most frequent name and price.
func giftOf(id, name, price string) (gift, error) {
	pounds, err := strconv.ParseFloat(price, 64)
	if err != nil {
		return gift{}, err
	}
	g := gift{ObjectID: id, Name: name, PriceRange: "20 and over", Keywords: []string{}}
	for _, b := range bands {
		if pounds < b.below {
			g.PriceRange = b.name
			break
		}
	}
	words := slices.Compact(slices.Sorted(slices.Values(letters.FindAllString(strings.ToLower(name), -1))))
	for _, w := range words {
		if slices.Contains(colours, w) {
			g.Colour = append(g.Colour, w)
		}
		if m := materials[w]; m != "" {
			g.Material = append(g.Material, m)
		}
		if len(w) > 2 && !slices.Contains(common, w) {
			g.Keywords = append(g.Keywords, w)
		}
	}
	slices.SortFunc(g.Material, cmp.Compare[string])
	g.Material = slices.Compact(g.Material)
	return g, nil
}
