package tune

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/backtest"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/strategy"
)

// realLog reads real data, or skips the test.
func realLog(t *testing.T, name string) (*backtest.Log, strategy.Strategy) {
	t.Helper()
	dir := filepath.Join("../../../shared/data", name)
	var objects []backtest.Object
	realLines(t, filepath.Join(dir, "objects.ndjson.gz"), func(line []byte) {
		filters, err := catalog.Filters(line, catalog.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		var record struct{ ObjectID string }
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, backtest.Object{ID: record.ObjectID, Filters: filters})
	})
	l, err := backtest.NewLog("p", objects)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	realLines(t, filepath.Join(dir, "events.ndjson.gz"), func(line []byte) {
		e, err := event.Decode(line, event.Rules{Now: now, Index: "p"})
		if err != nil {
			t.Fatal(err)
		}
		l.Add(backtest.Event{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs})
	})
	text, err := os.ReadFile(filepath.Join(dir, "strategy.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s strategy.Strategy
	if err := json.Unmarshal(text, &s); err != nil { // not Decode: it has no impact
		t.Fatal(err)
	}
	s.PersonalizationImpact = 50
	return l, s
}

func realLines(t *testing.T, path string, add func([]byte)) {
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

// On real data a search of few trials must be worth its time: much better than
// the plain ranking, and better than showing everybody the most popular objects.
// `affinity tune` judges all cases and searches longer.
func TestRealData(t *testing.T) {
	for _, d := range []struct {
		name  string
		times float64 // the plain ranking's nDCG
	}{{"clickstream", 2.3}, {"onlineretail", 3}} {
		t.Run(d.name, func(t *testing.T) {
			if raced && d.name != "clickstream" {
				t.Skip("one set of data is enough under the race detector")
			}
			l, given := realLog(t, d.name)
			cases, err := l.Cases(t.Context(), given, backtest.Options{Sample: 700})
			if err != nil {
				t.Fatal(err)
			}
			o, err := Run(t.Context(), cases, given, Options{Trials: 20})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("nDCG of %d untouched cases: plain %.4f, popularity %.4f, given %.4f, tuned %.4f", o.Untouched.Len(), o.Plain.NDCG, o.Popularity.NDCG, o.Given.NDCG, o.Tuned.NDCG)
			if o.Tuned.NDCG < d.times*o.Plain.NDCG {
				t.Errorf("tuned nDCG %.4f, want at least %.1f times the plain %.4f", o.Tuned.NDCG, d.times, o.Plain.NDCG)
			}
			if g := o.Tuned.Over(o.Popularity); g.Low <= 0 {
				t.Errorf("gain over popularity %.4f (%.4f to %.4f), want an interval above 0", g.Difference, g.Low, g.High)
			}
		})
	}
}
