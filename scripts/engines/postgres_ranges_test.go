package engines

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/boost"
)

// The expression finds the numbers of a range in columns of every type, and in no row a
// text that is no number.
func TestPostgresRanges(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	ranges := map[string]boost.Range{
		"<0": {From: math.Inf(-1), Below: 0}, "0-50": {From: 0, Below: 50}, "50-100": {From: 50, Below: 100}, "100+": {From: 100, Below: math.Inf(1)},
	}
	columns := []struct {
		kind   string
		values map[string][]string // by range, as PostgreSQL writes them
	}{
		{"numeric", map[string][]string{"<0": {"-0.01"}, "0-50": {"0", "49.99"}, "50-100": {"50.00", "99.999"}, "100+": {"100", "1e9"}}},
		{"float8", map[string][]string{"<0": {"-1e-9"}, "0-50": {"0"}, "50-100": {"50"}, "100+": {"100"}}},
		{"integer", map[string][]string{"<0": {"-1"}, "0-50": {"0"}, "50-100": {"50"}, "100+": {"100"}}},
		{"text", map[string][]string{"<0": {"-1"}, "0-50": {"0", "49.9"}, "50-100": {"50"}, "100+": {"100"}, "": {"", "cheap", "50 EUR", "50-100"}}},
		{"text[]", map[string][]string{"0-50": {"{ask,10}"}, "50-100": {"{60}"}, "": {"{}", "{ask}"}}},
		{"jsonb", map[string][]string{"0-50": {"10", "[10]", `"10"`, `["ask",10]`}, "50-100": {"99"}, "": {"null", "{}", "[]", `"ask"`, "true"}}},
	}
	for i, c := range columns {
		table := fmt.Sprint("ranges", i)
		run := func(statement string, params ...*string) [][]string {
			t.Helper()
			rows, err := p.query(statement, params)
			if err != nil {
				t.Fatalf("%s over %s: %v", statement, c.kind, err)
			}
			return rows
		}
		run("create table " + table + " (of text, price " + c.kind + ")")
		run("insert into " + table + " values ('', null)")
		for of, values := range c.values {
			for _, v := range values {
				run("insert into "+table+" values ($1, $2)", &of, &v)
			}
		}
		for name, r := range ranges {
			a, err := boost.Render(boost.Request{Engine: "postgres", Impact: 100, Limit: 1, Affinities: []boost.Affinity{{Facet: "price", Value: name, Score: 1}},
				Ranges: func(string, string) (*boost.Range, bool) { return &r, true }})
			if err != nil {
				t.Fatal(err)
			}
			e, params, err := bind(a)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := p.query("select of from "+table+" where "+e+" > 1.5", params)
			if err != nil {
				t.Fatalf("%s over %s: %v in %s", name, c.kind, err, e)
			}
			if len(rows) != len(c.values[name]) || slices.ContainsFunc(rows, func(row []string) bool { return row[0] != name }) {
				t.Errorf("%s over %s: %q, want %d rows", name, c.kind, rows, len(c.values[name]))
			}
		}
	}
}
