package catalog_test

import (
	"fmt"

	"github.com/affinityengine/affinity/shared/catalog"
)

// With settings, the attributes in attributesForFaceting are facets.
func ExampleFilters() {
	record := []byte(`{
		"objectID": "shoe-1",
		"name": "Trail running shoe",
		"brand": "Acme",
		"colors": ["red", "blue"],
		"categories": {"lvl0": "Shoes", "lvl1": "Shoes > Running"}
	}`)
	settings := catalog.Settings{
		AttributesForFaceting: []string{"brand", "searchable(colors)", "categories.lvl0"},
		Version:               1,
	}
	filters, err := catalog.Filters(record, settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range filters {
		fmt.Printf("%s:%s\n", f.Facet, f.Value)
	}
	// Output:
	// brand:Acme
	// categories.lvl0:Shoes
	// colors:blue
	// colors:red
}

// Without settings, every attribute but objectID is a facet if its values are
// short enough.
func ExampleFilters_withoutSettings() {
	filters, err := catalog.Filters([]byte(`{"objectID":"shoe-1","brand":"Acme","price":119.90,"new":true}`), catalog.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range filters {
		fmt.Printf("%s:%s\n", f.Facet, f.Value)
	}
	// Output:
	// brand:Acme
	// new:true
	// price:119.90
}

// A batch becomes one change for each object. Partial updates need the records
// that are stored.
func ExampleNewPlan() {
	actions, err := catalog.DecodeBatch([]byte(`{"requests":[
		{"action":"addObject","body":{"objectID":"shoe-1","color":"red"}},
		{"action":"partialUpdateObject","body":{"objectID":"shoe-1","color":"blue"}},
		{"action":"partialUpdateObject","body":{"objectID":"shoe-2","color":"green"}},
		{"action":"deleteObject","objectID":"shoe-3"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("read", catalog.BuildsOn(actions))

	stored := map[string][]byte{"shoe-2": []byte(`{"objectID":"shoe-2","color":"black","size":"42"}`)}
	plan, err := catalog.NewPlan(actions, stored, catalog.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range plan.Put {
		fmt.Printf("put %s with %d filters\n", object.Record, len(object.Filters))
	}
	fmt.Println("remove", plan.Remove)
	// Output:
	// read [shoe-1 shoe-2]
	// put {"objectID":"shoe-1","color":"blue"} with 1 filters
	// put {"objectID":"shoe-2","color":"green","size":"42"} with 2 filters
	// remove [shoe-3]
}
