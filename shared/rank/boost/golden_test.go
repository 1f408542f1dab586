package boost_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files of testdata")

// hard are values that a careless renderer breaks on.
func hard() []boost.Affinity {
	return []boost.Affinity{
		{"brand", `O'Neil "& (Sons)"`, 12},
		{"brand", "back`tick", 11},
		{"brand", "<score=9>", 10},
		{"brand", "-minus", 9},
		{"brand", `C:\new && !(x) || y, z`, 8},
		{"color", "Grün 🎨 緑 أخضر", 7},
		{"color", "line\nbreak", 6},
		{"color", "bidi\u202eoverride", 5},
		{"color", "nul\x00", 4},
		{"color", "${q}", 3},
		{"size", strings.Repeat("2 KB ", 400), 2.5},
		{"size", "", 2},
		{"size", "  ", 1.9},
		{"categories.lvl0", "Home > Kitchen", 1.8},
		{`we"ird field`, "x", 1.7},
		{"brand", "Dr. Martens", 1.6},
		{"brand", "App*", 1.5},
	}
}

// bands are bands of prices, a text that is none, and a value of another facet.
func bands() []boost.Affinity {
	return []boost.Affinity{{"price", "50-100", 10}, {"price", "<0.5", 8}, {"brand", "Apple", 7}, {"price", "100+", 4}, {"price", "cheap", 3}}
}

// priceRanges knows the bands of bands.
func priceRanges(facet, value string) (*boost.Range, bool) {
	if facet != "price" {
		return nil, false
	}
	return map[string]*boost.Range{
		"50-100": {From: 50, Below: 100}, "<0.5": {From: math.Inf(-1), Below: 0.5}, "100+": {From: 100, Below: math.Inf(1)},
	}[value], true
}

// The whole answer of each mode: the example profile at impact 50 and 100, hard values
// at impact 100, and bands of numbers.
func TestGolden(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		type entry struct {
			Profile    string           `json:"profile"`
			Impact     int              `json:"impact"`
			Affinities []boost.Weighted `json:"affinities"`
			Query      map[string]any   `json:"query"`
			Dropped    []boost.Dropped  `json:"dropped"`
		}
		var entries []entry
		for _, c := range []struct {
			profile    string
			impact     int
			affinities []boost.Affinity
		}{{"example", 50, example()}, {"example", 100, example()}, {"hard", 100, hard()}, {"bands", 100, bands()}} {
			r := request(engine, mode, c.affinities)
			r.Impact, r.Ranges = c.impact, priceRanges
			answer, _ := render(t, r)
			entries = append(entries, entry{c.profile, c.impact, answer.Affinities, answer.Query, answer.Dropped})
		}
		var got bytes.Buffer
		encoder := json.NewEncoder(&got)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		must.Succeed(t, encoder.Encode(entries))
		// A file without characters that change how an editor shows it.
		text := strings.ReplaceAll(got.String(), "\u202e", `\u202e`)
		file := filepath.Join("testdata", engine+"."+mode+".json")
		if *rewrite {
			must.Succeed(t, os.WriteFile(file, []byte(text), 0o644))
		}
		want, err := os.ReadFile(file)
		must.Succeed(t, err)
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	})
}
