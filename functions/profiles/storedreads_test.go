package profiles_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// lineMetric is a metric of the deployment that counts log lines.
type lineMetric struct {
	Name, Message, Value string
	Every                int // one in how many has a line
	Bounds               []float64
}

func storedReads(t *testing.T) lineMetric {
	t.Helper()
	text, err := os.ReadFile("../../terraform/modules/monitoring/metrics.json")
	must.Succeed(t, err)
	var file struct{ Metrics []lineMetric }
	must.Succeed(t, json.Unmarshal(text, &file))
	i := slices.IndexFunc(file.Metrics, func(m lineMetric) bool { return m.Name == "stored_reads" })
	return file.Metrics[i]
}

// The engine's own metric counts every read of a stored profile, and no other one. Cloud
// Monitoring counts the lines of some: of as many as the deployment says, in the same buckets.
func TestStoredReadsAreMeasured(t *testing.T) {
	s, metric := functiontest.Start(t), storedReads(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 10}},
	})
	stored := affinity.Profile{StrategyVersion: 1, Anchor: time.Now().UnixMilli(), Known: true, Until: math.MaxInt64}
	must.Succeed(t, s.Backends.Store.Users.WriteProfiles(t.Context(), functiontest.App, []store.ProfileWrite{{
		User: "ann", Row: store.User{Ticket: 1}, Version: 1, Value: stored.AppendBinary(nil), Summary: stored.AppendBinary(nil)}}))

	var lines bytes.Buffer
	b := s.Backends.ForProfiles()
	b.Log = slog.New(slog.NewJSONHandler(&lines, nil))
	h := profiles.New(b)
	functiontest.Call(h, "profilesRead", "GET", "/1/profiles/nobody", "")
	reads := 2*metric.Every + 1
	for range reads {
		if answer := functiontest.Do(t, h, "profilesRead", "GET", "/1/profiles/ann", ""); !strings.Contains(answer, `"source":"stored"`) {
			t.Fatal(answer)
		}
	}
	logged := 0
	for line := range strings.Lines(lines.String()) {
		var fields map[string]any
		must.Succeed(t, json.Unmarshal([]byte(line), &fields))
		if fields["msg"] != metric.Message {
			continue
		}
		if ms, ok := fields[metric.Value].(float64); !ok || ms <= 0 {
			t.Errorf("the line %s has no time", line)
		}
		logged++
	}
	if logged != 3 {
		t.Errorf("%d lines for %d reads, want one for each %d:\n%s", logged, reads, metric.Every, &lines)
	}

	functiontest.Count(t, s, fmt.Sprint("affinity_stored_read_seconds_count ", reads))
	answer, err := http.Get(s.URL + "/metrics")
	must.Succeed(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.Succeed(t, err)
	buckets := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "affinity_stored_read_seconds_bucket") {
			buckets++
		}
	}
	for _, ms := range metric.Bounds {
		if bucket := fmt.Sprintf("affinity_stored_read_seconds_bucket{le=%q}", fmt.Sprint(ms/1000)); !strings.Contains(string(text), bucket) {
			t.Errorf("the engine's metric has no bucket %s", bucket)
		}
	}
	if buckets != len(metric.Bounds)+1 {
		t.Errorf("the engine's metric has %d buckets, the deployment's %d bounds", buckets, len(metric.Bounds))
	}
}
