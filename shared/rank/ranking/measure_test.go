package ranking_test

import (
	"cmp"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

var rewrite = flag.Bool("rewrite", false, "measure again and write the tables of design/ranking.md")

// measured is the page with the tables.
const measured = "../../../functions/docs/design/ranking.md"

// dataSets are the real data beside the repository. least is what the default
// ranking must reach as a multiple of popularity's nDCG@10, and suggested what the suggested one must.
var dataSets = []struct {
	name, within     string
	least, suggested float64
}{{"clickstream", "category", 2.5, 3.2}, {"onlineretail", "price_range", 1.3, 2.3}}

// readData reads a data set and its strategy. deal changes the events first.
func readData(t *testing.T, name string, deal func([]backtest.Event)) (*backtest.Log, strategy.Strategy) {
	t.Helper()
	given := realdata.Strategy(t, name)
	var objects []backtest.Object
	for _, o := range realdata.Objects(t, name) {
		objects = append(objects, backtest.Object{ID: o.ID, Filters: o.Filters})
	}
	log, err := backtest.NewLog(realdata.Index, objects)
	must.Succeed(t, err)
	var events []backtest.Event
	for e := range realdata.Events(t, name) {
		if crc32.ChecksumIEEE([]byte(e.UserToken))%race.Or[uint32](1, 10) != 0 { // some of the users
			continue
		}
		events = append(events, backtest.Event{
			User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs,
		})
	}
	deal(events)
	for _, e := range events {
		log.Add(e)
	}
	return log, given
}

func asTheyAre([]backtest.Event) {}

// shuffled deals the objects of each 500 successive events out among them. What
// is popular stays, and no user has a taste any more.
func shuffled(events []backtest.Event) {
	random := rand.New(rand.NewPCG(1, 2))
	slices.SortStableFunc(events, func(a, b backtest.Event) int { return cmp.Compare(a.Time, b.Time) })
	for chunk := range slices.Chunk(events, 500) {
		var objects []string
		for _, e := range chunk {
			objects = append(objects, e.ObjectIDs...)
		}
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		for i := range chunk {
			n := len(chunk[i].ObjectIDs)
			chunk[i].ObjectIDs, objects = objects[:n], objects[n:]
		}
	}
}

// equal scores all facets and all events of s alike, as customers do who have
// not thought about it.
func equal(s strategy.Strategy) strategy.Strategy {
	e := s
	e.EventsScoring, e.FacetsScoring = nil, nil
	for _, score := range s.EventsScoring {
		score.Score = 10
		e.EventsScoring = append(e.EventsScoring, score)
	}
	for _, score := range s.FacetsScoring {
		score.Score = 10
		e.FacetsScoring = append(e.FacetsScoring, score)
	}
	return e
}

func TestDefaultRankingBeatsPopularity(t *testing.T) {
	for _, data := range dataSets {
		t.Run(data.name, func(t *testing.T) {
			log, given := readData(t, data.name, asTheyAre)
			beats := func(options backtest.Options, least float64, strategies ...strategy.Strategy) {
				cases, err := log.Cases(t.Context(), given, options)
				must.Succeed(t, err)
				popularity, err := cases.Popularity(t.Context())
				must.Succeed(t, err)
				base := popularity.NDCG
				for i, s := range strategies {
					result, err := cases.Judge(t.Context(), s)
					must.Succeed(t, err)
					if result.NDCG < least*base {
						t.Errorf("%+v, strategy %d: nDCG %.4f, want %.1f times that of popularity, %.4f", options, i, result.NDCG, least, base)
					}
				}
			}
			suggested := given
			suggested.Ranking = strategy.SuggestedRanking()
			beats(backtest.Options{}, data.least, given, equal(given))
			beats(backtest.Options{}, data.suggested, suggested)
			beats(backtest.Options{Within: data.within}, 1.3, given)
		})
	}
}

// variants change the suggested ranking.
var variants = []struct {
	name   string
	plain  bool // change the plain ranking instead
	change func(r, defaults *strategy.FullRanking)
}{
	{"plain", true, func(_, _ *strategy.FullRanking) {}},
	{"plain + contrast", true, func(r, d *strategy.FullRanking) { r.Contrast = d.Contrast }},
	{"plain + session", true, func(r, d *strategy.FullRanking) { r.Session = d.Session }},
	{"plain + popularity", true, func(r, d *strategy.FullRanking) { r.Popularity = d.Popularity }},
	{"plain + pairs", true, func(r, d *strategy.FullRanking) { r.Pairs = d.Pairs }},
	{"plain + sequence", true, func(r, d *strategy.FullRanking) { r.Sequence = d.Sequence }},
	{"plain + neighbours", true, func(r, d *strategy.FullRanking) { r.Neighbours = d.Neighbours }},
	{"**suggested**", false, func(_, _ *strategy.FullRanking) {}},
	{"default, without sequence and neighbours", false, func(r, _ *strategy.FullRanking) { *r = strategy.DefaultRanking() }},
	{"suggested without contrast", false, func(r, _ *strategy.FullRanking) { r.Contrast = strategy.ContrastNone }},
	{"suggested without session", false, func(r, _ *strategy.FullRanking) { r.Session.Weight = 0 }},
	{"suggested without popularity", false, func(r, _ *strategy.FullRanking) { r.Popularity.Weight = 0 }},
	{"suggested without pairs", false, func(r, _ *strategy.FullRanking) { r.Pairs.Weight = 0 }},
	{"suggested without sequence", false, func(r, _ *strategy.FullRanking) { r.Sequence.Weight = 0 }},
	{"suggested without neighbours", false, func(r, _ *strategy.FullRanking) { r.Neighbours.Weight = 0 }},
	{"sequence at 300", false, func(r, _ *strategy.FullRanking) { r.Sequence.Weight = 300 }},
	{"neighbours at 100", false, func(r, _ *strategy.FullRanking) { r.Neighbours.Weight = 100 }},
	{"neighbours at 500", false, func(r, _ *strategy.FullRanking) { r.Neighbours.Weight = 500 }},
	{"session at 50", false, func(r, _ *strategy.FullRanking) { r.Session.Weight = 50 }},
	{"popularity at 50", false, func(r, _ *strategy.FullRanking) { r.Popularity.Weight = 50 }},
	{"popularity of 3 days", false, func(r, _ *strategy.FullRanking) { r.Popularity.HalfLife = strategy.Days(3) }},
	{"popularity of 30 days", false, func(r, _ *strategy.FullRanking) { r.Popularity.HalfLife = strategy.Days(30) }},
}

// TestMeasure writes what each feature is worth into design/ranking.md.
func TestMeasure(t *testing.T) {
	if !*rewrite {
		t.Skip("measures only with -rewrite")
	}
	page, err := os.ReadFile(measured)
	must.Succeed(t, err)
	text := string(page)
	for _, data := range dataSets {
		begin, end := "<!-- "+data.name+" -->\n", "<!-- end of "+data.name+" -->"
		before, rest, found := strings.Cut(text, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("the page has no place for %s", data.name)
		}
		text = before + begin + table(t, data.name, data.within) + end + after
	}
	must.Succeed(t, os.WriteFile(measured, []byte(text), 0o644))
}

func table(t *testing.T, name, within string) string {
	log, given := readData(t, name, asTheyAre)
	dealt, _ := readData(t, name, shuffled)
	var columns [][]string
	for _, protocol := range []struct {
		name    string
		log     *backtest.Log
		options backtest.Options
	}{
		{"`last`", log, backtest.Options{}},
		{"`rolling`", log, backtest.Options{Protocol: backtest.Rolling}},
		{"`last`, within `" + within + "`", log, backtest.Options{Within: within}},
		{"`last`, shuffled", dealt, backtest.Options{}},
	} {
		cases, err := protocol.log.Cases(t.Context(), given, protocol.options)
		must.Succeed(t, err)
		heading := fmt.Sprintf("%s, %d cases", protocol.name, cases.Len())
		columns = append(columns, append([]string{heading, "---"}, measure(t, cases, given)...))
	}
	rows := []string{"ranking", "---", "popularity", "pairs of the last instant"}
	for _, v := range variants {
		rows = append(rows, v.name)
	}
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, column := range columns {
			fmt.Fprintf(&b, " %s |", column[i])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// measure returns one cell for each row. Those of variants of the suggested ranking say
// what the variant changes.
func measure(t *testing.T, cases *backtest.Cases, given strategy.Strategy) []string {
	judge := func(r strategy.FullRanking) *backtest.Result {
		s := given
		s.Ranking = r.Ranking()
		result, err := cases.Judge(t.Context(), s)
		must.Succeed(t, err)
		return result
	}
	defaults := strategy.Strategy{Ranking: strategy.SuggestedRanking()}.RankingOrDefault()
	popularity, err := cases.Popularity(t.Context())
	must.Succeed(t, err)
	pairs, err := cases.Pairs(t.Context())
	must.Succeed(t, err)
	whole := judge(defaults)
	multiple := func(r *backtest.Result) string { return fmt.Sprintf("%.4f (%.2fx)", r.NDCG, r.NDCG/popularity.NDCG) }
	cells := []string{multiple(popularity), multiple(pairs)}
	for _, v := range variants {
		r := defaults
		if v.plain {
			r = strategy.Strategy{Ranking: strategy.PlainRanking()}.RankingOrDefault()
		}
		v.change(&r, &defaults)
		result := judge(r)
		cell := multiple(result)
		if !v.plain && r != defaults {
			g := result.Over(whole)
			cell = fmt.Sprintf("%.4f: %+.1f %% (%+.1f to %+.1f)", result.NDCG, 100*(g.Ratio-1), 100*(g.RatioLow-1), 100*(g.RatioHigh-1))
		}
		cells = append(cells, cell)
	}
	return cells
}
