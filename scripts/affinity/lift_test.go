package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// newDepartmentFiles are a shop as a spreadsheet exports it: users stay in a
// department, and there with a brand.
func newDepartmentFiles(t *testing.T) shopFiles {
	t.Helper()
	const objects, departments, brands, users = 240, 8, 5, 600
	catalog, events := []string{"objectID;Warengruppe;Marke;Preis"}, []string{"\ufeffKunde;Artikel;Zeit;Aktion"}
	for o := range objects {
		catalog = append(catalog, fmt.Sprintf("a%03d;w%d;m%d;%d,99", o, o%departments, o/departments%brands, o))
	}
	for user := range users {
		rng := rand.New(rand.NewPCG(3, uint64(user)))
		for n := range 6 {
			brand := user / departments % brands
			if rng.IntN(2) == 0 {
				brand = rng.IntN(brands)
			}
			object := user%departments + departments*(brand+brands*rng.IntN(objects/departments/brands))
			events = append(events, fmt.Sprintf("k%d;a%03d;%d;Ansicht", user, object, 1_700_000_000+n*86_400+user*100))
		}
	}
	return shopFiles{objects: file(t, "artikel.csv", catalog...), events: file(t, "ereignisse.csv", events...)}
}

// linesWith returns the lines that hold a text.
func linesWith(text, part string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// The lift within the category, which is found, comes first and is the smaller
// one: a list of the whole catalog flatters.
func TestTryLeadsWithTheSmallerLift(t *testing.T) {
	f := newDepartmentFiles(t)
	out := filepath.Join(t.TempDir(), "s.json")
	args := append([]string{"try", "--objects", f.objects, "--out", out, "--trials", "12", "--map", "userToken=Kunde,objectIDs=Artikel,timestamp=Zeit,eventName=Aktion", "--event", "Ansicht=view"}, f.events)
	r := affinity(t, "", args...)
	r.wants(t, 0, "On your data: ", "within Warengruppe, ", "in the whole catalog, ", api.LiftLimits[0], api.LiftLimits[1], api.LiftLimits[2], "functions/docs/guides/lift.md")
	lifts := linesWith(r.out, "over showing everybody")
	if len(lifts) != 2 || !strings.HasPrefix(lifts[0], "On your data: ") || !strings.Contains(lifts[0], " within Warengruppe") || !strings.Contains(lifts[1], " in the whole catalog") {
		t.Errorf("lifts are %q", lifts)
	}
	if within, whole := strings.Index(r.out, "within Warengruppe, 1"), strings.Index(r.out, "\nin the whole catalog, "); within < 0 || whole < within {
		t.Errorf("the table of the whole catalog comes first:\n%s", r.out)
	}
	r = affinity(t, "", append(args, "--json")...)
	r.wants(t, 0)
	var tuning api.Tuning
	must(t, json.Unmarshal([]byte(r.out), &tuning))
	if l := tuning.Lifts; len(l) != 2 || l[0].Within != "Warengruppe" || l[1].Within != "" || l[0].Ratio >= l[1].Ratio || l[0].Low > l[0].Difference || tuning.Within != "Warengruppe" {
		t.Errorf("lifts = %+v", tuning.Lifts)
	}
	r = affinity(t, "", append(args, "--within", "none")...)
	if r.wants(t, 0, "Hardly any page shows the whole catalog"); strings.Contains(r.out, "Warengruppe,") || len(linesWith(r.out, "over showing everybody")) != 1 {
		t.Errorf("--within none judges within a facet:\n%s", r.out)
	}
	affinity(t, "", append(args, "--within", "Marke")...).wants(t, 0, "within Marke, ")
}

// What was shown is a baseline like others: a perfect list beats the best sellers, and
// the gains are then over it.
func TestBaselineOfWhatWasShown(t *testing.T) {
	f := newShopFiles(t)
	judge := []string{"backtest", "--objects", f.objects, "--strategy", f.strategy, "--within", "brand", "--json"}
	order := []string{"\ufeffcategory;objectID;position"}
	for i := range 20 { // odd objects are of Y: the later, the higher
		order = append(order, fmt.Sprintf("%s;o%02d;%d", []string{"X", "Y"}[i%2], i, 1+(20-i)/2))
	}
	order = append(order, ";o01;1", ";gone;2", "Z;o03;1")
	r := affinity(t, "", append(judge, "--baseline", file(t, "order.csv", order...), f.events)...)
	r.wants(t, 0, "1 of 23 lines name objects that the catalog does not hold", "1 placement is no value of brand, so it ranks no case by itself: Z")
	var got api.Backtest
	must(t, json.Unmarshal([]byte(r.out), &got))
	var names []string
	for _, n := range got.Within.Results {
		names = append(names, n.Name)
	}
	if all := strings.Join(names, " "); !strings.Contains(all, "popularity popularity-recent baseline pairs") {
		t.Errorf("results %s", all)
	}
	for _, results := range [][]api.BacktestResult{got.Results, got.Within.Results} {
		best, gains := results[1], got.Gains
		if &results[0] == &got.Within.Results[0] {
			gains = got.Within.Gains
		}
		for _, r := range results {
			if r.SameForAll() && r.NDCG > best.NDCG {
				best = r
			}
		}
		if len(gains) != len(results)-1 || gains[0].Over != best.Name {
			t.Errorf("gains %+v, want them over %s", gains, best.Name)
		}
	}
	lines := file(t, "order.ndjson", `{"placement":"X","objectID":"o00","position":1}`, `{"objectID":"o02","position":2.5}`)
	affinity(t, "", append(judge, "--baseline", lines, f.events)...).wants(t, 0)
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"no position":   {[]string{"objectID,place", "o01,1"}, ":2: position is missing"},
		"no number":     {[]string{"objectID,position", "o01,1", "o02,first"}, `:3: position must be a number from 1, got "first"`},
		"from 0":        {[]string{"objectID,position", "o01,0"}, ":2: position must be a number from 1, got 0"},
		"no object":     {[]string{"sku,position", "o01,1"}, "no column holds objectID"},
		"two names":     {[]string{"objectID,position,placement,category", "o01,1,X,Y"}, ":2: placement and category name the same"},
		"a list":        {[]string{`{"objectID":"o01","position":1,"placement":["X"]}`}, `:1: placement must be a text, got ["X"]`},
		"nothing":       {[]string{"objectID,position"}, "holds no positions"},
		"all unknown":   {[]string{"objectID,position", "x,1"}, "the catalog holds none of the objects of its 1 line"},
		"no such file":  {nil, "/nowhere"},
		"damaged lines": {[]string{`{"objectID":`}, ":1: not a JSON object"},
	} {
		path := "/nowhere"
		if test.lines != nil {
			path = file(t, strings.ReplaceAll(name, " ", ""), test.lines...)
		}
		r := affinity(t, "", append(judge, "--baseline", path, f.events)...)
		if r.wants(t, 1, test.want); r.out != "" {
			t.Errorf("%s: a failed backtest printed %q", name, r.out)
		}
	}
}

// On real data the order of the figures is the honest one. That of online retail has no
// category: bands of prices stand in, which the words say.
func TestLiftsOfRealData(t *testing.T) {
	t.Parallel()
	for name, within := range map[string]string{"clickstream": "category", "onlineretail": "price_range"} {
		r := affinity(t, "", "backtest", "--objects", realdata.Path(t, name, realdata.ObjectsFile), "--strategy", realdata.Path(t, name, realdata.StrategyFile),
			"--sample", "600", realdata.Path(t, name, realdata.EventsFile))
		r.wants(t, 0, "within "+within+", 600 cases", "in the whole catalog, 600 cases")
		if stands := strings.Contains(r.out, "No facet is named like a category: price_range stands in"); stands != (within == "price_range") {
			t.Errorf("%s:\n%s", name, r.out)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}
