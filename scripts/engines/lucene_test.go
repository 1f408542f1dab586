package engines

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/boosttest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/simulate"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// jars are where Debian's liblucene8-java puts Lucene.
var jars = []string{"/usr/share/java/lucene-core-8.7.0.jar", "/usr/share/java/lucene-queries-8.7.0.jar"}

// luceneTolerance is relative. Lucene computes scores in float32, with 24 bits,
// and a rank_feature adds up to a hundred of them.
const luceneTolerance = 1e-5

func startLucene(t *testing.T, docs []boosttest.Document) engine {
	t.Helper()
	must.Start(t, must.Lucene)
	for _, jar := range jars {
		if _, err := os.Stat(jar); err != nil {
			t.Fatalf("Lucene is not installed, so its order is not tested: apt-get install liblucene8-java: %v", err)
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		t.Fatalf("Java is not installed, so Lucene's order is not tested: %v", err)
	}
	e := start(t, exec.Command(java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(jars, ":"), "Lucene.java"))
	type document struct {
		ID       string              `json:"id"`
		Title    string              `json:"title"`
		Fields   map[string][]string `json:"fields"`
		Features map[string][]string `json:"features"`
	}
	var list []document
	for _, d := range docs {
		var features []string
		for facet, values := range d.Facets {
			for _, v := range values {
				features = append(features, facet+":"+v)
			}
		}
		list = append(list, document{d.ID, d.Title, d.Facets, map[string][]string{"affinity": features}})
	}
	if err := e.in.Encode(list); err != nil {
		t.Fatal(err)
	}
	return e
}

// elasticsearch merges a rendered query into a search for words, as the page of
// the engine says.
func elasticsearch(t *testing.T, query map[string]any, mode, words string) map[string]any {
	t.Helper()
	text, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	var request map[string]any
	if err := json.Unmarshal(text, &request); err != nil {
		t.Fatal(err)
	}
	match := map[string]any{"match": map[string]any{"title": words}}
	within := func(name string) map[string]any {
		return request["query"].(map[string]any)[name].(map[string]any)
	}
	switch {
	case len(request) == 0 || mode == "rescore":
		request["query"] = match
	case mode == "function_score":
		within("function_score")["query"] = match
	case mode == "rank_feature":
		within("bool")["must"] = match
	}
	return request
}

// The first ten documents of Lucene are those of the formula, with its scores.
func TestLucene(t *testing.T) {
	t.Parallel()
	r := random()
	docs := boosttest.Documents(r, documents)
	lucene := startLucene(t, docs)
	byID := map[string]simulate.Document{}
	for _, d := range docs {
		byID[d.ID] = d.Document
	}
	searches := plain(t, r, func(words string) ([]simulate.Hit, error) {
		request := elasticsearch(t, map[string]any{}, "", words)
		request["size"] = documents
		return lucene.search(request)
	})
	modes := boost.Modes("elasticsearch")
	rendered := 0
	for i := range *profiles {
		q := boosttest.Request(r, []string{"elasticsearch", "opensearch"}[i%2], modes[i%len(modes)])
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
			if q.Mode == "rank_feature" {
				want[id] = text + float64(q.Impact)/100*boosttest.Matched(weights, byID[id])
			}
		}
		got, err := lucene.search(elasticsearch(t, a.Query, q.Mode, words))
		if err != nil {
			t.Fatalf("profile %d: %v", i, err)
		}
		if err := boosttest.Compare(got, want, top, luceneTolerance); err != nil {
			t.Fatalf("profile %d, %s with impact %d: %v", i, q.Mode, q.Impact, err)
		}
		if len(a.Query) > 0 {
			rendered++
		}
	}
	if rendered < *profiles*9/10 {
		t.Errorf("only %d of %d profiles have a query", rendered, *profiles)
	}

	// A profile of a hundred affinities stays within Lucene's limit of 1,024 clauses.
	for _, mode := range modes {
		a, err := boost.Render(boosttest.Longest("elasticsearch", mode))
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Affinities) != boost.MaxLimit {
			t.Errorf("%s: %d affinities, want %d", mode, len(a.Affinities), boost.MaxLimit)
		}
		if _, err := lucene.search(elasticsearch(t, a.Query, mode, "red phone")); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
