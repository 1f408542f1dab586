package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// garment is an object of the clothing shop.
type garment struct {
	ObjectID   string   `json:"objectID"`
	Category   string   `json:"category"`
	Colour     string   `json:"colour"`
	Price      string   `json:"price"`
	PriceRange string   `json:"price_range"`
	Above      string   `json:"above_category_average"`
	Photo      []string `json:"photo"` // its place on the page, and how the model stands
	ShopPage   string   `json:"shop_page"`
}

// Columns of the source.
const (
	mainCategory = "page 1 (main category)"
	model        = "page 2 (clothing model)"
)

// codes are the words for the numbers in the source, by the authors' description.
var codes = map[string][]string{
	mainCategory: {"trousers", "skirts", "blouses", "sale"},
	"colour": {"beige", "black", "blue", "brown", "burgundy", "gray", "green", "navy blue", "of many colors", "olive",
		"pink", "red", "violet", "white"},
	"location":          {"top left", "top in the middle", "top right", "bottom left", "bottom in the middle", "bottom right"},
	"model photography": {"en face", "profile"},
	"price 2":           {"yes", "no"},
}

// clickstream converts the clicks of data set 553 of UCI. A visit stands for a user,
// since the source has none over several visits. It has days and the order of the
// clicks in a visit, but no times of day: the order becomes seconds.
func clickstream(in io.Reader) (events []event, objects []any, err error) {
	t, err := newTable(in, ';', "year", "month", "day", "order", "session id", mainCategory, model, "colour", "location",
		"model photography", "price", "price 2", "page")
	if err != nil {
		return nil, nil, err
	}
	seen := map[[2]string]bool{}             // visit and model
	found := map[string]map[string]*counts{} // by model and column
	for {
		ok, err := t.next()
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			break
		}
		e, err := click(t, seen)
		if err != nil {
			return nil, nil, err
		}
		events = append(events, e)
		id := e.ObjectIDs[0]
		if found[id] == nil {
			found[id] = map[string]*counts{}
		}
		for _, column := range []string{mainCategory, "colour", "location", "model photography", "price", "price 2", "page"} {
			value := t.cell(column)
			if words, ok := codes[column]; ok {
				n, err := strconv.Atoi(value)
				if err != nil || n < 1 || n > len(words) {
					return nil, nil, t.fault(column)
				}
				value = words[n-1]
			}
			if found[id][column] == nil {
				found[id][column] = &counts{}
			}
			found[id][column].add(value)
		}
	}
	for id, columns := range found {
		g, err := garmentOf(id, columns)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, g)
	}
	slices.SortFunc(objects, func(a, b any) int { return compareModels(a.(garment).ObjectID, b.(garment).ObjectID) })
	return events, objects, nil
}

// click returns the event of a row.
func click(t *table, seen map[[2]string]bool) (event, error) {
	day, err := time.Parse("2006-1-2", t.cell("year")+"-"+t.cell("month")+"-"+t.cell("day"))
	if err != nil {
		return event{}, fmt.Errorf("%w: %w", t.fault("day"), err)
	}
	order, err := strconv.Atoi(t.cell("order"))
	if err != nil || order < 1 {
		return event{}, t.fault("order")
	}
	visit, id := t.cell("session id"), t.cell(model)
	if visit == "" || len(id) < 2 {
		return event{}, t.fault(model)
	}
	name := "Product Clicked"
	switch {
	case seen[[2]string{visit, id}]:
		name = "Product Clicked Again"
	case t.cell(mainCategory) == "4":
		name = "Sale Product Clicked"
	}
	seen[[2]string{visit, id}] = true
	return event{"click", name, "session-" + visit, day.Add(time.Duration(order) * time.Second).UnixMilli(),
		[]string{id}}, nil
}

// garmentOf returns the object of a model: the most frequent value of each column.
func garmentOf(id string, columns map[string]*counts) (garment, error) {
	price := columns["price"].most()
	dollars, err := strconv.Atoi(price)
	if err != nil || dollars < 0 {
		return garment{}, fmt.Errorf("the price of %s is %q", id, price)
	}
	band := dollars / 10 * 10
	return garment{
		ObjectID: id, Category: columns[mainCategory].most(), Colour: columns["colour"].most(), Price: price,
		PriceRange: fmt.Sprintf("%d-%d", band, band+9), Above: columns["price 2"].most(),
		Photo:    []string{columns["location"].most(), columns["model photography"].most()},
		ShopPage: columns["page"].most(),
	}, nil
}

// compareModels orders models by their letter and number.
func compareModels(a, b string) int {
	x, _ := strconv.Atoi(a[1:])
	y, _ := strconv.Atoi(b[1:])
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(x, y), cmp.Compare(a, b))
}
