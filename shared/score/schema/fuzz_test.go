package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

const mostCount = 1 << 31

// checkValue checks EachCount on any bytes. It reads JSON as encoding/json
// does. What it reads from a compact value reads the same after it is written
// again.
func checkValue(family string, value []byte) string {
	var got []affinity.Count
	err := schema.EachCount(family, value, func(facet, value []byte, n int) {
		if (facet == nil) != (family == schema.FamilyWide) {
			n = -1 // which is recognized below
		}
		got = append(got, affinity.Count{Facet: string(facet), Value: string(value), N: n})
	})
	if len(got) > len(value)/3 {
		return fmt.Sprintf("%d filters of %d bytes", len(got), len(value))
	}
	for _, c := range got {
		if c.N < 0 || c.N > mostCount {
			return fmt.Sprintf("%v is out of bounds", c)
		}
	}
	if trimmed := bytes.TrimLeft(value, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		want, ok := reference(family, value)
		switch {
		case ok != (err == nil):
			return fmt.Sprintf("read as %v, %v; encoding/json has %v, %v", got, err, want, ok)
		case ok:
			if diff := differ(want, got); diff != "" {
				return "not what encoding/json has (-want +got):\n" + diff
			}
		}
		return ""
	}
	if err != nil {
		return ""
	}
	return checkAgain(family, got)
}

// checkAgain writes and reads counts again, compact.
func checkAgain(family string, counts []affinity.Count) string {
	n := narrow
	if family == schema.FamilyWide {
		n = wide
	}
	again, err := readCells(schema.NewEncoder(n, schema.Compact).Append(nil, event.View, "a", counts))
	if err != nil {
		return fmt.Sprintf("%v, written again: %v", counts, err)
	}
	return differ(stored(counts), again)
}

// reference reads JSON with nothing but encoding/json; ok where it is a list of
// whole filters.
func reference(family string, value []byte) (counts []affinity.Count, ok bool) {
	if !json.Valid(value) {
		return nil, false
	}
	if family == schema.FamilyWide {
		return referenceWide(value)
	}
	var list []struct {
		FacetName, FacetValue *string
		Count                 *int64
		Operator              *string
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if d.Decode(&list) != nil {
		return nil, false
	}
	for _, c := range list {
		whole := c.FacetName != nil && c.FacetValue != nil && c.Count != nil && (c.Operator == nil || *c.Operator == ":")
		if !whole || *c.Count < 0 || *c.Count > mostCount {
			return nil, false
		}
		counts = append(counts, affinity.Count{Facet: *c.FacetName, Value: *c.FacetValue, N: int(*c.Count)})
	}
	return counts, true
}

func referenceWide(value []byte) (counts []affinity.Count, ok bool) {
	var list [][]any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if d.Decode(&list) != nil {
		return nil, false
	}
	for _, c := range list {
		if len(c) != 3 || c[0] != ":" {
			return nil, false
		}
		text, isText := c[1].(string)
		number, isNumber := c[2].(json.Number)
		n, err := strconv.ParseInt(string(number), 10, 64)
		if !isText || !isNumber || err != nil || n < 0 || n > mostCount {
			return nil, false
		}
		counts = append(counts, affinity.Count{Value: text, N: int(n)})
	}
	return counts, true
}

func FuzzNarrow(f *testing.F) {
	for _, s := range []string{
		`[]`, ` [ ] `, "\x02", "\x02\x05color\x02:\x01\x03Red:\x02\x04Blue\x04size\x01:\x01\x01L",
		`[{"facetName":"color","facetValue":"Red","count":1},{"facetName":"size","facetValue":"L","count":20}]`,
		`[{"facetName":"color","facetValue":"red \"x\" \u00e9 \ud83d\ude00","count":3},{"facetName":"","facetValue":"é","count":0}]`,
		"[{\"facetName\":\"a\\ud800\",\"facetValue\":\"\xff\",\"count\":999999999}]",
		`[{"facetName":"a","facetValue":"b","count":1},{"count":1,"facetName":"a","facetValue":"b","operator":":"}] `,
		`[{"facetName":"a","facetValue":"b","count":1000000000,"operator":null}]`, `[{"FACETNAME":"a","facetvalue":"b","count":-0}]`,
		`[{"facetName":"a","facetValue":"b","count":1}]]`, `[null]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if fault := checkValue(string(event.View), value); fault != "" {
			t.Error(fault)
		}
	})
}

func FuzzWide(f *testing.F) {
	for _, s := range []string{
		`[]`, ` [ ] `, "\x01", "\x01:\x01\x03Red:\x02\x04Blue", "\x01:\xac\x02\x00",
		`[[":","Red",1],[":","Blue",20]]`, `[[":","red \"x\" \u00e9 \ud83d\ude00",3],[":","é",0]]`,
		"[[\":\",\"a\\ud800\xff\",999999999]]", `[[":","Red",1], ["\u003a","Blue",1000000000]]`, `[[":",null,1]]`, `[[":","Red",1.0]]`,
		`[[":","Red",1]]]`, `[[">","Red",1]]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if fault := checkValue(schema.FamilyWide, value); fault != "" {
			t.Error(fault)
		}
	})
}

// FuzzColumn: ParseColumn reads the fields that Qualifier wrote, and a
// qualifier that can be read means the same after it is written again.
func FuzzColumn(f *testing.F) {
	f.Add("view", "Product viewed", "color", "view,Product viewed,color")
	f.Add("view", `say "hi", again`, "a\r\nb", "view,\"say \"\"hi\"\", again\",\"a\r\nb\"")
	f.Add("", `"`, `""`, `,"""",""""""`)
	f.Add("a", "b", "", `a,b"c,"d",`)
	f.Fuzz(func(t *testing.T, typ, name, facet, qualifier string) {
		want := schema.Column{Type: typ, Name: name, Facet: facet}
		if got, err := schema.ParseColumn(schema.FamilyWide, schema.Qualifier(typ, name, facet)); got != want || err != nil {
			t.Errorf("%q is read as %q: %v", want, got, err)
		}
		c, err := schema.ParseColumn(schema.FamilyWide, qualifier)
		if err != nil {
			if c != (schema.Column{}) {
				t.Errorf("%q is not read, but as %q: %v", qualifier, c, err)
			}
			return
		}
		again, err := schema.ParseColumn(schema.FamilyWide, schema.Qualifier(c.Type, c.Name, c.Facet))
		if again != c || err != nil {
			t.Errorf("%q is read as %q, and once it is written again as %q: %v", qualifier, c, again, err)
		}
	})
}
