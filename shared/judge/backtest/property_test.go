package backtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const minute = 60 * 1000

// drawObjects draws the catalog of an index.
func drawObjects(t *rapid.T) []Object {
	var objects []Object
	for i := range rapid.IntRange(5, 14).Draw(t, "objects") {
		o := Object{ID: fmt.Sprint("o", i)}
		for _, facet := range affinitytest.Facets {
			values := rapid.SliceOfNDistinct(rapid.SampledFrom(affinitytest.Values), 0, 2, rapid.ID).Draw(t, "values")
			slices.Sort(values)
			for _, v := range values {
				o.Filters = append(o.Filters, event.Filter{Facet: facet, Value: v})
			}
		}
		if rapid.Bool().Draw(t, "dated") {
			o.Dates = map[string]int64{"publishedAt": affinitytest.Now - rapid.Int64Range(-1, 30).Draw(t, "age")*affinitytest.DayMS}
		}
		objects = append(objects, o)
	}
	return objects
}

// drawEvents draws events of few users at few times, so that instants, windows
// of pairs and repeated events occur.
func drawEvents(t *rapid.T) []Event {
	draw := rapid.Custom(func(t *rapid.T) Event {
		e := Event{
			User:  fmt.Sprint("u", rapid.IntRange(0, 4).Draw(t, "user")),
			Time:  affinitytest.Now + rapid.SampledFrom([]int64{0, 1, 10 * minute, 30 * minute, 30*minute + 1, 45 * minute, 50 * minute, 55 * minute, 60 * minute}).Draw(t, "time"),
			ID:    fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "id")),
			Type:  rapid.SampledFrom(affinitytest.Types).Draw(t, "type"),
			Name:  rapid.SampledFrom(affinitytest.EventNames).Draw(t, "name"),
			Index: rapid.SampledFrom([]string{"p", "p", "p", "other"}).Draw(t, "index"),
		}
		if rapid.IntRange(0, 9).Draw(t, "by filters") == 0 {
			e.Filters = []event.Filter{{Facet: "f0", Value: rapid.SampledFrom(affinitytest.Values).Draw(t, "value")}}
			return e
		}
		for _, o := range rapid.SliceOfN(rapid.IntRange(0, 15), 1, 2).Draw(t, "named") {
			e.ObjectIDs = append(e.ObjectIDs, fmt.Sprint("o", o))
		}
		return e
	})
	// Events of one identity are one event: the generator must not draw another
	// content for it.
	return rapid.SliceOfNDistinct(draw, 25, 60, func(e Event) string { return fmt.Sprint(e.User, e.Time, e.ID) }).Draw(t, "events")
}

// drawStrategy draws a strategy with a ranking.
func drawStrategy(t *rapid.T) strategy.Strategy {
	s := affinitytest.DrawStrategy(t)
	weight := func(name string) *int {
		n := rapid.SampledFrom([]int{0, 0, 30, 100}).Draw(t, name)
		return &n
	}
	s.EventsScoring = nil // most kinds score, so that there are cases
	for _, typ := range affinitytest.Types {
		for _, name := range affinitytest.EventNames[:2] {
			score := rapid.SampledFrom([]int{0, 1, 10, 15}).Draw(t, "points")
			s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: name, EventType: typ, Score: score})
		}
	}
	if len(s.FacetsScoring) == 0 {
		s.FacetsScoring = []strategy.FacetScore{{FacetName: "f0"}}
	}
	s.FacetsScoring[0].Score = max(1, s.FacetsScoring[0].Score)
	s.PersonalizationImpact = 50
	s.Ranking = &strategy.Ranking{
		Contrast: rapid.SampledFrom([]strategy.Contrast{strategy.ContrastNone, strategy.ContrastIDF}).Draw(t, "contrast"),
		Session: &strategy.SessionRanking{Weight: weight("session"), HalfLife: rapid.SampledFrom(
			[]strategy.HalfLife{strategy.Events(2), strategy.Events(0.5), strategy.Days(1)}).Draw(t, "session half-life")},
		Popularity: &strategy.PopularityRanking{Weight: weight("popularity"), HalfLife: strategy.Days(7)},
		Pairs:      &strategy.PairsRanking{Weight: weight("pairs")},
		Sequence:   &strategy.PairsRanking{Weight: weight("sequence")},
		Neighbours: &strategy.PairsRanking{Weight: weight("neighbours")},
		Freshness:  &strategy.FreshnessRanking{Weight: weight("freshness")},
	}
	return s
}

func drawOptions(t *rapid.T) Options {
	return Options{
		Protocol: rapid.SampledFrom([]Protocol{Last, Rolling}).Draw(t, "protocol"),
		At:       rapid.IntRange(1, 4).Draw(t, "at"),
		Within:   rapid.SampledFrom([]string{"", "", "f1"}).Draw(t, "within"),
	}
}

func load(t must.Test, objects []Object, events []Event) *Log {
	l, err := NewLog("p", objects)
	must.Succeed(t, err)
	for _, e := range events {
		l.Add(e)
	}
	return l
}

const tolerance = 1e-9

func near(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b)) }

func compare(t interface{ Errorf(string, ...any) }, name string, got, want *Result) {
	if !near(got.NDCG, want.NDCG) || !near(got.HitRate, want.HitRate) || !near(got.MRR, want.MRR) || !near(got.Coverage, want.Coverage) {
		t.Errorf("%s: nDCG %g, hit rate %g, MRR %g, coverage %g; want %g, %g, %g, %g", name,
			got.NDCG, got.HitRate, got.MRR, got.Coverage, want.NDCG, want.HitRate, want.MRR, want.Coverage)
	}
}

// The fast form has the cases, candidates, baselines and scores of the
// reference.
func TestJudgesLikeTheReference(t *testing.T) {
	judgedCases := 0
	rapid.Check(t, func(t *rapid.T) {
		objects, events := drawObjects(t), drawEvents(t)
		given, other, options := drawStrategy(t), drawStrategy(t), drawOptions(t)
		l := load(t, objects, events)
		r := newReference("p", events, objects, given, options)
		for _, line := range drawShown(t) {
			if l.AddBaseline(line.placement, line.object, line.position) {
				r.shown = append(r.shown, line)
			}
		}
		c, err := l.Cases(t.Context(), given, options)
		if err != nil {
			return // TestNothingToJudge
		}
		cases := r.cases()
		if c.Cut() != r.cut || c.Len() != len(cases) {
			t.Fatalf("%d cases, cut %d; want %d, %d", c.Len(), c.Cut(), len(cases), r.cut)
		}
		judgedCases += len(cases)
		compareBaselines(t, c, r)
		for _, s := range []strategy.Strategy{given, other, Plain(other)} {
			if _, err := c.Judge(t.Context(), s); err != nil {
				continue // TestNothingToJudge
			}
			compareScores(t, c, r, s)
		}
	})
	enough := 30
	if testing.Short() {
		enough /= 5 // as rapid does fewer checks
	}
	if judgedCases < enough {
		t.Errorf("the generator made %d cases: too few to compare", judgedCases)
	}
}

func compareBaselines(t rapid.TB, c *Cases, r *reference) {
	compare(t, "popularity", judged(c.Popularity(context.Background())), r.judge(r.orderByPopularity))
	compare(t, "pairs", judged(c.Pairs(context.Background())), r.judge(r.orderByPairs))
	for _, halfLife := range []float64{0, 7 * minute, 2000, 3 * day} {
		recent := judged(c.recent(context.Background(), recency{halfLife: halfLife}))
		compare(t, fmt.Sprint("recent best sellers, half-life of ", halfLife), recent, r.judge(r.orderByRecent(halfLife)))
	}
	if c.log.shown != nil {
		compare(t, "what was shown", judged(c.shownList(context.Background())), r.judge(r.orderAsShown))
	}
}

// drawShown draws lists that were shown: of values of the facet f1 and others, and of unknown
// objects too.
func drawShown(t *rapid.T) (lines []shownLine) {
	placements := append([]string{"", "elsewhere"}, affinitytest.Values...)
	for range rapid.IntRange(0, 12).Draw(t, "shown") {
		lines = append(lines, shownLine{
			rapid.SampledFrom(placements).Draw(t, "placement"), fmt.Sprint("o", rapid.IntRange(0, 16).Draw(t, "object")),
			float64(rapid.IntRange(1, 5).Draw(t, "position")),
		})
	}
	return lines
}

// judged returns the result of a judgement whose context does not end.
func judged(r *Result, err error) *Result {
	if err != nil {
		panic(err)
	}
	return r
}

// compareScores compares the score of each candidate of each case, and then the
// metrics of the orders that these scores make.
func compareScores(t rapid.TB, c *Cases, r *reference, s strategy.Strategy) {
	compiled := c.compile(s)
	scorer, scores := compiled.ranker(), make([]float64, len(c.log.objects))
	worker := newWorker(c, compiled.ranker())
	orders := map[string][]string{}
	for i, want := range r.cases() {
		in := &c.cases[i]
		worker.findCandidates(in)
		scorer.rank(in, worker.candidates, scores)
		comparePast(t, c, scorer.past, r, want, s)
		items := ranking.Reference(s, r.query(want, s)).Items
		if len(items) != len(worker.candidates) {
			t.Fatalf("case %d has %d candidates, want %d", i, len(worker.candidates), len(items))
		}
		for _, item := range items {
			if got := scores[c.log.known[item.ObjectID]]; !near(got, item.Score) {
				t.Fatalf("case %d, candidate %s: score %g, want %g", i, item.ObjectID, got, item.Score)
			} else if got != affinity.Rounded(got) {
				t.Fatalf("case %d, candidate %s: rounding decides between %v and equal scores", i, item.ObjectID, got)
			}
		}
		order := slices.Clone(want.candidates) // by objectID
		slices.SortStableFunc(order, func(x, y string) int {
			return -compareFloat(scores[c.log.known[x]], scores[c.log.known[y]])
		})
		orders[fmt.Sprint(want.user, want.time)] = order
	}
	got, err := c.Judge(context.Background(), s)
	must.Succeed(t, err)
	compare(t, "strategy", got, r.judge(func(c referenceCase) []string { return orders[fmt.Sprint(c.user, c.time)] }))
}

// comparePast compares the objects of the user's history with those that a request would
// take. Without a weight of neighbours only those of the last instant matter.
func comparePast(t rapid.TB, c *Cases, found []past, r *reference, in referenceCase, s strategy.Strategy) {
	var events []affinity.Event // as the log of the engine has them
	var objects [][]string
	for _, e := range r.past(in) {
		events = append(events, affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs})
		objects = append(objects, r.known(e))
	}
	sorted := func(all []ranking.Past) []ranking.Past {
		if s.RankingOrDefault().Neighbours.Weight == 0 {
			all = slices.DeleteFunc(all, func(p ranking.Past) bool { return !p.Last })
		}
		slices.SortFunc(all, func(p, q ranking.Past) int { return strings.Compare(p.ObjectID, q.ObjectID) })
		return slices.Clip(all)
	}
	_, statistics := r.crowd(s.RankingOrDefault().Popularity.HalfLife.Millis())
	counted := func(id string) bool { return statistics[id].Events > 0 }
	var got []ranking.Past
	for _, p := range found {
		got = append(got, ranking.Past{ObjectID: c.log.objects[p.object], Last: p.last, Age: p.age})
	}
	want := sorted(historyOf(events, objects, s, counted))
	if !slices.Equal(sorted(got), want) {
		t.Fatalf("history %v, want %v", got, want)
	}
	known := func(id string) bool { _, ok := r.objects[id]; return ok }
	asked := ranking.History(affinity.ReferenceSession(events, s, affinity.Window{Now: in.time}), r.index, known, counted)
	if asked = sorted(asked); !slices.Equal(asked, want) {
		t.Fatalf("history of a request %v, want %v", asked, want)
	}
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Scores that are so old that they underflow, in part or altogether, are figures
// like all others.
func TestVeryOldEvents(t *testing.T) {
	objects := []Object{
		{ID: "o1", Filters: []event.Filter{{Facet: "f", Value: "a"}}},
		{ID: "o2", Filters: []event.Filter{{Facet: "f", Value: "b"}}},
		{ID: "o3", Filters: []event.Filter{{Facet: "f", Value: "b"}}},
		{ID: "o4"},
	}
	minutes, err := strategy.ParseHalfLife("1m")
	must.Succeed(t, err)
	s := strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "a", EventType: event.View, Score: 1}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "f", Score: 1}},
		PersonalizationImpact: 50, HalfLives: []strategy.HalfLife{minutes},
	}
	var events []Event
	for u, ages := range [][2]int64{{1000, 1040}, {1040, 1072}, {2000, 3000}, {10, 1070}} {
		for i, age := range []int64{ages[0], ages[1], 0} {
			events = append(events, Event{
				User: fmt.Sprint("u", u), Time: affinitytest.Now - age*minute, ID: fmt.Sprint(i), Type: event.View, Name: "a",
				Index: "p", ObjectIDs: []string{[]string{"o1", "o2", "o3"}[i]},
			})
		}
	}
	options := Options{Protocol: Last, At: 2}
	c, err := load(t, objects, events).Cases(t.Context(), s, options)
	must.Succeed(t, err)
	r := newReference("p", events, objects, s, options)
	compareScores(t, c, r, s)
	compareScores(t, c, r, Plain(s))
}
