package where_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/catalog/where"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

// shoe is the object of most tests.
type shoe struct {
	filters []string
	numbers map[string][]float64
}

func (s shoe) Carries(f event.Filter) bool { return slices.Contains(s.filters, f.Facet+":"+f.Value) }

func (s shoe) Numbers(attribute string) []float64 { return s.numbers[attribute] }

var red = shoe{
	filters: []string{"brand:Nike", "color:dark red", "price:<50", "link:https://a.example/?a=b", `size:6"`, "to:TO"},
	numbers: map[string][]float64{"price": {49.9}, "sizes": {40, 42}, "off": {0}},
}

func TestHolds(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                       true,
		"  ":                                     true,
		"brand:Nike":                             true,
		"brand:nike":                             false,
		"brand : Nike":                           true,
		`color:"dark red"`:                       true,
		`"color":"dark red"`:                     true,
		`size:"6\""`:                             true,
		"price:<50":                              true,
		"link:https://a.example/?a=b":            true,
		`to:"TO"`:                                true,
		"price < 50":                             true,
		"price<50":                               true,
		"price < 49.9":                           false,
		"price <= 49.9":                          true,
		"price >= 49.9":                          true,
		"price > 49.9":                           false,
		"price = 49.9":                           true,
		"price != 49.9":                          false,
		"price != 50":                            true,
		"weight < 50":                            false,
		"weight != 50":                           false,
		"NOT weight < 50":                        true,
		"off = -0":                               true,
		"sizes = 42":                             true,
		"sizes > 41":                             true,
		"sizes != 42":                            false,
		"price:10 TO 49.9":                       true,
		"price:50 TO 60":                         false,
		"sizes:41 TO 41.5":                       false,
		"brand:Nike AND price < 10":              false,
		"brand:Nike OR price < 10":               true,
		"brand:Puma AND price < 10 OR off = 0":   true,
		"brand:Puma AND (price < 10 OR off = 0)": false,
		"NOT brand:Puma AND NOT brand:Adidas":    true,
		"NOT (brand:Puma OR brand:Nike)":         false,
		"NOT NOT brand:Nike":                     true,
		"((brand:Nike))AND(price<50)":            true,
		"brand:Nike AND\n\tprice < 1e3":          true,
		"and:AND OR brand:Nike":                  true,
		`brand:"AND" OR brand:Nike`:              true,
		"brand:Nike AND brand:Nike AND brand:Puma": false,
	} {
		c, err := where.Parse(text)
		if text == "and:AND OR brand:Nike" { // AND is a word of a value here
			must.Succeed(t, err)
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := c.Holds(red); got != want {
			t.Errorf("%q holds: %v, want %v", text, got, want)
		}
		quoted, _ := json.Marshal(text)
		if c, err := where.Decode(quoted); err != nil || c.Holds(red) != want {
			t.Errorf("%s as JSON: %v %v", quoted, c.Holds(red), err)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]bool{
		"":                            true,
		" null ":                      true,
		`{"filter":"color:dark red"}`: true,
		`{"filter":"price < 50"}`:     true,
		`{"filter":"price:<50"}`:      true,
		`{"filter":"link:https://a.example/?a=b"}`:                  true,
		`{"not":{"filter":"brand:Nike"}}`:                           false,
		`{"and":[{"filter":"brand:Nike"},{"filter":"price > 50"}]}`: false,
		`{"or":[{"filter":"brand:Nike"},{"filter":"price > 50"}]}`:  true,
	} {
		if c, err := where.Decode([]byte(text)); err != nil || c.Holds(red) != want {
			t.Errorf("%s: %v %v", text, c.Holds(red), err)
		}
	}
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("(", 10) + "brand:Nike" + strings.Repeat(")", 10)
	many := "a:b" + strings.Repeat(" OR a:b", 100)
	for text, want := range map[string]string{
		"brand":                   `where ends at byte 6: want a colon or one of < <= = != >= > after "brand"`,
		"brand:":                  `where ends at byte 7: want a value after the colon; put one with spaces or signs in double quotes`,
		"brand:Nike Puma":         `where at byte 12: want AND, OR or the end, got "Puma"`,
		"brand:Nike and a:b":      `where at byte 12: want AND, OR or the end, got "and"`,
		"(brand:Nike":             `where ends at byte 12: want a )`,
		"brand:Nike)":             `where at byte 11: want AND, OR or the end, got ")"`,
		"price < cheap":           `where at byte 9: want a number such as 50 or 19.90, got "cheap"`,
		`price < "50"`:            `where at byte 9: want a number such as 50 or 19.90, got "50"`,
		"price < NaN":             `where at byte 9: want a number such as 50 or 19.90, got "NaN"`,
		"price:50 TO 10":          `where at byte 7: a range from 50 to 10 is empty: write the lower number first`,
		"price:5 TO":              `where ends at byte 11: want a number such as 50 or 19.90`,
		`color:"dark red`:         `where at byte 7: the quoted text has no end: add a "`,
		`"":x`:                    `where at byte 1: a filter needs a facet and a value, such as brand:Nike`,
		"price ! 50":              `where at byte 7: want one of < <= = != >= >, got "!"`,
		"AND":                     `where at byte 1: want a filter such as brand:Nike or a comparison such as price < 50, got "AND"`,
		"NOT":                     `where ends at byte 4: want a filter such as brand:Nike or a comparison such as price < 50`,
		deep:                      `where is deeper than 10 levels at byte 11`,
		many:                      `where must have at most 100 filters and comparisons, got 101`,
		strings.Repeat("a", 9000): `where has 9000 bytes, at most 8192 are accepted`,
		"a:\xff":                  `where is not valid UTF-8`,
	} {
		if _, err := where.Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`[]`:                          `where must be an object with exactly one of "and", "or", "not" and "filter"`,
		`{"and":[],"or":[]}`:          `where must be an object with exactly one of "and", "or", "not" and "filter"`,
		`{"and":[]}`:                  `where.and must be a list with at least one condition`,
		`{"and":[{"filter":7}]}`:      `where.and[0].filter must be a text such as "brand:Nike" or "price < 50"`,
		`{"not":{"filter":"brand:"}}`: `where.not.filter must have a value after the colon, such as brand:Nike`,
		`{"not":{"filter":"cheap"}}`:  `where.not.filter must be a filter such as "brand:Nike" or a comparison such as "price < 50", got "cheap"`,
		`{"filter":"a<5 OR b<5"}`:     `where.filter must be a filter such as "brand:Nike" or a comparison such as "price < 50", got "a<5 OR b<5"`,
		`{"nor":[]}`:                  `where has the unknown field "nor": want one of "and", "or", "not" and "filter"`,
		`7`:                           `where must be an object with exactly one of "and", "or", "not" and "filter"`,
		strings.Repeat(`{"not":`, 10) + `{"filter":"a:b"}` + strings.Repeat("}", 10): `where` + strings.Repeat(".not", 10) + ` is deeper than 10 levels`,
	} {
		if _, err := where.Decode([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAttributesAndRequired(t *testing.T) {
	c, err := where.Parse(`b < 5 AND (brand:Nike AND a:1 TO 2) AND NOT c:d AND (e:f OR b > 1)`)
	must.Succeed(t, err)
	if got := fmt.Sprint(c.Attributes(), c.Required()); got != "[a b] [{brand Nike}]" {
		t.Error(got)
	}
}

// tree is a condition as the definition reads.
type tree struct {
	kind  string // and, or, not, filter or a sign
	parts []tree
	n     int // of the filter, or the number
}

func (x tree) holds(o numbered) bool {
	switch x.kind {
	case "and":
		return x.parts[0].holds(o) && x.parts[1].holds(o)
	case "or":
		return x.parts[0].holds(o) || x.parts[1].holds(o)
	case "not":
		return !x.parts[0].holds(o)
	case "<":
		return o.number < x.n
	case "<=":
		return o.number <= x.n
	case "=":
		return o.number == x.n
	case "!=":
		return o.number != x.n
	case ">=":
		return o.number >= x.n
	case ">":
		return o.number > x.n
	}
	return o.filters&(1<<x.n) != 0
}

func (x tree) text() string {
	switch x.kind {
	case "and", "or":
		return "(" + x.parts[0].text() + ") " + strings.ToUpper(x.kind) + " (" + x.parts[1].text() + ")"
	case "not":
		return "NOT (" + x.parts[0].text() + ")"
	case "filter":
		return fmt.Sprintf("f:%d", x.n)
	}
	return fmt.Sprintf("n %s %d", x.kind, x.n)
}

func (x tree) json() string {
	switch x.kind {
	case "and", "or":
		return fmt.Sprintf(`{%q:[%s,%s]}`, x.kind, x.parts[0].json(), x.parts[1].json())
	case "not":
		return `{"not":` + x.parts[0].json() + `}`
	}
	return fmt.Sprintf(`{"filter":%q}`, x.text())
}

type numbered struct{ filters, number int }

func (o numbered) Carries(f event.Filter) bool {
	n, _ := strconv.Atoi(f.Value)
	return o.filters&(1<<n) != 0
}

func (o numbered) Numbers(string) []float64 { return []float64{float64(o.number)} }

func trees(depth int) *rapid.Generator[tree] {
	return rapid.Custom(func(t *rapid.T) tree {
		kinds := []string{"filter", "<", "<=", "=", "!=", ">=", ">"}
		if depth > 1 {
			kinds = append(kinds, "and", "or", "not", "and", "or", "not")
		}
		x := tree{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), n: rapid.IntRange(0, 3).Draw(t, "n")}
		for range map[string]int{"and": 2, "or": 2, "not": 1}[x.kind] {
			x.parts = append(x.parts, trees(depth-1).Draw(t, "part"))
		}
		return x
	})
}

// TestFormsAgree compares both forms of a condition with its definition on all objects.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := trees(5).Draw(t, "tree")
		text, err := where.Parse(x.text())
		must.Succeed(t, err)
		decoded, err := where.Decode([]byte(x.json()))
		must.Succeed(t, err)
		for filters := range 16 {
			for number := range 4 {
				o := numbered{filters, number}
				if want := x.holds(o); text.Holds(o) != want || decoded.Holds(o) != want {
					t.Fatalf("%s for %v: text %v, JSON %v, want %v", x.text(), o, text.Holds(o), decoded.Holds(o), want)
				}
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{`a:b AND NOT (c < 5 OR "d":"e\"")`, "a:1 TO 2", "((", `"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := where.Parse(text)
		if err == nil && c.Everything() != (strings.Trim(text, " \t\r\n") == "") {
			t.Errorf("%q: holds for everything: %v", text, c.Everything())
		}
		c.Holds(red)
	})
}
