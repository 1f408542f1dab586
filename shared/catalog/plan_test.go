package catalog_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestNewPlan(t *testing.T) {
	for _, test := range []struct {
		name   string
		stored map[string]string
		batch  string // the requests
		put    map[string]string
		remove string
		clear  bool
	}{
		{name: "nothing", batch: ``},
		{name: "put", batch: `{"action":"addObject","body":{"objectID":"a","x":1}},{"action":"updateObject","body":{"objectID":"b"}}`,
			put: map[string]string{"a": `{"objectID":"a","x":1}`, "b": `{"objectID":"b"}`}},
		{name: "put over a record", stored: map[string]string{"a": `{"objectID":"a","y":2}`}, batch: `{"action":"addObject","body":{"objectID":"a","x":1}}`,
			put: map[string]string{"a": `{"objectID":"a","x":1}`}},
		{name: "the last put stays", batch: `{"action":"addObject","body":{"objectID":"a","x":1}},{"action":"addObject","body":{"objectID":"a","x":2}}`,
			put: map[string]string{"a": `{"objectID":"a","x":2}`}},
		{name: "update of a record", stored: map[string]string{"a": `{"objectID":"a","x":1,"y":2}`},
			batch: `{"action":"partialUpdateObject","body":{"objectID":"a","x":3}}`, put: map[string]string{"a": `{"objectID":"a","x":3,"y":2}`}},
		{name: "update creates", batch: `{"action":"partialUpdateObject","body":{"objectID":"a","x":3}}`, put: map[string]string{"a": `{"objectID":"a","x":3}`}},
		{name: "update does not create", batch: `{"action":"partialUpdateObjectNoCreate","body":{"objectID":"a","x":3}}`},
		{name: "update of what the batch has put", batch: `{"action":"addObject","body":{"objectID":"a","x":1}},` +
			`{"action":"partialUpdateObjectNoCreate","body":{"objectID":"a","y":2}}`, put: map[string]string{"a": `{"objectID":"a","x":1,"y":2}`}},
		{name: "delete", stored: map[string]string{"a": `{"objectID":"a"}`}, batch: `{"action":"deleteObject","objectID":"a"},{"action":"deleteObject","objectID":"b"}`,
			remove: "a b"},
		{name: "delete, then put", batch: `{"action":"deleteObject","objectID":"a"},{"action":"addObject","body":{"objectID":"a"}}`,
			put: map[string]string{"a": `{"objectID":"a"}`}},
		{name: "delete, then update", stored: map[string]string{"a": `{"objectID":"a","x":1}`},
			batch: `{"action":"deleteObject","objectID":"a"},{"action":"partialUpdateObject","body":{"objectID":"a","y":2}}`, put: map[string]string{"a": `{"objectID":"a","y":2}`}},
		{name: "delete, then update without creating", stored: map[string]string{"a": `{"objectID":"a","x":1}`},
			batch: `{"action":"deleteObject","objectID":"a"},{"action":"partialUpdateObjectNoCreate","body":{"objectID":"a","y":2}}`, remove: "a"},
		{name: "clear", stored: map[string]string{"a": `{"objectID":"a","x":1}`}, batch: `{"action":"addObject","body":{"objectID":"b"}},{"action":"clear"},` +
			`{"action":"partialUpdateObject","body":{"objectID":"a","y":2}}`, put: map[string]string{"a": `{"objectID":"a","y":2}`}, clear: true},
		{name: "clear alone", batch: `{"action":"clear"}`, clear: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			stored := map[string][]byte{}
			for id, record := range test.stored {
				stored[id] = []byte(record)
			}
			before := maps.Clone(stored)
			plan, err := catalog.NewPlan(decodeBatch(t, test.batch), stored, catalog.Settings{})
			must.Succeed(t, err)
			put := map[string]string{}
			for _, o := range plan.Put {
				put[o.ID] = string(o.Record)
			}
			if !maps.Equal(put, test.put) || strings.Join(plan.Remove, " ") != test.remove || plan.Clear != test.clear {
				t.Errorf("put %q, remove %q, clear %v", put, plan.Remove, plan.Clear)
			}
			if !maps.EqualFunc(stored, before, slices.Equal) {
				t.Errorf("the stored records were changed to %q", stored)
			}
		})
	}
}

// decodeBatch reads the requests of a batch.
func decodeBatch(t *testing.T, requests string) []catalog.Action {
	t.Helper()
	actions, err := catalog.DecodeBatch([]byte(`{"requests":[` + requests + `]}`))
	must.Succeed(t, err)
	return actions
}

func TestPlanHasFilters(t *testing.T) {
	actions := decodeBatch(t, `{"action":"addObject","body":{"objectID":"a","color":"Red","brand":"Apple"}}`)
	for _, test := range []struct {
		settings catalog.Settings
		want     []event.Filter
	}{
		{catalog.Settings{}, []event.Filter{{Facet: "brand", Value: "Apple"}, {Facet: "color", Value: "Red"}}},
		{catalog.Settings{AttributesForFaceting: []string{"color"}, Version: 1}, []event.Filter{{Facet: "color", Value: "Red"}}},
	} {
		plan, err := catalog.NewPlan(actions, nil, test.settings)
		must.Succeed(t, err)
		if !slices.Equal(plan.Put[0].Filters, test.want) {
			t.Errorf("under %+v the filters are %v, want %v", test.settings, plan.Put[0].Filters, test.want)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	half := strings.Repeat("x", catalog.MaxRecord/2)
	actions := decodeBatch(t, `{"action":"addObject","body":{"objectID":"a","x":"`+half+`"}},{"action":"partialUpdateObject","body":{"objectID":"a","y":"`+half+`"}}`)
	_, err := catalog.NewPlan(actions, nil, catalog.Settings{})
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Kind != fault.TooLarge || !strings.HasPrefix(refusal.Message, "requests[1]: the record has ") {
		t.Errorf("of a record that grows too large: %v", err)
	}
	_, err = catalog.NewPlan(decodeBatch(t, `{"action":"partialUpdateObject","body":{"objectID":"a"}}`), map[string][]byte{"a": []byte("[]")}, catalog.Settings{})
	if err == nil || errors.As(err, &refusal) || !strings.HasPrefix(err.Error(), "requests[0]: read stored record: ") {
		t.Errorf("of a stored record that is not an object: %v", err)
	}
}

func TestBuildsOn(t *testing.T) {
	actions := decodeBatch(t, `{"action":"addObject","body":{"objectID":"a"}},{"action":"partialUpdateObject","body":{"objectID":"b"}},`+
		`{"action":"partialUpdateObjectNoCreate","body":{"objectID":"c"}},{"action":"partialUpdateObject","body":{"objectID":"b"}},{"action":"deleteObject","objectID":"d"}`)
	if got := strings.Join(catalog.BuildsOn(actions), " "); got != "b c" {
		t.Errorf("the batch builds on %q, want b and c", got)
	}
}
