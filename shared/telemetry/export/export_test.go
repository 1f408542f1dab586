package export_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/telemetry"
	"github.com/affinityengine/affinity/shared/telemetry/export"
)

// memory is an exporter of the tests, under a name of its own.
var memory = tracetest.NewInMemoryExporter()

func init() {
	autoexport.RegisterSpanExporter("memory", func(context.Context) (sdktrace.SpanExporter, error) { return keeping{memory}, nil })
}

// keeping keeps spans after the end of the exporter.
type keeping struct{ *tracetest.InMemoryExporter }

func (keeping) Shutdown(context.Context) error { return nil }

var quiet = slog.New(slog.DiscardHandler)

// Without an exporter a process records nothing.
func TestNone(t *testing.T) {
	for _, variables := range []map[string]string{
		{},
		{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
		{"OTEL_SERVICE_NAME": "shop", "OTEL_TRACES_SAMPLER": "always_on"},
		{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
	} {
		for name, value := range variables {
			t.Setenv(name, value)
		}
		e, err := export.Start(t.Context(), quiet)
		if err != nil || telemetry.Recording() {
			t.Errorf("%v: %v, records spans: %v", variables, err, telemetry.Recording())
		} else if err := e.Shutdown(t.Context()); err != nil {
			t.Errorf("%v: %v", variables, err)
		}
		for name := range variables {
			os.Unsetenv(name)
		}
	}
}

// A wrong variable is named.
func TestWrongVariables(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_TRACES_EXPORTER": "zebra", "OTEL_METRICS_EXPORTER": "zebra", "OTEL_RESOURCE_ATTRIBUTES": "no pair",
	} {
		t.Setenv(name, value)
		if _, err := export.Start(t.Context(), quiet); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
		os.Unsetenv(name)
	}
}

// Spans carry no text of an error: that of a backend may quote a user's key. The test runs
// in a process of its own, because a process that records spans does so to its end.
func TestSpansCarryNoErrorText(t *testing.T) {
	const child = "AFFINITY_TEST_RECORDS"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "TestSpansCarryNoErrorText$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "OTEL_TRACES_EXPORTER=memory", "OTEL_SERVICE_NAME=shop")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	e, err := export.Start(t.Context(), quiet)
	if err != nil || !telemetry.Recording() {
		t.Fatalf("%v, records spans: %v", err, telemetry.Recording())
	}
	_, span := otel.Tracer("test").Start(t.Context(), "read")
	span.RecordError(errors.New("row u#ann is locked"))
	span.AddEvent("retry")
	span.SetStatus(codes.Error, "row u#ann is locked")
	span.End()
	must.Succeed(t, e.Shutdown(t.Context()))
	spans := memory.GetSpans()
	if len(spans) != 1 || spans[0].Status.Code != codes.Error || spans[0].Status.Description != "" || len(spans[0].Events) != 1 || spans[0].Events[0].Name != "retry" {
		t.Errorf("%+v", spans)
	}
	if name, _ := spans[0].Resource.Set().Value("service.name"); name.AsString() != "shop" {
		t.Errorf("the service is %q", name.AsString())
	}
}

// A collector that does not answer costs a line of the log, and no request.
func TestLostExportsAreLogged(t *testing.T) {
	const child = "AFFINITY_TEST_LOSES"
	if os.Getenv(child) == "" {
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		must.Succeed(t, err)
		closed.Close()
		cmd := exec.Command(os.Args[0], "-test.run", "TestLostExportsAreLogged$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+closed.Addr().String())
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	var lines bytes.Buffer
	e, err := export.Start(t.Context(), slog.New(slog.NewTextHandler(&lines, nil)))
	must.Succeed(t, err)
	r := httptest.NewRequest("GET", "/", nil)
	_, w, span := telemetry.StartRequest(t.Context(), httptest.NewRecorder(), r)
	w.WriteHeader(http.StatusInternalServerError)
	span.End("/")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	shutdown := e.Shutdown(ctx)
	if !strings.Contains(lines.String()+errText(shutdown), "connection refused") {
		t.Errorf("%v, and logged %q; want the reason", shutdown, lines.String())
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
