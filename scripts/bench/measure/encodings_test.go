package measure

import (
	"encoding/json"
	"testing"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// BenchmarkDecode decodes the values of narrow rows of 12 filters on average and scores
// three of eight facets.
func BenchmarkDecode(b *testing.B) {
	d := newDataset(shape{users: 1, events: 500, facets: 8, selected: 3, values: 2})
	all := map[string]encoding{"json": {func(list []filterCount) ([]byte, error) { return json.Marshal(list) }, narrowJSON},
		"proto": encodings[NarrowProto], "gob": encodings[NarrowGob]}
	for name, e := range all {
		b.Run(name, func(b *testing.B) {
			sc := affinity.NewScorer(affinity.Compile(d.strategy), d.window)
			var values [][]byte
			bytes := 0
			for _, event := range d.events(0, nil) {
				var list []filterCount
				for _, c := range event.Counts {
					list = append(list, filterCount{c.Facet, c.Value, c.N})
				}
				value, err := e.encode(list)
				if err != nil {
					b.Fatal(err)
				}
				values, bytes = append(values, value), bytes+len(value)
			}
			sections := map[string]affinity.Section{}
			for _, f := range d.strategy.FacetsScoring {
				sections[f.FacetName] = sc.Section(string(kinds[0].EventType), kinds[0].EventName, f.FacetName)
			}
			decode, i := e.decode(), 0
			for b.Loop() {
				sc.Reset(d.window)
				sc.Begin(d.window.Now - dayMS)
				if err := decode(sections, values[i%len(values)], sc); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(bytes)/float64(len(values)), "B/value")
		})
	}
}
