package ranking_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Diversity takes the order that the same query has without it.
func TestDiversityEqualsDefinition(t *testing.T) {
	for _, places := range []int{ranking.MaxDiversified, 5} {
		t.Run(fmt.Sprint(places, " places"), func(t *testing.T) {
			ranking.DiversifyPlaces(t, places)
			rapid.Check(t, diversityEqualsDefinition)
		})
	}
}

func FuzzDiversityEqualsDefinition(f *testing.F) { f.Fuzz(rapid.MakeFuzz(diversityEqualsDefinition)) }

func diversityEqualsDefinition(t *rapid.T) {
	s, q := drawStrategy(t), drawQuery(t)
	r, limit := ranking.New(s), q.Limit
	q.Limit = 0
	plain := r.Rank(q).Items
	q.Limit, q.Diversity = limit, drawDiversity(t)
	want := ranking.Diversify(q, plain)
	if limit > 0 {
		want = want[:min(limit, len(want))]
	}
	got := r.Rank(q).Items
	if len(got) != len(want) || got == nil {
		t.Fatalf("%d items, the definition has %d", len(got), len(want))
	}
	for i, item := range got {
		if item.Candidate != want[i].Candidate || item.Score != want[i].Score {
			t.Fatalf("item %d = %v, the definition has %v", i, item, want[i])
		}
		if !similarFeatures(item.Features, want[i].Features) {
			t.Fatalf("features of %d = %v, the definition has %v", i, item.Features, want[i].Features)
		}
		if i > 0 && item.Score > got[i-1].Score {
			t.Fatalf("item %d scores %v, the one before it %v", i, item.Score, got[i-1].Score)
		}
	}
	checkCap(t, q, got)
}

// checkCap checks that no item that exceeds maxPerValue stands before one that does
// not.
func checkCap(t *rapid.T, q *ranking.Query, items []ranking.Item) {
	if q.Diversity.MaxPerValue == 0 {
		return
	}
	counts, over := map[string]int{}, false
	for i, item := range items[:min(len(items), 5)] { // the fewest places of the test
		exceeds := false
		for _, f := range q.Candidates[item.Candidate].Object.Filters() {
			if f.Facet == q.Diversity.Facet {
				exceeds = exceeds || counts[f.Value] >= q.Diversity.MaxPerValue
				counts[f.Value]++
			}
		}
		if over && !exceeds {
			t.Fatalf("item %d stands behind one that exceeds maxPerValue: %v", i, items)
		}
		over = over || exceeds
	}
}

// similarFeatures is sameFeatures with room for the rounding of large penalties.
func similarFeatures(a, b []ranking.Feature) bool {
	return cmp.Equal(visible(a), visible(b), cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-9), cmpopts.SortSlices(func(a, b ranking.Part) bool { return a.Name < b.Name }))
}

// shelf are candidates in the order of their scores 1, 1 - step, ...
func shelf(step float64, objects ...*ranking.Object) ranking.Query {
	q := ranking.Query{Now: now, Impact: ptr(0), Explain: true, HighestCount: 1}
	for i, o := range objects {
		q.Candidates = append(q.Candidates, ranking.Candidate{
			ObjectID: string(rune('a' + i)), Object: o, Relevancy: 1 - float64(i)*step, HasRelevancy: true,
		})
	}
	// The last one holds the scale of relevancies at 0..1.
	q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: "zero", HasRelevancy: true})
	return q
}

func order(items []ranking.Item) string {
	text := ""
	for _, item := range items {
		text += fmt.Sprintf("%s %.3f, ", item.ObjectID, item.Score)
	}
	return text
}

func TestDiversity(t *testing.T) {
	nike, red := object("brand:Nike", "colour:red"), object("brand:Nike", "colour:blue")
	puma, none := object("brand:Puma", "colour:blue"), object()
	q := shelf(0.1, nike, nike, red, puma, none)
	for _, test := range []struct {
		diversity strategy.Diversity
		want      string
	}{
		// An overlap of 1 takes 0.5. c has one of three filters in common with a, and with d.
		{strategy.Diversity{Lambda: 2. / 3}, "a 1.000, d 0.700, c 0.633, e 0.600, b 0.400, zero 0.000, "},
		{strategy.Diversity{Lambda: 2. / 3, Facet: "brand"}, "a 1.000, d 0.700, e 0.600, b 0.400, c 0.300, zero 0.000, "},
		// An overlap of 1 takes 1,000 at most.
		{strategy.Diversity{Lambda: 1e-9}, "a 1.000, d 0.700, e 0.600, zero 0.000, c -332.533, b -999.100, "},
		{strategy.Diversity{Lambda: 1}, "a 1.000, b 0.900, c 0.800, d 0.700, e 0.600, zero 0.000, "},
		{strategy.Diversity{Facet: "brand", MaxPerValue: 1}, "a 1.000, d 0.700, e 0.600, zero 0.000, b 0.000, c -0.100, "},
		{strategy.Diversity{Facet: "brand", MaxPerValue: 2}, "a 1.000, b 0.900, d 0.700, e 0.600, zero 0.000, c 0.000, "},
		{strategy.Diversity{Facet: "shape", MaxPerValue: 1}, "a 1.000, b 0.900, c 0.800, d 0.700, e 0.600, zero 0.000, "},
	} {
		q.Diversity = &test.diversity
		items := ranking.New(scoring()).Rank(&q).Items
		if got := order(items); got != test.want {
			t.Errorf("%+v:\n got %s\nwant %s", test.diversity, got, test.want)
		}
	}
}

func TestDiversityExplains(t *testing.T) {
	nike := object("brand:Nike", "colour:red")
	q := shelf(0.25, nike, nike)
	q.Candidates = q.Candidates[:2]
	q.Candidates[1].Relevancy = 1 // equal scores, 1
	q.Diversity = &strategy.Diversity{Facet: "brand", MaxPerValue: 1, Lambda: 0.8}
	want := []ranking.Feature{
		{Name: ranking.Relevancy, Value: 1},
		{Name: ranking.Diversified, Value: -0.25, Parts: []ranking.Part{{Name: "a", Value: -0.25}}},
	}
	items := ranking.New(scoring()).Rank(&q).Items
	if diff := cmp.Diff(want, items[1].Features, cmpopts.EquateApprox(0, tolerance)); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	q = shelf(0.25, nike, nike, object("brand:Puma"))
	q.Diversity = &strategy.Diversity{Facet: "brand", MaxPerValue: 1}
	items = ranking.New(scoring()).Rank(&q).Items
	want = []ranking.Feature{
		{Name: ranking.Relevancy, Value: 0.75},
		{Name: ranking.Diversified, Value: -0.75, Parts: []ranking.Part{{Name: "brand:Nike", Value: -0.75}}},
	}
	if diff := cmp.Diff(want, items[3].Features, cmpopts.EquateApprox(0, tolerance)); diff != "" || items[3].ObjectID != "b" {
		t.Errorf("features of %s (-want +got):\n%s", items[3].ObjectID, diff)
	}
}

// A penalty may be too small to change a score. It is shown all the same.
func TestDiversityExplainsSmallPenalties(t *testing.T) {
	q := shelf(0, object("brand:Nike", "colour:red"), object("brand:Nike", "colour:blue"))
	q.Diversity = &strategy.Diversity{Lambda: math.Nextafter(1, 0)}
	loss := (1 - q.Diversity.Lambda) / q.Diversity.Lambda * (1. / 3) // one of three filters
	want := ranking.Item{ObjectID: "b", Candidate: 1, Score: 1, Features: []ranking.Feature{
		{Name: ranking.Relevancy, Value: 1},
		{Name: ranking.Diversified, Value: -loss, Parts: []ranking.Part{{Name: "a", Value: -loss}}},
	}}
	if diff := cmp.Diff(want, ranking.New(scoring()).Rank(&q).Items[1]); diff != "" {
		t.Errorf("second item (-want +got):\n%s", diff)
	}
}

// Histories of rapid are short. These fill several words of places, with objects of
// many sizes and equal overlaps.
func TestDiversityOfManyPlaces(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, d := range []strategy.Diversity{{}, {Lambda: 0.3}, {Facet: "brand"}, {Facet: "colour", MaxPerValue: 9, Lambda: 0.5}, {Facet: "colour", MaxPerValue: 2}} {
		q := ranking.Query{Now: now, Impact: ptr(0), Explain: true, Diversity: &d}
		for n := range race.Or(140, 80) {
			var filters []event.Filter
			for range random.IntN(6) {
				filters = append(filters, filter([]string{"brand", "colour"}[random.IntN(2)], fmt.Sprint(random.IntN(5))))
			}
			q.Candidates = append(q.Candidates, ranking.Candidate{
				ObjectID: fmt.Sprintf("%03d", n), Object: ranking.Compile(filters), Relevancy: random.Float64(), HasRelevancy: true,
			})
		}
		got, want := ranking.New(scoring()).Rank(&q).Items, ranking.Reference(scoring(), &q).Items
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("query %d, %+v (-definition +got):\n%s", i, d, diff)
		}
	}
}

// A long list is the best places diversified, and then all others by score.
func TestDiversityOfLongList(t *testing.T) {
	s, q := benchmark(2*ranking.MaxDiversified, 8, 50)
	r := ranking.New(s)
	plain := r.Rank(q).Items
	q.Diversity = &strategy.Diversity{Facet: "facet1", Lambda: 0.5, MaxPerValue: 4}
	all := r.Rank(q).Items
	q.Limit = ranking.MaxDiversified
	first := r.Rank(q).Items
	if !slices.EqualFunc(all[:q.Limit], first, func(a, b ranking.Item) bool { return a.Candidate == b.Candidate && a.Score == b.Score }) {
		t.Error("the limit changes the places before it")
	}
	chosen := map[int]bool{}
	for _, item := range first {
		chosen[item.Candidate] = true
	}
	rest := slices.DeleteFunc(plain, func(item ranking.Item) bool { return chosen[item.Candidate] })
	for i, item := range all[q.Limit:] {
		if item.Candidate != rest[i].Candidate || item.Score > all[q.Limit+i-1].Score {
			t.Fatalf("item %d = %v, want %v below %v", q.Limit+i, item, rest[i], all[q.Limit+i-1])
		}
	}
}

// Objects with very many filters get fewer diversified places, not more time.
func TestDiversityIsBounded(t *testing.T) {
	q := ranking.Query{Now: now, Diversity: &strategy.Diversity{Lambda: 0.5}}
	var filters []event.Filter
	for i := range 1000 {
		filters = append(filters, filter("tag", fmt.Sprint(i)))
	}
	o := ranking.Compile(filters)
	for i := range 500 { // 25,000,000 / 500,000: 50 places
		q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: fmt.Sprintf("a%03d", i), Object: o})
	}
	for i := range 60 {
		q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: fmt.Sprintf("b%03d", i)})
	}
	items := ranking.New(scoring()).Rank(&q).Items
	if first, last, next := items[0].ObjectID, items[49].ObjectID, items[50].ObjectID; first != "a000" || last != "b048" || next != "a001" {
		t.Errorf("places 1, 50 and 51 are %s, %s, %s, want a000, b048 and a001", first, last, next)
	}
}
