package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// line is what a logger writes for a request with a header.
func line(t *testing.T, name, value string, level slog.Level) map[string]any {
	t.Helper()
	var out bytes.Buffer
	ctx := telemetry.WithTrace(context.Background(), http.Header{name: {value}})
	telemetry.NewLogger(&out, "shop").With("function", "process").LogAttrs(ctx, level, "events applied", slog.Int64("lagMs", 7))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	if got["time"] == nil {
		t.Error("no time")
	}
	delete(got, "time")
	return got
}

func TestLinesAreInCloudLoggingsForm(t *testing.T) {
	const (
		id     = "0af7651916cd43dd8448eb211c80319c"
		parent = "00-" + id + "-b7ad6b7169203331-01"
	)
	for _, test := range []struct {
		name, header, value string
		level               slog.Level
		want                map[string]any // beside message, function and lagMs
	}{
		{"no trace", "X-Other", "", slog.LevelInfo, map[string]any{"severity": "INFO"}},
		{"W3C", "Traceparent", parent, slog.LevelWarn, map[string]any{"severity": "WARNING", "logging.googleapis.com/trace": "projects/shop/traces/" + id,
			"logging.googleapis.com/spanId": "b7ad6b7169203331", "logging.googleapis.com/trace_sampled": true}},
		{"W3C, not sampled", "Traceparent", parent[:len(parent)-1] + "0", slog.LevelError, map[string]any{"severity": "ERROR",
			"logging.googleapis.com/trace": "projects/shop/traces/" + id, "logging.googleapis.com/spanId": "b7ad6b7169203331", "logging.googleapis.com/trace_sampled": false}},
		{"Google's", "X-Cloud-Trace-Context", id + "/255;o=1", slog.LevelDebug + 4, map[string]any{"severity": "INFO",
			"logging.googleapis.com/trace": "projects/shop/traces/" + id, "logging.googleapis.com/spanId": "00000000000000ff", "logging.googleapis.com/trace_sampled": true}},
		{"Google's, the trace alone", "X-Cloud-Trace-Context", id, slog.LevelInfo, map[string]any{"severity": "INFO",
			"logging.googleapis.com/trace": "projects/shop/traces/" + id, "logging.googleapis.com/trace_sampled": false}},
		{"too short", "X-Cloud-Trace-Context", id[1:] + "/1", slog.LevelInfo, map[string]any{"severity": "INFO"}},
		{"no hex", "Traceparent", "00-" + id[:31] + "x-b7ad6b7169203331-01", slog.LevelInfo, map[string]any{"severity": "INFO"}},
		{"none", "Traceparent", "00-00000000000000000000000000000000-b7ad6b7169203331-01", slog.LevelInfo, map[string]any{"severity": "INFO"}},
		{"a line of its own", "Traceparent", "\n" + parent, slog.LevelInfo, map[string]any{"severity": "INFO"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want["message"], test.want["function"], test.want["lagMs"] = "events applied", "process", 7.0
			if diff := cmp.Diff(test.want, line(t, test.header, test.value, test.level)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
