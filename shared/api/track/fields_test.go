package track_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
)

// What PHP and others write for nothing costs neither the call nor the good field beside it.
func TestEmptyFieldsLoseNothing(t *testing.T) {
	for _, empty := range []string{`null`, `""`, `{}`, `[]`, `[ ]`, `{ }`, `false`} {
		for _, test := range []struct {
			properties string
			want       []string
		}{
			{`{"product_id":"1","products":%s}`, []string{"1"}},
			{`{"products":[{"product_id":"2"}],"sku":%s}`, []string{"2"}},
			{`{"product_id":"1","search_index":"shoes","event_type":%s,"products":[{"sku":"2"},{"sku":null}]}`, []string{"1", "2"}},
		} {
			call := `{"type":"track","event":"Product Viewed","userId":"ann","properties":` + fmt.Sprintf(test.properties, empty) + `}`
			got, err := events(t, call)
			if err != nil || len(got) != 1 || !slices.Equal(got[0].ObjectIDs, test.want) {
				t.Errorf("%s: %+v, %v; want the objects %v", call, got, err, test.want)
			}
		}
		call := fmt.Sprintf(`{"type":"track","event":"Product Viewed","userId":%s,"anonymousId":"a1","properties":{"product_id":%s,"sku":"1"}}`, empty, empty)
		if got, err := events(t, call); err != nil || len(got) != 1 || got[0].UserToken != "a1" || !slices.Equal(got[0].ObjectIDs, []string{"1"}) {
			t.Errorf("%s: %+v, %v", call, got, err)
		}
		call = fmt.Sprintf(`{"type":"track","event":"Product Viewed","userId":"ann","properties":%s}`, empty)
		if _, err := events(t, call); !errors.Is(err, track.ErrObjects) {
			t.Errorf("%s: %v, want that there is no product", call, err)
		}
	}
}

// Data layers write a list as a JSON text.
func TestProductsInAText(t *testing.T) {
	call := func(products string) string {
		text, err := json.Marshal(products)
		must.Succeed(t, err)
		return `{"type":"track","event":"Order Completed","userId":"ann","properties":{"sku":"0","products":` + string(text) + `}}`
	}
	for products, want := range map[string][]string{
		`[{"product_id":"1"},{"sku":2}]`: {"0", "1", "2"},
		` [ ] `:                          {"0"},
		` `:                              {"0"},
		`[]`:                             {"0"},
		`{}`:                             {"0"},
		`null`:                           {"0"},
		`none`:                           {"0"},
		`[{"product_id":"1"}`:            {"0"},
		`"[]"`:                           {"0"},
		`{"product_id":"1"}`:             {"0"},
	} {
		if got, err := events(t, call(products)); err != nil || len(got) != 1 || !slices.Equal(got[0].ObjectIDs, want) {
			t.Errorf("%s: %+v, %v; want the objects %v", products, got, err, want)
		}
	}
}

// A field of the wrong type is skipped where another one gives what an event needs.
func TestWrongFieldsThatAreNotNeeded(t *testing.T) {
	for _, wrong := range []string{`true`, `[1]`, `{"a":1}`} {
		for _, call := range []string{
			`{"type":"track","event":"Product Viewed","userId":"ann","anonymousId":%s,"properties":{"product_id":"1","search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":"1","sku":%s,"search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":%s,"sku":"1","search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":"1","products":%s,"search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":[%s,{"sku":"1"},7],"search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":[{"sku":%s},{"sku":"1"}],"search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":"1","event_type":%s,"search_index":"shoes"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","context":%[1]s,"properties":{"product_id":"1","price":%[1]s,"search_index":"shoes"}}`,
		} {
			call = fmt.Sprintf(call, wrong)
			got, err := events(t, call)
			if err != nil || len(got) != 1 || got[0].EventType != "view" || got[0].UserToken != "ann" || got[0].Index != "shoes" ||
				!slices.Equal(got[0].ObjectIDs, []string{"1"}) {
				t.Errorf("%s: %+v, %v", call, got, err)
			}
		}
	}
}

// A field of the wrong type that an event needs is named.
func TestWrongFieldsThatAreNeeded(t *testing.T) {
	for call, want := range map[string]string{
		`{"type":"track","event":["x"],"userId":"ann","properties":{"product_id":"1"}}`:                                        "event must be a string, not an array",
		`{"type":"track","event":404,"userId":"ann","properties":{"product_id":"1","event_type":"view"}}`:                      "event must be a string, not a number",
		`{"type":"track","event":"Mine","userId":"ann","properties":{"product_id":"1","event_type":1}}`:                        "properties.event_type must be a string, not a number",
		`{"type":"track","event":"Mine","userId":"ann","properties":5}`:                                                        "properties must be an object, not a number",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":"home"}`:                                         "properties must be an object, not a string",
		`{"type":"track","event":"Product Viewed","userId":["ann"],"properties":{"product_id":"1"}}`:                           "userId must be a string or a number, not an array",
		`{"type":"track","event":"Product Viewed","userId":{"id":1},"anonymousId":"a1","properties":{"product_id":"1"}}`:       "userId must be a string or a number, not an object",
		`{"type":"track","event":"Product Viewed","anonymousId":true,"properties":{"product_id":"1"}}`:                         "anonymousId must be a string or a number, not a boolean",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":["1"]}}`:                           "properties.product_id must be a string or a number, not an array",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"sku":true}}`:                                   "properties.sku must be a string or a number, not a boolean",
		`{"type":"track","event":"Viewed Product","userId":"ann","properties":{"id":{"a":1}}}`:                                 "properties.id must be a string or a number, not an object",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":{"product_id":"1"}}}`:                "properties.products must be a list of objects, not an object",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":"none"}}`:                            "properties.products must be a list of objects, not a string",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":["1"]}}`:                             "properties.products must be a list of objects, not a list of other values",
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":[{"product_id":{"a":1}},{}, null]}}`: "properties.products.product_id must be a string or a number, not an object",
	} {
		_, err := events(t, call)
		refusal, ok := errors.AsType[*fault.Error](err)
		if !ok || refusal.Message != "The field "+want[:len(refusal.Field)]+" of the track call"+want[len(refusal.Field):] || refusal.Field == "" {
			t.Errorf("%s: %v; want %s", call, err, want)
		}
	}
	c, err := track.Parse([]byte(`{"type":["track"],"event":"Product Viewed","properties":{"search_index":7}}`))
	if err != nil || c.TypeFault() == nil || c.IndexFault() == nil || c.Index != "" {
		t.Errorf("%+v, %v: want faults of the type and of the index", c, err)
	}
}

// Whatever stands in the fields of a call, reading it gives a call, and its good product
// counts.
func TestNoFieldCostsTheCall(t *testing.T) {
	values := rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `-1.5e3`, `""`, `"x"`, `"[]"`, `"\u00e9\ud800"`, `[]`, `{}`, `[[]]`, `[{}]`,
		`[1,"a",null,{"product_id":[]}]`, `{"product_id":"z"}`, `[{"product_id":"z"},{"sku":{}}]`, `"[{\"sku\":\"y\"}]"`})
	rapid.Check(t, func(t *rapid.T) {
		v := func(name string) string { return values.Draw(t, name) }
		call := fmt.Sprintf(`{"type":"track","event":"Product Viewed","userId":"ann","anonymousId":%s,"messageId":%s,"context":%s,
			"properties":{"sku":%s,"product_id":"1","id":%s,"products":%s,"search_index":%s,"event_type":%s}}`,
			v("anonymousId"), v("messageId"), v("context"), v("sku"), v("id"), v("products"), v("search_index"), v("event_type"))
		c, err := track.Parse([]byte(call))
		if err != nil || c.UserToken != "ann" || !slices.Contains(c.ObjectIDs, "1") || c.EventType == "" {
			t.Fatalf("%s: %+v, %v", call, c, err)
		}
		got, err := c.Events()
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", call, got, err)
		}
		if diff := cmp.Diff(c.ObjectIDs, got[0].ObjectIDs); diff != "" {
			t.Fatalf("%s: %s", call, diff)
		}
	})
}
