package schema_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

var (
	types     = rapid.SampledFrom([]event.Type{event.View, event.Click, event.Conversion})
	schemas   = rapid.SampledFrom(schema.Names)
	encodings = rapid.SampledFrom([]schema.Encoding{schema.JSON, schema.Compact})
	plain     = rapid.StringMatching(`[a-zA-Z0-9 _.-]{0,20}`)
	odd       = rapid.StringOf(rapid.RuneFrom([]rune("ab,;:\"'\\/<>&[]{}\x00\x01\b\t\n\f\r\x1f\x7f\u0080é\u2028\u2029\ufeff\ufffd😀")))
	texts     = rapid.OneOf(plain, plain, odd, rapid.String())
	anyBytes  = rapid.OneOf(texts, rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 5), func(b []byte) string { return string(b) }))
	numbers   = rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(0, 1<<31), rapid.Just(1_000_000_000), rapid.Just(999_999_999))
)

func drawCounts(t *rapid.T, text *rapid.Generator[string]) []affinity.Count {
	facets := rapid.SliceOfN(text, 1, 12).Draw(t, "facets")
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) affinity.Count {
		return affinity.Count{
			Facet: rapid.SampledFrom(facets).Draw(t, "facet"), Value: text.Draw(t, "value"), N: numbers.Draw(t, "count"),
		}
	})).Draw(t, "counts")
}

type loggedEvent struct {
	typ    event.Type
	name   string
	counts []affinity.Count
}

// stored returns counts as a row has them: by facet, otherwise in their order.
func stored(counts []affinity.Count) []affinity.Count {
	sorted := slices.Clone(counts)
	slices.SortStableFunc(sorted, func(a, b affinity.Count) int { return cmp.Compare(a.Facet, b.Facet) })
	return sorted
}

func differ(want, got []affinity.Count) string {
	return gocmp.Diff(want, got, cmpopts.EquateEmpty())
}

// TestRoundTrip writes events one after the other into one list of cells, as a
// row each, and reads them all at the end.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, e := schemas.Draw(t, "schema"), encodings.Draw(t, "encoding")
		encoder := schema.NewEncoder(n, e)
		var cells []schema.Cell
		var events []loggedEvent
		var ends []int
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			l := loggedEvent{types.Draw(t, "type"), anyBytes.Draw(t, "name"), drawCounts(t, anyBytes)}
			sent := slices.Clone(l.counts)
			cells = encoder.Append(cells, l.typ, l.name, sent)
			if !slices.Equal(sent, l.counts) {
				t.Fatalf("%v became %v", l.counts, sent)
			}
			events, ends = append(events, l), append(ends, len(cells))
		}
		for i := range cells { // a value is the cell's alone
			cells[i].Value = append(cells[i].Value, 0xff)[:len(cells[i].Value)]
		}
		first := 0
		for i, l := range events {
			checkRow(t, n, e, l, cells[first:ends[i]])
			first = ends[i]
		}
	})
}

// checkRow checks the cells of an event.
func checkRow(t *rapid.T, n schema.Name, e schema.Encoding, l loggedEvent, cells []schema.Cell) {
	facets := map[string]bool{}
	for _, c := range l.counts {
		facets[c.Facet] = true
	}
	want := 1
	if n == wide {
		want = len(facets)
	}
	if len(cells) != want {
		t.Fatalf("%d cells for %v, want %d", len(cells), l.counts, want)
	}
	for _, cell := range cells {
		column, err := schema.ParseColumn(cell.Family, cell.Qualifier)
		if err != nil || column.Type != string(l.typ) || column.Name != l.name || (n == narrow && column.Facet != "") {
			t.Fatalf("column %q %q of an event %s %q is read as %q: %v", cell.Family, cell.Qualifier, l.typ, l.name, column, err)
		}
		if !slices.Contains(n.Families(), cell.Family) {
			t.Fatalf("family %q", cell.Family)
		}
		held := slices.DeleteFunc(slices.Clone(l.counts), func(c affinity.Count) bool { return n == wide && c.Facet != column.Facet })
		checkEncoding(t, n, e, held, cell.Value)
	}
	got, err := readCells(cells)
	must.Succeed(t, err)
	if diff := differ(stored(l.counts), got); diff != "" {
		t.Fatalf("not read back (-want +got):\n%s", diff)
	}
}

// checkEncoding checks that a value is JSON if the encoding is JSON and JSON
// can hold its texts.
func checkEncoding(t *rapid.T, n schema.Name, e schema.Encoding, counts []affinity.Count, value []byte) {
	possible := !slices.ContainsFunc(counts, func(c affinity.Count) bool {
		return n == narrow && !utf8.ValidString(c.Facet) || !utf8.ValidString(c.Value)
	})
	if isJSON := value[0] == '['; isJSON != (possible && e == schema.JSON) {
		t.Fatalf("%v in %s is %q", counts, e, value)
	} else if isJSON && !json.Valid(value) {
		t.Fatalf("no JSON: %s", value)
	}
}

// TestJSONIsPublished: a client that knows only the published form reads the
// values of the encoder.
func TestJSONIsPublished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := drawCounts(t, texts)
		cells := schema.NewEncoder(narrow, schema.JSON).Append(nil, event.View, "a", counts)
		var got []affinity.Count
		var list []map[string]any
		must.Succeed(t, json.Unmarshal(cells[0].Value, &list))
		for _, m := range list {
			if len(m) != 3 {
				t.Fatalf("%v has other members", m)
			}
			got = append(got, affinity.Count{Facet: m["facetName"].(string), Value: m["facetValue"].(string), N: int(m["count"].(float64))})
		}
		if diff := differ(stored(counts), got); diff != "" {
			t.Fatalf("narrow (-want +got):\n%s", diff)
		}
		got = nil
		for _, cell := range schema.NewEncoder(wide, schema.JSON).Append(nil, event.View, "a", counts) {
			var list [][3]any
			must.Succeed(t, json.Unmarshal(cell.Value, &list))
			column, err := schema.ParseColumn(cell.Family, cell.Qualifier)
			must.Succeed(t, err)
			for _, item := range list {
				if item[0] != ":" {
					t.Fatalf("operator %v", item[0])
				}
				got = append(got, affinity.Count{Facet: column.Facet, Value: item[1].(string), N: int(item[2].(float64))})
			}
		}
		if diff := differ(stored(counts), got); diff != "" {
			t.Fatalf("wide (-want +got):\n%s", diff)
		}
	})
}

// TestQualifierIsCSV: encoding/csv reads the same fields in the published
// order. It makes \n of \r\n, so these are left out.
func TestQualifierIsCSV(t *testing.T) {
	noReturn := rapid.Map(texts, func(s string) string { return strings.ReplaceAll(s, "\r", "") })
	rapid.Check(t, func(t *rapid.T) {
		want := []string{noReturn.Draw(t, "type"), noReturn.Draw(t, "name"), noReturn.Draw(t, "facet")}
		q := schema.Qualifier(want[0], want[1], want[2])
		r := csv.NewReader(strings.NewReader(q))
		got, err := r.Read()
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q is read as %q: %v", q, got, err)
		}
	})
}

// otherJSON writes counts as other writers may: with blanks, members in any
// order, needless escapes and an explicit operator. Sometimes the list begins
// in the form of the encoder.
func otherJSON(t *rapid.T, n schema.Name, counts []affinity.Count) []byte {
	blank := func() string { return rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t\r "}).Draw(t, "blank") }
	text := func(s string) string {
		if rapid.Bool().Draw(t, "escape all") {
			var b strings.Builder
			for _, u := range utf16Of(s) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
			return `"` + b.String() + `"`
		}
		quoted, _ := json.Marshal(s)
		return string(quoted)
	}
	list := func(open, end string, items []string) string {
		for i := range items {
			items[i] = blank() + items[i] + blank()
		}
		return open + strings.Join(items, ",") + end
	}
	var items []string
	for _, c := range counts {
		number := strconv.Itoa(c.N)
		if n == wide {
			items = append(items, list("[", "]", []string{text(":"), text(c.Value), number}))
			continue
		}
		members := []string{`"facetName":` + blank() + text(c.Facet), `"facetValue":` + text(c.Value), `"count"` + blank() + ":" + number}
		if rapid.Bool().Draw(t, "operator") {
			members = append(members, `"operator":":"`)
		}
		items = append(items, list("{", "}", rapid.Permutation(members).Draw(t, "members")))
	}
	return []byte(blank() + list("[", "]", items) + blank())
}

func utf16Of(s string) (units []uint16) {
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			units = append(units, uint16(0xd800+r>>10), uint16(0xdc00+r&0x3ff))
			continue
		}
		units = append(units, uint16(r))
	}
	return units
}

func TestOtherFormsOfJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := schemas.Draw(t, "schema")
		utf := rapid.Map(texts, func(s string) string { return strings.ToValidUTF8(s, "?") })
		counts := drawCounts(t, utf)
		if n == wide {
			for i := range counts {
				counts[i].Facet = "f"
			}
		}
		value := otherJSON(t, n, counts)
		if first := rapid.IntRange(0, len(counts)).Draw(t, "as written here"); first > 0 {
			begin := schema.NewEncoder(n, schema.JSON).Append(nil, event.View, "a", counts[:first])[0].Value
			rest := bytes.TrimLeft(otherJSON(t, n, counts[first:]), " \t\r\n")[1:]
			value = append(slices.Clone(begin[:len(begin)-1]), ',')
			if first == len(counts) {
				value = value[:len(value)-1]
			}
			value = append(value, rest...)
			counts = append(stored(counts[:first]), counts[first:]...)
		}
		column := schema.Cell{Family: n.Families()[0], Qualifier: "a", Value: value}
		if n == wide {
			column.Qualifier = "view,a,f"
		}
		got, err := readCells([]schema.Cell{column})
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if diff := differ(counts, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", value, diff)
		}
	})
}

// TestCutOff: a value that was cut off yields only whole filters, and an error
// where the damage can be recognized. A compact value of whole filters is
// valid.
func TestCutOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := encodings.Draw(t, "encoding")
		counts := drawCounts(t, texts)
		for _, cell := range schema.NewEncoder(schemas.Draw(t, "schema"), e).Append(nil, event.View, "a", counts) {
			whole, err := readCells([]schema.Cell{cell})
			must.Succeed(t, err)
			isJSON := cell.Value[0] == '['
			for n := range len(cell.Value) {
				seen := 0
				err := schema.EachCount(cell.Family, cell.Value[:n], func(_, value []byte, count int) {
					if whole[seen].Value != string(value) || whole[seen].N != count {
						t.Fatalf("%q holds %q x %d, want %v", cell.Value[:n], value, count, whole[seen])
					}
					seen++
				})
				if err == nil && (isJSON || n == 0 || seen == len(whole)) {
					t.Fatalf("%q is cut off from %q, and not damaged", cell.Value[:n], cell.Value)
				}
			}
		}
	})
}

// TestDamage changes bytes of values: all counts that are read from them are
// within bounds.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := drawCounts(t, texts)
		n, e := schemas.Draw(t, "schema"), encodings.Draw(t, "encoding")
		for _, cell := range schema.NewEncoder(n, e).Append(nil, event.View, "a", counts) {
			for range 5 {
				at := rapid.IntRange(0, len(cell.Value)-1).Draw(t, "at")
				cell.Value[at] = rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("[]{}\",:\\019 "))).Draw(t, "byte")
			}
			if fault := checkValue(cell.Family, cell.Value); fault != "" {
				t.Fatalf("%q: %s", cell.Value, fault)
			}
		}
	})
}
