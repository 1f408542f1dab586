package backtest

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// readReal reads the first events of real data: all of so many users, over the
// first objects of the catalog.
func readReal(t *testing.T, name string, users, catalogSize int) ([]Object, []Event, strategy.Strategy) {
	t.Helper()
	var objects []Object
	for _, o := range realdata.Objects(t, name)[:catalogSize] {
		objects = append(objects, Object{ID: o.ID, Filters: o.Filters})
	}
	var events []Event
	seen := map[string]bool{}
	for e := range realdata.Events(t, name) {
		if !seen[e.UserToken] && len(seen) == users {
			continue
		}
		seen[e.UserToken] = true
		events = append(events, Event{
			User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: "p", ObjectIDs: e.ObjectIDs,
		})
	}
	return objects, events, realdata.Strategy(t, name)
}

// Real logs have what random ones lack: invoices in several events of one
// instant, long sessions, and objects with many filters.
func TestJudgesRealDataLikeTheReference(t *testing.T) {
	for _, test := range []struct {
		name           string
		users, objects int
	}{{"clickstream", 60, 217}, {"onlineretail", 30, 150}} {
		t.Run(test.name, func(t *testing.T) {
			objects, events, s := readReal(t, test.name, test.users, test.objects)
			for _, options := range []Options{{Protocol: Last, At: 10}, {Protocol: Last, At: 10, Within: "price_range"}} {
				c, err := load(t, objects, events).Cases(t.Context(), s, options)
				if err != nil {
					t.Fatal(err)
				}
				r := newReference("p", events, objects, s, options)
				if len(r.cases()) != c.Len() || c.Len() == 0 {
					t.Fatalf("%d cases, want %d", c.Len(), len(r.cases()))
				}
				compareBaselines(t, c, r)
				compareScores(t, c, r, s)
				compareScores(t, c, r, Plain(s))
			}
		})
	}
}
