package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/explain"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// An explanation keeps 16 MiB of contributions, however many may be listed: it adds up
// the earlier ones, and the score stays exact.
func TestKeptContributionsAreBounded(t *testing.T) {
	q := explain.Question{
		Window: affinity.Window{Now: now, RetentionDays: 90}, StrategyVersion: 1, Facet: "color", Value: "Red", Limit: 10_000,
		Strategy: strategy.Strategy{
			EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 10}},
			FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 3}},
		},
	}
	x := explain.New(q)
	const events = 6_000
	ids := strings.Repeat(`"`+strings.Repeat("x", 150)+`",`, 19)
	for i := range events {
		e := affinity.Event{Time: now - events + int64(i), Type: event.View, Name: "Seen", Counts: []affinity.Count{{Facet: "color", Value: "Red", N: 1}}}
		original := fmt.Sprintf(`{"receivedAt":%d,"index":"i","event":{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":[%s"%d"]}}`, now, ids, i)
		if x.Add(explain.Logged{Event: e, Receipt: now, Original: []byte(original)}); x.Held() > 16<<20 {
			t.Fatalf("%d bytes are kept after %d events", x.Held(), i+1)
		}
	}
	score := x.Answer(nil).Score
	list := score.Contributions
	if n := list[0].Events; n == 0 || n+len(list)-1 != events || score.Scores[0] != 30*events {
		t.Errorf("%d events are added up, %d are listed, the score is %v", n, len(list)-1, score.Scores[0])
	}
	if last := list[len(list)-1]; last.Time != now-1 || len(last.ObjectIDs) != 2 {
		t.Errorf("the last contribution is of %d, with %d objects", last.Time, len(last.ObjectIDs))
	}
	if x.Held() < 12<<20 {
		t.Errorf("only %d bytes are kept", x.Held())
	}
}
