package history_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

// realLogs returns the events of a data set by user, with the filters that the
// engine gives them from the catalog, and without objects.
func realLogs(tb testing.TB, set string) [][]affinity.Event {
	filters := map[string][]event.Filter{}
	for _, o := range realdata.Objects(tb, set) {
		filters[o.ID] = o.Filters
	}
	byUser := map[string][]affinity.Event{}
	var users []string
	for e := range realdata.Events(tb, set) {
		counts := map[event.Filter]int{}
		one := affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name}
		for _, id := range e.ObjectIDs {
			for _, f := range filters[id] {
				counts[f]++
			}
		}
		for f, n := range counts {
			one.Counts = append(one.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: n})
		}
		slices.SortFunc(one.Counts, func(a, b affinity.Count) int {
			return cmp.Or(cmp.Compare(a.Facet, b.Facet), cmp.Compare(a.Value, b.Value))
		})
		if byUser[e.UserToken] == nil {
			users = append(users, e.UserToken)
		}
		byUser[e.UserToken] = append(byUser[e.UserToken], one)
	}
	logs := make([][]affinity.Event, len(users))
	for i, user := range users {
		logs[i] = byUser[user]
		slices.SortStableFunc(logs[i], byTime)
	}
	return logs
}

// TestBytesOfRealData holds the bytes of an event in blocks of real logs, without
// objects, to bounds. With -v it prints where the bytes go. A block of a user holds
// all events of the user, as after a fold.
func TestBytesOfRealData(t *testing.T) {
	sets := realdata.With(t, realdata.ObjectsFile)
	if race.On {
		t.Skip("one goroutine measures bytes: the race detector would only make it slow")
	}
	bounds := map[string]float64{"clickstream": 25, "onlineretail": 150}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "data\tevents/user\tblocks\tB/event\theader\tkinds\ttimes\tfacets\tpostings\tvalues\tdictionary")
	for _, set := range sets {
		logs := realLogs(t, set)
		for _, l := range layouts(logs) {
			blocks, size := packAll(l.Builder, logs)
			var parts history.Parts
			events := 0
			for i, user := range blocks {
				events += len(logs[i])
				for _, block := range user {
					parts.Add(t, block)
				}
			}
			n := float64(events)
			each := float64(size) / n
			fmt.Fprintf(w, "%s\t%.1f\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\n", set, n/float64(len(logs)), l.name, each,
				float64(parts.Header)/n, float64(parts.Kinds)/n, float64(parts.Times)/n, float64(parts.Facets)/n,
				float64(parts.Postings)/n, float64(parts.Values)/n, l.Dictionaries)
			if most, bounded := bounds[set]; bounded && l.name == "dictionary" && each > most {
				t.Errorf("%s: %.1f bytes an event, want at most %.0f", set, each, most)
			}
		}
	}
	_ = w.Flush()
	t.Log("\n" + out.String())
}
