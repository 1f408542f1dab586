package rank_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

func weight(n int) *int { return &n }

// allFeatures is a strategy in which every feature has a weight.
func allFeatures() strategy.Strategy {
	return strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "brand", Score: 4}, {FacetName: "color", Score: 10}},
		HalfLives:     strategy.InDays(30, 7), PersonalizationImpact: 60,
		Ranking: &strategy.Ranking{
			Contrast:   strategy.ContrastIDF,
			Session:    &strategy.SessionRanking{HalfLife: strategy.Events(1), Weight: weight(50)},
			Popularity: &strategy.PopularityRanking{HalfLife: strategy.Days(7), Weight: weight(30)},
			Pairs:      &strategy.PairsRanking{Weight: weight(40)},
			Sequence:   &strategy.PairsRanking{Weight: weight(150)},
			Neighbours: &strategy.PairsRanking{Weight: weight(450)},
			Freshness:  &strategy.FreshnessRanking{Attribute: "meta.at", HalfLife: strategy.Days(10), Weight: weight(20)},
		},
	}
}

// boutique is a shop with statistics and with a user, whose events are relative
// to its start.
type boutique struct {
	*stack.Stack
	began   time.Time
	objects map[string][]event.Filter
}

const day = 24 * time.Hour

// published is the age of an object at the start of the boutique.
func published(n int) time.Duration { return time.Duration(n) * 5 * day }

func newBoutique(t *testing.T) boutique {
	t.Helper()
	b := boutique{functiontest.Start(t), time.Now().UTC().Truncate(time.Second), map[string][]event.Filter{}}
	functiontest.SetStrategy(t, b.Stack, allFeatures())
	var actions []string
	for n, filters := range [][]event.Filter{
		{{Facet: "brand", Value: "Acme"}, {Facet: "color", Value: "Red"}},
		{{Facet: "brand", Value: "Acme"}, {Facet: "color", Value: "Blue"}},
		{{Facet: "brand", Value: "Bolt"}, {Facet: "color", Value: "Red"}},
		{{Facet: "brand", Value: "Bolt"}},
		nil,
	} {
		id := fmt.Sprintf("o%d", n)
		b.objects[id] = filters
		record := map[string]any{"objectID": id, "meta": map[string]any{"at": b.began.Add(-published(n)).Format(time.RFC3339)}}
		for _, f := range filters {
			record[f.Facet] = f.Value
		}
		body, err := json.Marshal(map[string]any{"action": "addObject", "body": record})
		must.Succeed(t, err)
		actions = append(actions, string(body))
	}
	put := `{"requests":[` + strings.Join(actions, ",") + `]}`
	functiontest.Do(t, catalog.New(b.Backends.ForCatalog()), "addObject", "POST", "/1/indexes/i/batch", put)
	b.view(t, "ann", 3*day, "o0")
	b.view(t, "ann", 2*day, "o1", "o2", "o3")
	b.statistics(t, "g1")
	return b
}

// view imports an event of an age.
func (b boutique) view(t *testing.T, user string, age time.Duration, ids ...string) {
	t.Helper()
	line := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"timestamp":%d,"objectIDs":["%s"]}`,
		user, b.began.Add(-age).UnixMilli(), strings.Join(ids, `","`))
	functiontest.Do(t, imports.New(b.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
}

var (
	counts = map[string]float64{"o0": 1, "o1": 2, "o2": 9, "o3": 5.5}
	linked = map[string]crowd.Object{
		"o0": {Events: 3, Links: [crowd.Kinds][]crowd.Pair{{{ObjectID: "o4", Count: 3}}, {{ObjectID: "o1", Count: 2520}}, {{ObjectID: "o3", Count: 50}}}},
		"o1": {Events: 2, Links: [crowd.Kinds][]crowd.Pair{
			{{ObjectID: "o4", Count: 2}, {ObjectID: "o0", Count: 1}}, {{ObjectID: "o3", Count: 1260}}, {{ObjectID: "o2", Count: 40}}}},
		"o2": {Events: 10, Links: [crowd.Kinds][]crowd.Pair{{{ObjectID: "o0", Count: 5}}, {{ObjectID: "o3", Count: 2520}}, {}}},
	}
	frequencies = map[event.Filter]int{
		{Facet: "brand", Value: "Acme"}: 2, {Facet: "brand", Value: "Bolt"}: 2, {Facet: "color", Value: "Red"}: 2, {Facet: "color", Value: "Blue"}: 1,
	}
)

// statistics stores a generation of statistics as of a day ago.
func (b boutique) statistics(t *testing.T, generation string) {
	t.Helper()
	w := b.Backends.Store.Crowd.NewCrowdWriter(t.Context(), store.CrowdRef{App: functiontest.App, Index: "i", Generation: generation})
	var all []crowd.Counted
	for _, id := range []string{"o0", "o1", "o2", "o3"} {
		all = append(all, crowd.Counted{ObjectID: id, Count: counts[id]})
	}
	var cells [][]byte
	for cell := range crowd.PackCounts(all) {
		cells = append(cells, cell)
	}
	must.Succeed(t, w.Counts(0, cells))
	for cell := range crowd.PackFrequencies(frequencies) {
		must.Succeed(t, w.Frequencies(0, cell))
	}
	for id, o := range linked {
		must.Succeed(t, w.Object(id, o.AppendBinary(nil)))
	}
	must.Succeed(t, w.Flush())
	stored, err := b.Backends.Store.Crowd.ReadCrowdManifest(t.Context(), functiontest.App, "i")
	must.Succeed(t, err)
	m := crowd.Manifest{Current: crowd.Generation{Name: generation, AsOf: b.began.Add(-day).UnixMilli(), Objects: 5, Share: 1}}
	if swapped, err := crowd.SwapManifest(t.Context(), b.Backends.Store.Crowd, functiontest.App, "i", stored, m); err != nil || !swapped {
		t.Fatalf("swapped %v, error %v", swapped, err)
	}
}

// reference ranks by the definition, with plain data in place of everything that
// the function reads.
func (b boutique) reference(q ranking.Query) []api.RankedItem {
	s := allFeatures()
	q.Now = b.began.UnixMilli()
	var events []affinity.Event
	for _, e := range []struct {
		age time.Duration
		ids []string
	}{{3 * day, []string{"o0"}}, {2 * day, []string{"o1", "o2", "o3"}}} {
		x := affinity.Event{Time: q.Now - e.age.Milliseconds(), Type: event.View, Name: "Seen", Index: "i", ObjectIDs: e.ids}
		sums := map[event.Filter]int{}
		for _, id := range e.ids {
			for _, f := range b.objects[id] {
				sums[f]++
			}
		}
		for f, n := range sums {
			x.Counts = append(x.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: n})
		}
		events = append(events, x)
	}
	window := affinity.Window{Now: q.Now}
	q.Affinities = affinity.Reference(events, s, window).Affinities
	q.Session = affinity.ReferenceSession(events, s, window)
	q.HighestCount, q.Frequencies = 9, &ranking.Frequencies{Objects: 5, Filters: frequencies}
	for n := range 4 {
		a := ranking.Past{ObjectID: fmt.Sprintf("o%d", n), Last: n > 0}
		if n == 0 {
			a.Age = 1
		}
		neighbours := ranking.Neighbours{Past: a, Events: float64(linked[a.ObjectID].Events)}
		for kind, list := range neighbours.Lists() {
			for _, p := range linked[a.ObjectID].Links[kind] {
				*list = append(*list, ranking.Pair{ObjectID: p.ObjectID, Count: float64(p.Count)})
			}
		}
		q.Neighbours = append(q.Neighbours, neighbours)
	}
	for n := range 6 {
		id := fmt.Sprintf("o%d", n)
		c := ranking.Candidate{ObjectID: id, Count: counts[id], Seen: n < 4}
		if n < 5 {
			c.Object, c.Published, c.Dated = ranking.Compile(b.objects[id]), b.began.Add(-published(n)).UnixMilli(), true
		}
		if q.Impact != nil {
			c.Relevancy, c.HasRelevancy = float64(n*n), true
		}
		q.Candidates = append(q.Candidates, c)
	}
	q.Explain = true
	var items []api.RankedItem
	for _, item := range ranking.Reference(s, &q).Items {
		view := api.RankedItem{ObjectID: item.ObjectID, Score: item.Score, Features: []api.RankFeature{}}
		for _, f := range item.Features {
			feature := api.RankFeature{Name: f.Name, Value: f.Value}
			for _, p := range f.Parts {
				feature.Parts = append(feature.Parts, api.RankPart(p))
			}
			view.Features = append(view.Features, feature)
		}
		items = append(items, view)
	}
	return items
}

// near accepts what the seconds of a test change in a score.
var near = cmpopts.EquateApprox(1e-4, 1e-6)

// The function answers what the definition gives for the same data.
func TestFeaturesEqualReference(t *testing.T) {
	b := newBoutique(t)
	h := rank.New(b.Backends.ForRank())
	impact := 35
	const ids = `"userToken":"ann","index":"i","explain":true,"objectIDs":["o0","o1","o2","o3","o4","o5"]`
	relevancies := []string{}
	for n := range 6 {
		relevancies = append(relevancies, fmt.Sprintf(`{"id":"o%d","fields":[{"name":"relevancy","value":%d}]}`, n, n*n))
	}
	for name, test := range map[string]struct {
		body  string
		query ranking.Query
	}{
		"ids":              {`{` + ids + `}`, ranking.Query{}},
		"second half-life": {`{` + ids + `,"halfLife":"7d"}`, ranking.Query{HalfLife: 1}},
		"limit":            {`{` + ids + `,"limit":2}`, ranking.Query{Limit: 2}},
		"demoted":          {`{` + ids + `,"seen":"demote"}`, ranking.Query{Seen: ranking.Demote}},
		"excluded":         {`{` + ids + `,"seen":"exclude"}`, ranking.Query{Seen: ranking.Exclude}},
		"relevancies": {`{"userToken":"ann","index":"i","explain":true,"impact":35,"items":[` + strings.Join(relevancies, ",") + `]}`,
			ranking.Query{Impact: &impact}},
		"this version": {`{` + ids + `,"strategy":1}`, ranking.Query{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ranked(t, h, test.body)
			if diff := cmp.Diff(b.reference(test.query), got.Items, near); diff != "" {
				t.Errorf("(-reference +got):\n%s", diff)
			}
			if want := api.AtMillis(b.began.Add(-day).UnixMilli()); got.CrowdAsOf == nil || !got.CrowdAsOf.Equal(want.Time) || got.Fallback != nil {
				t.Errorf("crowdAsOf %v, want %v; fallback %v, want none", got.CrowdAsOf, want, got.Fallback)
			}
		})
	}
}

// Another version, and a draft, is computed with its session, as if it were active.
func TestOtherStrategyEqualsReference(t *testing.T) {
	b := newBoutique(t)
	h := rank.New(b.Backends.ForRank())
	functiontest.SetStrategy(t, b.Stack, strategy.Strategy{})
	draft, err := json.Marshal(allFeatures())
	must.Succeed(t, err)
	for version, asked := range []string{`"draft":` + string(draft), `"strategy":1`} {
		got := ranked(t, h, `{"userToken":"ann","index":"i","explain":true,`+asked+`,"objectIDs":["o0","o1","o2","o3","o4","o5"]}`)
		if diff := cmp.Diff(b.reference(ranking.Query{}), got.Items, near); diff != "" || got.StrategyVersion != int64(version) {
			t.Errorf("%.20s: version %d (-reference +got):\n%s", asked, got.StrategyVersion, diff)
		}
	}
}

// A change of the ranking alone leaves the stored profile valid, whichever
// version a request asks for.
func TestChangeOfRankingAlone(t *testing.T) {
	b := newBoutique(t)
	h := rank.New(b.Backends.ForRank())
	plain := allFeatures()
	plain.Ranking = strategy.PlainRanking()
	functiontest.SetStrategy(t, b.Stack, plain)
	const body = `{"userToken":"ann","index":"i","explain":true,"objectIDs":["o0","o1","o2","o3","o4","o5"]`
	now := ranked(t, h, body+`}`)
	if now.StrategyVersion != 2 || now.ScoringVersion != 1 {
		t.Errorf("version %d, scoring version %d, want 2 and 1", now.StrategyVersion, now.ScoringVersion)
	}
	for _, item := range now.Items {
		for _, f := range item.Features {
			if f.Name != ranking.Affinity {
				t.Errorf("%s has the feature %s under the plain ranking", item.ObjectID, f.Name)
			}
		}
	}
	first := ranked(t, h, body+`,"strategy":1}`)
	if diff := cmp.Diff(b.reference(ranking.Query{}), first.Items, near); diff != "" || first.StrategyVersion != 1 || first.ScoringVersion != 0 {
		t.Errorf("version %d, scoring version %d (-reference +got):\n%s", first.StrategyVersion, first.ScoringVersion, diff)
	}
}

// A last instant whose objects the statistics do not count brings in no pairs,
// and one whose objects the catalog does not hold does not count.
func TestPairsOfTheLastInstant(t *testing.T) {
	b := newBoutique(t)
	paired := func() (names []string) {
		a := ranked(t, rank.New(b.Backends.ForRank()), `{"userToken":"ann","index":"i","explain":true,"objectIDs":["o0","o4","o5"]}`)
		for _, item := range a.Items {
			for _, f := range item.Features {
				if f.Name == ranking.Pairs {
					names = append(names, item.ObjectID)
				}
			}
		}
		return names
	}
	b.view(t, "ann", day, "elsewhere")
	if got := paired(); !cmp.Equal(got, []string{"o4", "o0"}) && !cmp.Equal(got, []string{"o0", "o4"}) {
		t.Errorf("%v have pairs with o1, o2 and o3; want o0 and o4", got)
	}
	b.view(t, "ann", day/2, "o4")
	if got := paired(); len(got) > 0 {
		t.Errorf("%v have pairs with o4, which has none", got)
	}
}

// A user without events gets popularity and freshness. So does a user who is
// deleted between two requests.
func TestFallback(t *testing.T) {
	b := newBoutique(t)
	h := rank.New(b.Backends.ForRank())
	ask := func(user string) api.RankAnswer {
		return ranked(t, h, `{"userToken":"`+user+`","index":"i","explain":true,"objectIDs":["o0","o1","o2","o3","o4","o5"]}`)
	}
	unknown := ask("bob")
	if want := []string{"o2", "o3", "o0", "o1", "o4", "o5"}; !cmp.Equal(want, order(unknown)) || unknown.Fallback == nil {
		t.Errorf("order %v, want %v; fallback %v", order(unknown), want, unknown.Fallback)
	}
	for _, item := range unknown.Items {
		for _, f := range item.Features {
			if f.Name != ranking.Popularity && f.Name != ranking.Freshness {
				t.Errorf("%s has the feature %s", item.ObjectID, f.Name)
			}
		}
	}
	if known := ask("ann"); known.Fallback != nil {
		t.Fatalf("ann: fallback %v", *known.Fallback)
	}
	if _, err := b.Backends.Profiles.Delete(t.Context(), functiontest.App, "ann"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unknown.Items, ask("ann").Items, near); diff != "" {
		t.Errorf("a deleted user (-unknown +deleted):\n%s", diff)
	}
}
