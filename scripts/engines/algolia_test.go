package engines

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/algolia/algoliasearch-client-go/v3/algolia/search"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/boosttest"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// Algolia's Go client knows every parameter of the default mode, and writes what
// it has read.
func TestAlgoliaClientKnowsTheParameters(t *testing.T) {
	r := random()
	for i := range 100 {
		a, err := boost.Render(boosttest.Request(r, "algolia", "optionalFilters"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(a.Query)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		var params search.QueryParams
		if err := d.Decode(&params); err != nil {
			t.Fatalf("profile %d: %v in %s", i, err, text)
		}
		if len(a.Query) == 0 {
			continue
		}
		if !params.SumOrFiltersScores.Get() {
			t.Errorf("profile %d: the scores are not added up", i)
		}
		if diff := cmp.Diff(a.Query["optionalFilters"], any(params.OptionalFilters.Get())); diff != "" {
			t.Errorf("profile %d: the filters (-rendered +read):\n%s", i, diff)
		}
	}
}
