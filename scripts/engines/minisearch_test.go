package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/boosttest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/simulate"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// MiniSearch and the formula both compute in float64. MiniSearch multiplies the
// score of each word before it adds them up.
const minisearchTolerance = 1e-12

// startMinisearch needs Node and npm's registry.
func startMinisearch(t *testing.T) engine {
	t.Helper()
	must.Start(t, must.Clients)
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "minisearch.mjs"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := readPages(t)
	function, _ := all[slices.IndexFunc(all, func(p page) bool { return p.name == "minisearch" })].find("js", "")
	if err := os.WriteFile(filepath.Join(dir, "page.mjs"), []byte(function), 0o600); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("MiniSearch cannot be installed, so its order is not tested: %v\n%s", err, out)
	}
	run := exec.Command("node", "minisearch.mjs")
	run.Dir = dir
	return start(t, run)
}

// The first ten documents of MiniSearch are those of the formula, with its scores.
func TestMiniSearch(t *testing.T) {
	t.Parallel()
	r := random()
	docs := boosttest.Documents(r, documents)
	minisearch := startMinisearch(t)
	byID := map[string]simulate.Document{}
	var list []map[string]any
	for i, d := range docs {
		byID[d.ID] = d.Document
		stored := map[string]any{"id": d.ID, "title": d.Title}
		for _, facet := range boosttest.Facets() {
			stored[facet] = d.Facets[facet]
			if len(d.Facets[facet]) == 1 && i%2 == 0 {
				stored[facet] = d.Facets[facet][0]
			}
		}
		list = append(list, stored)
	}
	if err := minisearch.in.Encode(list); err != nil {
		t.Fatal(err)
	}
	type search struct {
		Text  string         `json:"text"`
		Query map[string]any `json:"query,omitempty"`
		Size  int            `json:"size"`
	}
	searches := plain(t, r, func(words string) ([]simulate.Hit, error) {
		return minisearch.search(search{Text: words, Size: documents})
	})
	for i := range *profiles {
		q := boosttest.Request(r, "minisearch", "")
		a, err := boost.Render(q)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := boosttest.Weights(q, a)
		if err != nil {
			t.Fatalf("profile %d: %v", i, err)
		}
		words, scores := searches.any(r)
		want := map[string]float64{}
		for id, text := range scores {
			want[id] = text * boosttest.Factor(q.Impact, weights, byID[id])
		}
		got, err := minisearch.search(search{words, a.Query, top})
		if err != nil {
			t.Fatalf("profile %d: %v", i, err)
		}
		if err := boosttest.Compare(got, want, top, minisearchTolerance); err != nil {
			t.Fatalf("profile %d with impact %d: %v", i, q.Impact, err)
		}
	}
}

// The function of the page finds the numbers of a band.
func TestMiniSearchRanges(t *testing.T) {
	t.Parallel()
	minisearch := startMinisearch(t)
	prices := map[string]any{"a": 50, "b": "99.9", "c": []any{"ask", 60}, "d": 100, "e": "", "f": nil, "g": "50-100", "h": "cheap", "i": 49.9}
	var list []map[string]any
	for id, price := range prices {
		list = append(list, map[string]any{"id": id, "title": "shoe", "price": price})
	}
	if err := minisearch.in.Encode(list); err != nil {
		t.Fatal(err)
	}
	a, err := boost.Render(boost.Request{Engine: "minisearch", Impact: 100, Limit: 1, Affinities: []boost.Affinity{{Facet: "price", Value: "50-100", Score: 1}},
		Ranges: func(string, string) (*boost.Range, bool) { return &boost.Range{From: 50, Below: 100}, true }})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := minisearch.search(map[string]any{"text": "shoe", "query": a.Query, "size": len(prices)})
	if err != nil || len(hits) != len(prices) {
		t.Fatalf("%v, %v", hits, err)
	}
	var found []string
	for _, hit := range hits {
		if hit.Score > 1.5*hits[len(hits)-1].Score {
			found = append(found, hit.ID)
		}
	}
	slices.Sort(found)
	if want := []string{"a", "b", "c", "g"}; !slices.Equal(found, want) { // g names the band itself
		t.Errorf("boosted %q, want %q", found, want)
	}
}
