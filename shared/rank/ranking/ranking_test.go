package ranking_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// scoring is a strategy whose features all weigh 100, without contrast.
func scoring() strategy.Strategy {
	return strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "View", EventType: event.View, Score: 2}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "brand", Score: 10}, {FacetName: "colour", Score: 5}, {FacetName: "size", Score: 0}},
		Ranking: strategy.FullRanking{
			Contrast:   strategy.ContrastNone,
			Session:    strategy.FullSession{HalfLife: strategy.Events(1), Weight: 100},
			Popularity: strategy.FullPopularity{HalfLife: strategy.Days(7), Weight: 100},
			Pairs:      strategy.FullPairs{Weight: 100},
			Freshness:  strategy.FullFreshness{Attribute: "day", HalfLife: strategy.Days(2), Weight: 100},
		}.Ranking(),
	}
}

// last is an object of the user's last instant.
func last(id string) ranking.Past { return ranking.Past{ObjectID: id, Last: true} }

func object(filters ...string) *ranking.Object {
	var parsed []event.Filter
	for _, text := range filters {
		f, err := event.ParseFilter(text)
		if err != nil {
			panic(err)
		}
		parsed = append(parsed, f)
	}
	return ranking.Compile(parsed)
}

func filter(facet, value string) event.Filter { return event.Filter{Facet: facet, Value: value} }

func count(facet, value string, n int) affinity.Count {
	return affinity.Count{Facet: facet, Value: value, N: n}
}

func likes(facet, value string, scores ...float64) affinity.Affinity {
	return affinity.Affinity{Facet: facet, Value: value, Scores: scores}
}

func session(events ...affinity.Event) affinity.Session { return affinity.Session{Events: events} }

func view(counts ...affinity.Count) affinity.Event {
	return affinity.Event{Time: now, Type: event.View, Name: "View", Counts: counts}
}

// scores returns the scores by objectID, and checks that Rank and Reference
// agree.
func scores(t *testing.T, s strategy.Strategy, q ranking.Query) map[string]float64 {
	t.Helper()
	got, want := ranking.New(s).Rank(&q), ranking.Reference(s, &q)
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, tolerance)); diff != "" {
		t.Errorf("Rank (-Reference +Rank):\n%s", diff)
	}
	by := map[string]float64{}
	for _, item := range got.Items {
		by[item.ObjectID] = item.Score
	}
	return by
}

func check(t *testing.T, got, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, tolerance)); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

func TestRelevancy(t *testing.T) {
	impact := 40
	candidates := func(relevancies ...float64) []ranking.Candidate {
		var list []ranking.Candidate
		for i, r := range relevancies {
			c := ranking.Candidate{ObjectID: string(rune('a' + i)), Relevancy: r, HasRelevancy: true}
			if r < 0 {
				c = ranking.Candidate{ObjectID: c.ObjectID}
			}
			list = append(list, c)
		}
		return list
	}
	for name, test := range map[string]struct {
		candidates []ranking.Candidate
		want       map[string]float64
	}{
		"scaled over the request":            {candidates(2, 6, 3), map[string]float64{"a": 0, "b": 0.6, "c": 0.15}},
		"all equal count whole":              {candidates(7, 7), map[string]float64{"a": 0.6, "b": 0.6}},
		"one without has the lowest":         {candidates(2, 6, -1), map[string]float64{"a": 0, "b": 0.6, "c": 0}},
		"one without beside equal ones":      {candidates(7, -1), map[string]float64{"a": 0.6, "b": 0}},
		"nobody has one":                     {candidates(-1, -1), map[string]float64{"a": 0, "b": 0}},
		"one that is not finite counts none": {candidates(math.NaN(), math.Inf(1), 3, 5), map[string]float64{"a": 0, "b": 0, "c": 0, "d": 0.6}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, scores(t, scoring(), ranking.Query{Now: now, Candidates: test.candidates, Impact: &impact}), test.want)
		})
	}
}

func TestAffinity(t *testing.T) {
	q := ranking.Query{
		Now:        now,
		Affinities: []affinity.Affinity{likes("brand", "Apple", 8, 1), likes("colour", "red", 4, 6), likes("size", "L", 99, 99)},
		Candidates: []ranking.Candidate{
			{ObjectID: "both", Object: object("brand:Apple", "colour:red")},
			{ObjectID: "brand", Object: object("brand:Apple")},
			{ObjectID: "diluted", Object: object("brand:Apple", "colour:blue", "colour:green", "colour:white")},
			{ObjectID: "unscored", Object: object("brand:Apple", "size:L", "size:M", "weight:3")},
			{ObjectID: "none", Object: object("size:L")},
			{ObjectID: "unknown"},
		},
	}
	highest := 12 / math.Sqrt2 // of both
	check(t, scores(t, scoring(), q), map[string]float64{
		"both": 1, "brand": 8 / highest, "diluted": 8 / 2. / highest, "unscored": 8 / highest, "none": 0, "unknown": 0,
	})
	q.HalfLife = 1
	highest = 7 / math.Sqrt2
	check(t, scores(t, scoring(), q), map[string]float64{
		"both": 1, "brand": 1 / highest, "diluted": 1 / 2. / highest, "unscored": 1 / highest, "none": 0, "unknown": 0,
	})
}

func TestSession(t *testing.T) {
	q := ranking.Query{
		Now: now,
		Session: session(
			view(count("brand", "Apple", 1)),                            // 2 x 10
			view(count("brand", "Apple", 3), count("colour", "red", 1)), // half of it
			affinity.Event{Time: now - 3_600_000, Type: event.View, Name: "View", Counts: []affinity.Count{count("colour", "red", 2)}}, // a quarter
		),
		Candidates: []ranking.Candidate{
			{ObjectID: "brand", Object: object("brand:Apple")},
			{ObjectID: "colour", Object: object("colour:red", "brand:Other")},
		},
	}
	brand, colour := 20+20*3/2., 10/2.+10*2/4.
	check(t, scores(t, scoring(), q), map[string]float64{"brand": 1, "colour": colour / math.Sqrt2 / brand})

	s := scoring()
	hour, err := strategy.ParseHalfLife("1h")
	if err != nil {
		t.Fatal(err)
	}
	s.Ranking.Session.HalfLife = hour
	brand, colour = 20+20*3, 10+10*2/2.
	check(t, scores(t, s, q), map[string]float64{"brand": 1, "colour": colour / math.Sqrt2 / brand})

	q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: "search", Relevancy: 1, HasRelevancy: true})
	s.PersonalizationImpact = 30
	check(t, scores(t, s, q), map[string]float64{"brand": 0.3, "colour": 0.3 * colour / math.Sqrt2 / brand, "search": 0.7})
}

func TestCrowdAndTime(t *testing.T) {
	day := int64(24 * 3_600_000)
	q := ranking.Query{
		Now: now, HighestCount: 99,
		Neighbours: []ranking.Neighbours{
			{Past: last("A"), Events: 10, Pairs: []ranking.Pair{{ObjectID: "o1", Count: 4}, {ObjectID: "o2", Count: 1}}},
			{Past: last("B"), Events: 5, Pairs: []ranking.Pair{{ObjectID: "o2", Count: 3}, {ObjectID: "elsewhere", Count: 5}}},
			{Past: last("C"), Events: 0, Pairs: []ranking.Pair{{ObjectID: "o1", Count: 5}}},
		},
	}
	pairs := map[string]float64{"o1": 0.4 / 0.7, "o2": 1}
	for id, c := range map[string]struct {
		candidate ranking.Candidate
		want      float64
	}{
		"o1":     {ranking.Candidate{Count: 9}, math.Log(10) / math.Log(100)},
		"o2":     {ranking.Candidate{Count: 99}, 1},
		"stale":  {ranking.Candidate{Count: 1000}, 1},
		"today":  {ranking.Candidate{Dated: true, Published: now}, 1},
		"old":    {ranking.Candidate{Dated: true, Published: now - 4*day}, 0.25},
		"future": {ranking.Candidate{Dated: true, Published: now + 9*day}, 1},
		"plain":  {ranking.Candidate{Published: now}, 0},
	} {
		c.candidate.ObjectID = id
		q.Candidates = []ranking.Candidate{c.candidate, {ObjectID: "o2"}}
		if id == "o2" {
			q.Candidates = q.Candidates[:1]
		}
		if got, want := scores(t, scoring(), q)[id], c.want+pairs[id]; !near(got, want) {
			t.Errorf("%s scores %v, want %v", id, got, want)
		}
	}
}

// Sequences count as pairs do, but only what is related reaches back, and halves with age.
func TestSequenceAndNeighbours(t *testing.T) {
	s := scoring()
	s.Ranking.Sequence, s.Ranking.Neighbours = &strategy.PairsRanking{Weight: ptr(200)}, &strategy.PairsRanking{Weight: ptr(500)}
	older := ranking.Past{ObjectID: "B", Age: 3}
	q := ranking.Query{
		Now: now, Explain: true,
		Neighbours: []ranking.Neighbours{
			{Past: last("A"), Events: 4, Sequence: []ranking.Pair{{ObjectID: "x", Count: 4}, {ObjectID: "y", Count: 2}}, Related: []ranking.Pair{{ObjectID: "x", Count: 10}}},
			{Past: older, Events: 4, Pairs: []ranking.Pair{{ObjectID: "y", Count: 9}}, Sequence: []ranking.Pair{{ObjectID: "y", Count: 9}}, Related: []ranking.Pair{{ObjectID: "y", Count: 40}, {ObjectID: "x", Count: 20}}},
		},
		Candidates: []ranking.Candidate{{ObjectID: "x"}, {ObjectID: "y"}},
	}
	check(t, scores(t, s, q), map[string]float64{"x": 2 + 5, "y": 2*0.5 + 5})
	want := []ranking.Feature{
		{Name: "sequence", Value: 2, Parts: []ranking.Part{{"A", 2}}},
		{Name: "neighbours", Value: 5, Parts: []ranking.Part{{"A", 2.5}, {"B", 2.5}}},
	}
	if diff := cmp.Diff(want, ranking.New(s).Rank(&q).Items[0].Features, cmpopts.EquateApprox(0, tolerance)); diff != "" {
		t.Errorf("features of x (-want +got):\n%s", diff)
	}
	s.Ranking.Neighbours = nil
	check(t, scores(t, s, q), map[string]float64{"x": 2, "y": 1})
}

// A history is cut between steps. Objects that only the catalog knows make a last instant,
// but no step.
func TestHistory(t *testing.T) {
	event := func(time int64, ids ...string) affinity.Event {
		return affinity.Event{Time: time, Index: "p", ObjectIDs: ids}
	}
	held := func(id string) bool { return id != "foreign" }
	counted := func(id string) bool { return held(id) && id != "new" }
	session := affinity.Session{Events: []affinity.Event{
		event(9, "foreign"), event(8, "new"), event(7, "a", "new"), event(7, "b"), event(6, "new"), event(5, "a", "c"),
		{Time: 4, Index: "other", ObjectIDs: []string{"z"}}, event(3, "d"),
	}}
	want := []ranking.Past{{"a", false, 0}, {"b", false, 0}, {"c", false, 1}, {"d", false, 2}}
	if diff := cmp.Diff(want, ranking.History(session, "p", held, counted)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	session.Events = session.Events[2:]
	if got := ranking.History(session, "p", held, counted); !got[0].Last || !got[1].Last || got[2].Last {
		t.Errorf("history %+v, want a and b of the last instant", got)
	}
	session.Events = nil
	for i := range int64(60) {
		session.Events = append(session.Events, event(100-i/2, fmt.Sprint(i)))
	}
	if got := ranking.History(session, "p", held, counted); len(got) != ranking.MaxHistory || got[49].Age != 24 {
		t.Errorf("%d objects of a long history", len(got))
	}
}

func TestContrast(t *testing.T) {
	s := scoring()
	s.Ranking.Contrast = strategy.ContrastIDF
	s.Aliases = map[string]map[string]string{"brand": {"Appel": "Apple"}}
	q := ranking.Query{
		Now:        now,
		Affinities: []affinity.Affinity{likes("brand", "Apple", 1), likes("brand", "Rare", 1), likes("brand", "New", 1)},
		Candidates: []ranking.Candidate{
			{ObjectID: "apple", Object: object("brand:Appel")},
			{ObjectID: "rare", Object: object("brand:Rare")},
			{ObjectID: "new", Object: object("brand:New")},
		},
	}
	check(t, scores(t, s, q), map[string]float64{"apple": 1, "rare": 1, "new": 1})

	q.Frequencies = &ranking.Frequencies{Objects: 10, Filters: map[event.Filter]int{
		filter("brand", "Apple"): 3, filter("brand", "Appel"): 2, filter("brand", "Rare"): 1, filter("brand", "All"): 12,
	}}
	highest := math.Log(1 + 10/1.) // an unknown filter counts as one of a single object
	check(t, scores(t, s, q), map[string]float64{
		"apple": math.Log(1+10/5.) / highest, "rare": 1, "new": 1,
	})
	s.Ranking.Contrast = strategy.ContrastNone
	check(t, scores(t, s, q), map[string]float64{"apple": 1, "rare": 1, "new": 1})
}

func TestAliases(t *testing.T) {
	s := scoring()
	s.Aliases = map[string]map[string]string{"colour": {"rouge": "red", "rot": "red"}}
	q := ranking.Query{
		Now: now, Affinities: []affinity.Affinity{likes("colour", "red", 1)},
		Session: session(view(count("colour", "rot", 1))),
		Candidates: []ranking.Candidate{
			{ObjectID: "one", Object: object("colour:rouge")},
			{ObjectID: "two", Object: object("colour:red", "colour:rot")}, // counts add, as in a profile
			{ObjectID: "blue", Object: object("colour:blue")},
		},
	}
	check(t, scores(t, s, q), map[string]float64{"one": affinity.Rounded(math.Sqrt2), "two": 2, "blue": 0})
}

func TestSeen(t *testing.T) {
	impact := 60
	candidates := []ranking.Candidate{
		{ObjectID: "old", Seen: true, Relevancy: 9, HasRelevancy: true},
		{ObjectID: "a", Relevancy: 5, HasRelevancy: true},
		{ObjectID: "b", Relevancy: 1, HasRelevancy: true},
	}
	for seen, want := range map[ranking.Seen]map[string]float64{
		"":              {"old": 0.4, "a": 0.2, "b": 0},
		ranking.Keep:    {"old": 0.4, "a": 0.2, "b": 0},
		ranking.Demote:  {"old": 0.4 - 0.6/4, "a": 0.2, "b": 0},
		ranking.Exclude: {"a": 0.4, "b": 0}, // scaled over what is left
	} {
		check(t, scores(t, scoring(), ranking.Query{Now: now, Candidates: candidates, Impact: &impact, Seen: seen}), want)
	}
}

func TestFallback(t *testing.T) {
	popular := []ranking.Candidate{{ObjectID: "a", Count: 1}, {ObjectID: "b", Count: 3, Object: object("brand:Apple")}}
	for name, test := range map[string]struct {
		query ranking.Query
		want  string
	}{
		"no user":             {ranking.Query{}, "popularity"},
		"nothing that scores": {ranking.Query{Affinities: []affinity.Affinity{likes("size", "L", 1), likes("brand", "Apple", 0)}}, "popularity"},
		"a profile":           {ranking.Query{Affinities: []affinity.Affinity{likes("brand", "Apple", 1)}}, ""},
		"a session":           {ranking.Query{Session: session(view(count("brand", "X", 1)))}, ""},
		"a pair":              {ranking.Query{Neighbours: []ranking.Neighbours{{Past: last("z"), Events: 1, Pairs: []ranking.Pair{{ObjectID: "a", Count: 1}}}}}, ""},
	} {
		test.query.Candidates, test.query.HighestCount = popular, 3
		scores(t, scoring(), test.query)
		if got := ranking.New(scoring()).Rank(&test.query); got.Fallback != test.want {
			t.Errorf("%s: fallback %q, want %q", name, got.Fallback, test.want)
		}
	}
	// Without statistics, or without their weight, an order does not go by popularity.
	unweighted := scoring()
	unweighted.Ranking.Popularity.Weight = ptr(0)
	for name, test := range map[string]struct {
		strategy strategy.Strategy
		highest  float64
	}{"no statistics": {scoring(), 0}, "no weight": {unweighted, 3}} {
		query := ranking.Query{Candidates: popular, HighestCount: test.highest}
		scores(t, test.strategy, query)
		if got := ranking.New(test.strategy).Rank(&query); got.Fallback != "catalog" {
			t.Errorf("%s: fallback %q, want that of the catalog", name, got.Fallback)
		}
	}
}

func TestTiesAndLimit(t *testing.T) {
	q := ranking.Query{Candidates: []ranking.Candidate{{ObjectID: "c"}, {ObjectID: "a"}, {ObjectID: "b"}, {ObjectID: "a"}}}
	for limit, want := range map[int][]int{0: {1, 3, 2, 0}, 1: {1}, 3: {1, 3, 2}, 9: {1, 3, 2, 0}} {
		q.Limit = limit
		var got []int
		for _, item := range ranking.New(strategy.Strategy{}).Rank(&q).Items {
			got = append(got, item.Candidate)
		}
		if !cmp.Equal(got, want) {
			t.Errorf("limit %d: candidates %v, want %v", limit, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	s, impact := scoring(), 50
	s.Aliases = map[string]map[string]string{"colour": {"rot": "red", "rouge": "red"}}
	s.Ranking.Popularity.Weight, s.Ranking.Freshness.Weight = ptr(20), ptr(0)
	q := ranking.Query{
		Now: now, Explain: true, Impact: &impact, HighestCount: 3, Seen: ranking.Demote,
		Affinities: []affinity.Affinity{likes("brand", "Apple", 6), likes("colour", "red", 1)},
		Session:    session(view(count("colour", "red", 1))),
		Neighbours: []ranking.Neighbours{
			{Past: last("A"), Events: 4, Pairs: []ranking.Pair{{ObjectID: "x", Count: 1}}}, {Past: last("B"), Events: 4, Pairs: []ranking.Pair{{ObjectID: "x", Count: 3}}},
		},
		Candidates: []ranking.Candidate{
			{ObjectID: "x", Object: object("brand:Apple", "colour:rot", "colour:rouge"), Relevancy: 2, HasRelevancy: true, Count: 3, Dated: true, Seen: true},
			{ObjectID: "y", Relevancy: 1, HasRelevancy: true},
		},
	}
	want := []ranking.Item{
		{ObjectID: "x", Candidate: 0, Score: 0.5 + 0.5 + 0.5 + 0.2 + 1 - 0.125, Features: []ranking.Feature{
			{Name: "relevancy", Value: 0.5},
			{Name: "affinity", Value: 0.5, Parts: []ranking.Part{{"brand:Apple", 0.5 * 6 / 8}, {"colour:red", 0.5 * 2 / 8}}},
			{Name: "session", Value: 0.5, Parts: []ranking.Part{{"colour:red", 0.5}}},
			{Name: "popularity", Value: 0.2},
			{Name: "pairs", Value: 1, Parts: []ranking.Part{{"B", 0.75}, {"A", 0.25}}},
			{Name: "seen", Value: -0.125},
		}},
		{ObjectID: "y", Candidate: 1},
	}
	scores(t, s, q)
	if diff := cmp.Diff(want, ranking.New(s).Rank(&q).Items, cmpopts.EquateApprox(0, tolerance)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

// Two candidates of one object have the same parts of pairs, merged where an
// object occurs twice in the last instant.
func TestExplainPairsOfTwins(t *testing.T) {
	q := ranking.Query{Now: now, Explain: true,
		Neighbours: []ranking.Neighbours{
			{Past: last("A"), Events: 4, Pairs: []ranking.Pair{{ObjectID: "x", Count: 1}, {ObjectID: "y", Count: 2}, {ObjectID: "elsewhere", Count: 3}}},
			{Past: last("B"), Events: 4, Pairs: []ranking.Pair{{ObjectID: "x", Count: 3}}},
			{Past: last("A"), Events: 4, Pairs: []ranking.Pair{{ObjectID: "x", Count: 4}}},
		},
		Candidates: []ranking.Candidate{{ObjectID: "x"}, {ObjectID: "y"}, {ObjectID: "x"}, {ObjectID: "z"}},
	}
	scores(t, scoring(), q)
	var parts [][]ranking.Part
	for _, item := range ranking.New(scoring()).Rank(&q).Items {
		for _, f := range item.Features {
			if f.Name == ranking.Pairs {
				parts = append(parts, f.Parts)
			}
		}
	}
	ofX := []ranking.Part{{"A", 5.0 / 8}, {"B", 3.0 / 8}}
	if diff := cmp.Diff([][]ranking.Part{ofX, ofX, {{"A", 2.0 / 8}}}, parts, cmpopts.EquateApprox(0, tolerance)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// The sum of ratios that a float64 just holds stays finite, so that JSON can have it.
func TestExplainHugePairs(t *testing.T) {
	a := ranking.Neighbours{Past: last("A"), Events: 1, Pairs: []ranking.Pair{{ObjectID: "x", Count: 1.5e308}}}
	q := ranking.Query{Now: now, Explain: true, Neighbours: []ranking.Neighbours{a, a}, Candidates: []ranking.Candidate{{ObjectID: "x"}}}
	want := []ranking.Feature{{Name: ranking.Pairs, Value: 1, Parts: []ranking.Part{{Name: "A", Value: 1}}}}
	for name, items := range map[string][]ranking.Item{"rank": ranking.New(scoring()).Rank(&q).Items, "definition": ranking.Reference(scoring(), &q).Items} {
		if diff := cmp.Diff(want, items[0].Features); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestObject(t *testing.T) {
	given := []event.Filter{filter("size", "L"), filter("brand", "Apple"), filter("brand", "Acme"), filter("brand", "Apple"), filter("a", "b:c"), filter("a:b", "c")}
	want := []event.Filter{filter("a", "b:c"), filter("a:b", "c"), filter("brand", "Acme"), filter("brand", "Apple"), filter("size", "L")}
	if got := ranking.Compile(given).Filters(); !cmp.Equal(got, want) {
		t.Errorf("filters %v, want %v", got, want)
	}
	if given[0].Facet != "size" {
		t.Error("Compile sorted its input")
	}
	empty, one := ranking.Compile(nil).Size(), ranking.Compile([]event.Filter{filter("brand", "Apple")}).Size()
	if added := one - empty; added < len("brandApple") || added > 100 {
		t.Errorf("a filter takes %d bytes", added)
	}
}

// Filters whose texts are the same with a colon between them are different.
func TestFacetWithColon(t *testing.T) {
	s := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "a", Score: 1}, {FacetName: "a:b", Score: 1}}, Ranking: strategy.PlainRanking()}
	check(t, scores(t, s, ranking.Query{
		Affinities: []affinity.Affinity{likes("a", "b:c", 1)},
		Candidates: []ranking.Candidate{
			{ObjectID: "same", Object: ranking.Compile([]event.Filter{filter("a", "b:c")})},
			{ObjectID: "other", Object: ranking.Compile([]event.Filter{filter("a:b", "c")})},
		},
	}), map[string]float64{"same": 1, "other": 0})
}

func ptr(n int) *int { return &n }
