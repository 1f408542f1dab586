package event_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// TestRealEvents decodes what real shops recorded: every line must be accepted
// as an import would accept it.
func TestRealEvents(t *testing.T) {
	for _, set := range realdata.With(t, realdata.EventsFile) {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			decodeSet(t, set)
		})
	}
}

func decodeSet(t *testing.T, set string) {
	rules := event.Rules{Now: receipt, Index: "shop"}
	count := 0
	for line := range realdata.Lines(t, set, realdata.EventsFile) {
		if count++; count%race.Or(1, 10) != 0 {
			continue
		}
		e, err := event.Decode(line, rules)
		if err != nil {
			t.Fatalf("line %d: %v: %s", count, err, line)
		}
		if e.Received || e.Index != "shop" || len(e.ObjectIDs) == 0 {
			t.Fatalf("line %d became %+v", count, e)
		}
	}
	if count == 0 {
		t.Fatal("no events")
	}
	t.Logf("%d events", count)
}
