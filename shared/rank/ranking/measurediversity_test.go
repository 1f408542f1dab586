package ranking_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// diversities are measured on a data set; facet is one of it.
func diversities(facet string) []*strategy.Diversity {
	return []*strategy.Diversity{
		nil, {Lambda: 0.9}, {Lambda: 0.8}, {Lambda: 0.7}, {Lambda: 0.5}, {Facet: facet, Lambda: 0.9}, {Facet: facet, Lambda: 0.7},
		{Facet: facet, MaxPerValue: 5}, {Facet: facet, MaxPerValue: 2},
	}
}

// TestMeasureDiversity writes what diversity costs in nDCG@10, and what it gives,
// into design/ranking.md.
func TestMeasureDiversity(t *testing.T) {
	if !*rewrite {
		t.Skip("measures for a minute: -rewrite")
	}
	page, err := os.ReadFile(measured)
	must.Succeed(t, err)
	const begin, end = "<!-- diversity -->\n", "<!-- end of diversity -->"
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("the page has no place for diversity")
	}
	text := "| data | diversity | nDCG@10 | overlap of two of the first 10 | values of the facet among them |\n| --- | --- | --- | --- | --- |\n"
	for _, data := range dataSets {
		log, given := readData(t, data.name, asTheyAre)
		cases, err := log.Cases(t.Context(), given, backtest.Options{})
		must.Succeed(t, err)
		text += measureDiversity(t, cases, given, data.name, data.within)
	}
	must.Succeed(t, os.WriteFile(measured, []byte(before+begin+text+end+after), 0o644))
}

// measureDiversity returns one row for each diversity.
func measureDiversity(t *testing.T, cases *backtest.Cases, s strategy.Strategy, name, facet string) string {
	variants, r := diversities(facet), ranking.New(s)
	gains := make([][]float64, len(variants)) // nDCG by case
	overlaps, values := make([]float64, len(variants)), make([]float64, len(variants))
	for i := range cases.Len() {
		q, relevant, err := cases.Query(i, s)
		must.Succeed(t, err)
		q.Explain = false
		for v, d := range variants {
			q.Diversity = d
			items := r.Rank(q).Items
			gains[v] = append(gains[v], ndcg(items, relevant))
			o, n := alike(q, items, facet)
			overlaps[v], values[v] = overlaps[v]+o, values[v]+n
		}
	}
	var b strings.Builder
	n := float64(cases.Len())
	for v, d := range variants {
		text, cell := "none", fmt.Sprintf("%.4f", mean(gains[v]))
		if d != nil {
			text = describe(*d)
			low, high := interval(gains[v], gains[0])
			base := mean(gains[0])
			cell += fmt.Sprintf(": %+.1f %% (%+.1f to %+.1f)", 100*(mean(gains[v])/base-1), 100*low/base, 100*high/base)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f | %.1f |\n", name, text, cell, overlaps[v]/n, values[v]/n)
	}
	return b.String()
}

func describe(d strategy.Diversity) string {
	text := fmt.Sprintf("lambda %g", d.LambdaOrDefault())
	if d.MaxPerValue > 0 {
		text = fmt.Sprintf("at most %d of a value", d.MaxPerValue)
	}
	if d.Facet != "" {
		text += ", `" + d.Facet + "`"
	}
	return text
}

func ndcg(items []ranking.Item, relevant []string) float64 {
	gain, ideal := 0.0, 0.0
	for i, item := range items {
		if slices.Contains(relevant, item.ObjectID) {
			gain += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(len(relevant), 10) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	return gain / ideal
}

// alike returns the mean overlap of two items, and how many values of a facet items
// have.
func alike(q *ranking.Query, items []ranking.Item, facet string) (overlap, values float64) {
	filters, distinct, pairs := [][]event.Filter{}, map[string]bool{}, 0.0
	for _, item := range items {
		carried := q.Candidates[item.Candidate].Object.Filters()
		for _, f := range carried {
			if f.Facet == facet {
				distinct[f.Value] = true
			}
		}
		for _, other := range filters {
			common := 0.0
			for _, f := range carried {
				if slices.Contains(other, f) {
					common++
				}
			}
			overlap, pairs = overlap+common/max(float64(len(carried)+len(other))-common, 1), pairs+1
		}
		filters = append(filters, carried)
	}
	return overlap / max(pairs, 1), float64(len(distinct))
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// interval returns the 95 % interval of the mean of paired differences.
func interval(a, b []float64) (low, high float64) {
	var d []float64
	for i := range a {
		d = append(d, a[i]-b[i])
	}
	m, square := mean(d), 0.0
	for _, v := range d {
		square += (v - m) * (v - m)
	}
	half := 1.96 * math.Sqrt(square) / float64(len(d))
	return m - half, m + half
}
