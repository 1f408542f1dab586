package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/schema"
)

const (
	narrow = schema.Narrow
	wide   = schema.Wide
)

func TestNames(t *testing.T) {
	for _, n := range schema.Names {
		if got, err := schema.Parse(string(n)); got != n || err != nil {
			t.Errorf("Parse(%q) = %q, %v", n, got, err)
		}
		if n.Other() == n || n.Other().Other() != n {
			t.Errorf("the other one of %s is %s", n, n.Other())
		}
	}
	for _, s := range []string{"", "Wide", "wide ", "json"} {
		if n, err := schema.Parse(s); n != "" || err == nil || !strings.Contains(err.Error(), "narrow and wide") {
			t.Errorf("Parse(%q) = %q, %v; want an error that names those there are", s, n, err)
		}
	}
}

func TestEncodings(t *testing.T) {
	for _, e := range []schema.Encoding{schema.JSON, schema.Compact} {
		if got, err := schema.ParseEncoding(string(e)); got != e || err != nil {
			t.Errorf("ParseEncoding(%q) = %q, %v", e, got, err)
		}
	}
	for _, s := range []string{"", "JSON", "wide"} {
		if e, err := schema.ParseEncoding(s); e != "" || err == nil || !strings.Contains(err.Error(), "json and compact") {
			t.Errorf("ParseEncoding(%q) = %q, %v; want an error that names those there are", s, e, err)
		}
	}
}

// TestFamilies: of the narrow schema those are the types of events that are
// stored, which every cell lies in.
func TestFamilies(t *testing.T) {
	want := []string{string(event.View), string(event.Click), string(event.Conversion)}
	if diff := cmp.Diff(want, narrow.Families()); diff != "" {
		t.Errorf("narrow (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"e"}, wide.Families()); diff != "" {
		t.Errorf("wide (-want +got):\n%s", diff)
	}
}

func layout(read schema.Name, e schema.Encoding, write ...schema.Name) schema.Layout {
	return schema.Layout{Write: write, Read: read, Encoding: e}
}

func TestLayoutOfASchema(t *testing.T) {
	for _, test := range []struct{ got, want schema.Layout }{
		{schema.Of(narrow), layout(narrow, schema.JSON, narrow)},
		{schema.Of(wide), layout(wide, schema.Compact, wide)},
		{schema.Default(), layout(wide, schema.Compact, wide)},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := test.got.Validate(); err != nil {
			t.Error(err)
		}
	}
	if err := schema.Of("flat").Validate(); err == nil {
		t.Error("a schema that does not exist has a layout")
	}
}

func TestLayoutValidate(t *testing.T) {
	for _, test := range []struct {
		layout schema.Layout
		fault  string // "" where there is none
	}{
		{layout(wide, schema.JSON, wide), ""},
		{layout(narrow, schema.Compact, narrow), ""},
		{layout(narrow, schema.JSON, wide, narrow), ""},
		{layout(wide, schema.Compact, wide, narrow), ""},
		{schema.Layout{}, "not written"},
		{layout(wide, schema.JSON, narrow), "not written"},
		{layout("flat", schema.JSON, narrow, wide), "not written"},
		{layout("", schema.JSON, narrow, wide), "not written"},
		{layout(wide, schema.JSON), "not written"},
		{layout(wide, schema.JSON, wide, wide), "written twice"},
		{layout(wide, schema.JSON, wide, narrow, wide), "written twice"},
		{layout(wide, schema.JSON, wide, "flat"), `"flat" does not exist`},
		{layout(wide, schema.JSON, "", wide), `"" does not exist`},
		{layout(wide, "", wide), `encoding "" does not exist`},
		{layout(wide, "xml", wide), `encoding "xml" does not exist`},
	} {
		switch err := test.layout.Validate(); {
		case test.fault == "" && err != nil:
			t.Errorf("%v: %v", test.layout, err)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%v: %v, want %q", test.layout, err, test.fault)
		}
	}
}

func TestLayoutWrites(t *testing.T) {
	for _, test := range []struct {
		layout       schema.Layout
		narrow, wide bool
	}{
		{schema.Layout{}, false, false},
		{layout(narrow, schema.JSON, narrow), true, false},
		{layout(narrow, schema.JSON, wide), false, true}, // reading is not writing
		{layout(wide, schema.JSON, narrow, wide), true, true},
	} {
		if n, w := test.layout.Writes(narrow), test.layout.Writes(wide); n != test.narrow || w != test.wide {
			t.Errorf("%v writes narrow: %v, wide: %v", test.layout, n, w)
		}
	}
}

func TestLayoutCovers(t *testing.T) {
	both := layout(wide, schema.JSON, wide, narrow)
	for _, test := range []struct {
		layout, other schema.Layout
		want          bool
	}{
		{both, schema.Of(wide), true},
		{both, schema.Of(narrow), true},
		{both, layout(narrow, schema.Compact, narrow, wide), true},
		{schema.Of(wide), both, false},
		{schema.Of(wide), schema.Of(narrow), false},
		{schema.Of(wide), schema.Of(wide), true},
		{schema.Of(wide), schema.Layout{}, true},
		{schema.Layout{}, schema.Of(wide), false},
	} {
		if got := test.layout.Covers(test.other); got != test.want {
			t.Errorf("%v covers %v: %v", test.layout, test.other, got)
		}
	}
}

func TestLayoutEqual(t *testing.T) {
	both := layout(wide, schema.JSON, wide, narrow)
	for _, test := range []struct {
		a, b schema.Layout
		want bool
	}{
		{schema.Layout{}, schema.Layout{}, true},
		{schema.Layout{}, layout("", "", []schema.Name{}...), true},
		{both, both, true},
		{both, layout(wide, schema.JSON, narrow, wide), true},
		{both, layout(narrow, schema.JSON, wide, narrow), false},
		{both, layout(wide, schema.Compact, wide, narrow), false},
		{both, layout(wide, schema.JSON, wide), false},
		{both, layout(wide, schema.JSON, wide, wide), false}, // of as many
		{schema.Of(wide), schema.Layout{}, false},
		{layout(wide, schema.JSON, wide), layout(wide, schema.JSON, narrow), false},
	} {
		if ab, ba := test.a.Equal(test.b), test.b.Equal(test.a); ab != test.want || ba != test.want {
			t.Errorf("%v equals %v: %v, the other way round: %v", test.a, test.b, ab, ba)
		}
	}
}
