package backtest_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// spread is a facet of so many values, which the first objects carry.
type spread struct {
	name           string
	values, others int // others lack the facet
}

func categoryOf(t *testing.T, facets ...spread) string {
	t.Helper()
	const objects = 400
	var catalog []backtest.Object
	for i := range objects {
		o := backtest.Object{ID: fmt.Sprint("o", i)}
		for _, f := range facets {
			if i < objects-f.others {
				o.Filters = append(o.Filters, event.Filter{Facet: f.name, Value: fmt.Sprint("v", i%f.values)})
			}
		}
		catalog = append(catalog, o)
	}
	l, err := backtest.NewLog("p", catalog)
	must.Succeed(t, err)
	return l.Category()
}

func TestCategoryIsFoundByNameAndShape(t *testing.T) {
	for _, test := range []struct {
		facets []spread
		want   string
	}{
		{nil, ""},
		{[]spread{{"brand", 20, 0}, {"colour", 8, 0}}, ""}, // may be the taste itself
		{[]spread{{"brand", 20, 0}, {"category", 8, 0}}, "category"},
		{[]spread{{"category", 8, 19}}, "category"},
		{[]spread{{"category", 8, 40}}, ""},     // a tenth of the objects lacks it
		{[]spread{{"category", 1, 0}}, ""},      // says nothing
		{[]spread{{"category_id", 150, 0}}, ""}, // a name of nearly each object
		{[]spread{{"category", 8, 0}, {"categories.lvl0", 5, 0}}, "categories.lvl0"},
		{[]spread{{"categories.lvl0", 5, 0}, {"categories.lvl1", 30, 0}, {"categories.lvl2", 390, 0}}, "categories.lvl1"},
		{[]spread{{"hierarchicalCategories.lvl0", 5, 0}, {"hierarchicalCategories.lvl1", 30, 100}}, "hierarchicalCategories.lvl0"},
		{[]spread{{"above_category_average", 2, 0}, {"price_range", 8, 0}}, "price_range"},
		{[]spread{{"price_range", 8, 0}, {"mainCategory", 4, 0}}, "mainCategory"},
		{[]spread{{"main_category", 4, 0}, {"sub_category", 20, 0}}, "sub_category"},
		{[]spread{{"a_category", 4, 0}, {"b_category", 4, 0}}, "a_category"},
		{[]spread{{"Warengruppe", 9, 0}}, "Warengruppe"},
		{[]spread{{"product_type", 9, 0}}, "product_type"},
		{[]spread{{"departments", 9, 0}}, "departments"},
		{[]spread{{"___", 9, 0}, {"", 9, 0}, {".lvl1", 9, 0}}, ".lvl1"},
	} {
		if got := categoryOf(t, test.facets...); got != test.want {
			t.Errorf("category of %v = %q, want %q", test.facets, got, test.want)
		}
	}
}

func TestCategoriesOfRealData(t *testing.T) {
	for name, want := range map[string]string{"clickstream": "category", "onlineretail": "price_range"} {
		var objects []backtest.Object
		for _, o := range realdata.Objects(t, name) {
			objects = append(objects, backtest.Object{ID: o.ID, Filters: o.Filters})
		}
		l, err := backtest.NewLog("p", objects)
		must.Succeed(t, err)
		if got := l.Category(); got != want {
			t.Errorf("%s: category %q, want %q", name, got, want)
		}
	}
}
