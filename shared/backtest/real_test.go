package backtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/strategy"
)

// readLines calls add with each line of a file of real data.
func readLines(t *testing.T, path string, add func([]byte)) {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("no real data: %v", err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		add(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// readReal reads the first events of real data: all of so many users, over the
// first objects of the catalog.
func readReal(t *testing.T, name string, users, catalogSize int) ([]Object, []Event, strategy.Strategy) {
	t.Helper()
	dir := filepath.Join("../../../shared/data", name)
	var objects []Object
	readLines(t, filepath.Join(dir, "objects.ndjson.gz"), func(line []byte) {
		if len(objects) == catalogSize {
			return
		}
		filters, err := catalog.Filters(line, catalog.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		var record struct{ ObjectID string }
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, Object{ID: record.ObjectID, Filters: filters})
	})
	var events []Event
	seen := map[string]bool{}
	readLines(t, filepath.Join(dir, "events.ndjson.gz"), func(line []byte) {
		e, err := event.Decode(line, event.Rules{Now: time.UnixMilli(2_000_000_000_000), Index: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if !seen[e.UserToken] && len(seen) == users {
			return
		}
		seen[e.UserToken] = true
		events = append(events, Event{
			User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs,
		})
	})
	text, err := os.ReadFile(filepath.Join(dir, "strategy.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s strategy.Strategy
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	s.PersonalizationImpact = 50
	return objects, events, s
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
