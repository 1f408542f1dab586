// Package price is the list of the prices of Google Cloud that estimates of costs use, each with its page and date.
// It keeps no data.
package price

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Price is what Google asks for a unit, in US dollars.
type Price struct {
	Name string `json:"name"`
	// USD is nil if no copy of the page has the number.
	USD    *float64 `json:"usd"`
	Unit   string   `json:"unit"`
	Region string   `json:"region"`
	Page   string   `json:"page"`
	Date   string   `json:"date"` // when the page was read
	Note   string   `json:"note"`
}

// Prices is a list of prices.
type Prices []Price

//go:embed prices.json
var pricesJSON []byte

// List returns the project's list of prices. Each call returns a new one.
func List() Prices {
	var p Prices
	if err := json.Unmarshal(pricesJSON, &p); err != nil {
		panic(fmt.Sprintf("prices.json: %v", err)) // a fault of the build: TestPricesHaveSources parses it
	}
	return p
}

// Find returns the price of that name, nil if the list has none.
func (p Prices) Find(name string) *Price {
	for i := range p {
		if p[i].Name == name {
			return &p[i]
		}
	}
	return nil
}

// USD returns a price in US dollars, false if it is not known.
func (p Prices) USD(name string) (float64, bool) {
	price := p.Find(name)
	if price == nil || price.USD == nil {
		return 0, false
	}
	return *price.USD, true
}

// SetAll sets prices from lines of NAME=USD. It skips empty lines and those that begin with #.
func (p Prices) SetAll(text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.Set(line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
}

// Set sets a price from NAME=USD.
func (p Prices) Set(text string) error {
	name, number, both := strings.Cut(text, "=")
	if !both {
		return fmt.Errorf("%q: must be NAME=USD, such as bigtable_nodes=0.65", text)
	}
	price := p.Find(name)
	if price == nil {
		var names []string
		for _, known := range p {
			names = append(names, known.Name)
		}
		slices.Sort(names)
		return fmt.Errorf("%q: there is no price %q; prices are %s", text, name, strings.Join(names, ", "))
	}
	usd, err := strconv.ParseFloat(number, 64)
	if err != nil || !(usd >= 0) || math.IsInf(usd, 0) {
		return fmt.Errorf("%q: %q must be dollars, 0 or more", text, number)
	}
	price.USD, price.Note = &usd, "given by the caller"
	return nil
}
