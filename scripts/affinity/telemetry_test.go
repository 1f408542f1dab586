package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// collector receives spans and metrics as an OpenTelemetry collector does.
type collector struct {
	URL string

	mu    sync.Mutex
	spans []*trace.Span
	names map[string]bool // of metrics
	text  strings.Builder // all that was received
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{names: map[string]bool{}}
	mux := http.NewServeMux()
	receive := func(path string, m proto.Message, note func()) {
		mux.HandleFunc("POST "+path, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil || proto.Unmarshal(body, m) != nil {
				t.Errorf("%s: cannot read %q: %v", path, body, err)
			}
			c.text.WriteString(prototext.Format(m))
			note()
		})
	}
	var sent traces.ExportTraceServiceRequest
	receive("/v1/traces", &sent, func() {
		for _, r := range sent.GetResourceSpans() {
			for _, s := range r.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	})
	var counted metrics.ExportMetricsServiceRequest
	receive("/v1/metrics", &counted, func() {
		for _, r := range counted.GetResourceMetrics() {
			for _, s := range r.GetScopeMetrics() {
				for _, m := range s.GetMetrics() {
					c.names[m.GetName()] = true
				}
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// span returns a span of a name in a trace, or in any trace if that is empty.
func (c *collector) span(t *testing.T, name string, in []byte) *trace.Span {
	t.Helper()
	var names []string
	for _, s := range c.spans {
		if s.GetName() == name && (in == nil || bytes.Equal(in, s.GetTraceId())) {
			return s
		}
		if in == nil || bytes.Equal(in, s.GetTraceId()) {
			names = append(names, s.GetName())
		}
	}
	t.Fatalf("no span %q in the trace %x, which has %q", name, in, names)
	return nil
}

// has reports whether a span of a name has arrived.
func (c *collector) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.spans, func(s *trace.Span) bool { return s.GetName() == name })
}

// caused reports whether a span has a link to a span of a trace.
func caused(s *trace.Span, by []byte) bool {
	for _, l := range s.GetLinks() {
		if bytes.Equal(l.GetTraceId(), by) {
			return true
		}
	}
	return false
}

// clientTrace is the trace that a client's requests name.
const clientTrace = "0af7651916cd43dd8448eb211c80319c"

// The standard variables export spans and metrics. Spans lead from an event to its row and
// from a deletion to its task, and no user, key, object or value is in them.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	engine := startProcess(t, append(os.Environ(), asTool+"=1", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50"))
	sendSecrets(t, engine, c)
	must(t, engine.cmd.Process.Signal(os.Interrupt))
	if err := engine.cmd.Wait(); err != nil { // it sends the last spans
		t.Fatal(err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	client, err := hex.DecodeString(clientTrace)
	must(t, err)
	ingest := c.span(t, "POST /1/events", client)
	published := c.span(t, "events create", client)
	if !bytes.Equal(published.GetParentSpanId(), ingest.GetSpanId()) {
		t.Errorf("the publish is no part of the request:\n%v", published)
	}
	processed := c.span(t, "process events-process", nil)
	if !caused(processed, client) || bytes.Equal(processed.GetTraceId(), client) {
		t.Errorf("the delivery has no link to the publish:\n%v", processed)
	}
	c.span(t, "google.bigtable.v2.Bigtable/MutateRow", processed.GetTraceId())
	if purged := c.span(t, "POST /purge", nil); !caused(purged, client) {
		t.Errorf("the task has no link to the deletion:\n%v", purged)
	}
	c.span(t, "GET /1/profiles/{userToken}", client)
	c.span(t, "GET /1/usage", client) // the end of the process sent it
	for _, name := range []string{"affinity.events", "affinity.event_to_visible", "affinity.folds", "rpc.client.call.duration"} {
		if !c.names[name] {
			t.Errorf("the metric %s was not exported; there are %v", name, c.names)
		}
	}
	for line := range strings.Lines(c.text.String()) {
		if text := strings.ToLower(line); strings.Contains(text, "secret") || strings.Contains(text, "demokey") {
			t.Errorf("a span or a metric tells what a client sent: %s", line)
		}
	}
}

// sendSecrets sends requests of each kind whose every part is a secret. It returns after
// the event is applied and its user purged.
func sendSecrets(t *testing.T, engine *process, c *collector) {
	t.Helper()
	ask := func(method, path, body string, status int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, engine.url+path, strings.NewReader(body))
		must(t, err)
		r.Header = http.Header{"X-Algolia-Application-Id": {"demo"}, "X-Algolia-Api-Key": {"demokey"}, "Traceparent": {"00-" + clientTrace + "-b7ad6b7169203331-01"}}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Errorf("%s %s: %s, want %d", method, path, answer.Status, status)
		}
	}
	until := func(reached func() (bool, error)) {
		t.Helper()
		must(t, cli.Poll(t.Context(), time.Minute, reached))
	}
	ask("POST", "/1/strategies/personalization", `{"eventsScoring":[{"eventName":"secret-name","eventType":"view","score":3}],
		"facetsScoring":[{"facetName":"secret-facet","score":7}],"personalizationImpact":50}`, 200)
	ask("POST", "/1/indexes/secret-index/batch", `{"requests":[{"action":"addObject","body":{"objectID":"secret-object","secret-facet":"secret-value"}}]}`, 200)
	ask("POST", "/1/events", `{"events":[{"eventType":"view","eventName":"secret-name","index":"secret-index","userToken":"secret-user","objectIDs":["secret-object"]}]}`, 200)
	until(func() (bool, error) {
		_, text := get(t, engine.url+"/metrics")
		return strings.Contains(text, "\naffinity_events_total{outcome=\"applied\"} 1\n"), nil
	})
	ask("GET", "/1/profiles/secret-user", "", 200)
	ask("GET", "/1/profiles/secret-user?secret-parameter=secret-value", "", 422)
	ask("GET", "/1/profiles/secret-user%2Fsecret-path/secret-path", "", 404)
	ask("SECRET-METHOD", "/1/profiles/secret-user", "", 405)
	ask("POST", "/1/events", `{"events":[{"userToken":"secret-user"}]}`, 422)
	ask("DELETE", "/1/usertokens/secret-user", "", 204)
	until(func() (bool, error) { return c.has("POST /purge"), nil })
	ask("GET", "/1/usage", "", 200)
}
