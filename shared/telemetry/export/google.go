package export

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/oauth2/google"
)

// googleTraces is where Google Cloud takes spans:
// https://docs.cloud.google.com/stackdriver/docs/reference/telemetry/v1.traces
const googleTraces = "https://telemetry.googleapis.com/v1/traces"

func init() { autoexport.RegisterSpanExporter("google", newGoogleExporter) }

// newGoogleExporter returns an exporter to Cloud Trace, under the process's own account.
// Headers of OTLP cannot hold its token, which is valid for an hour.
func newGoogleExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	client, err := google.DefaultClient(ctx, "https://www.googleapis.com/auth/trace.append")
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	client.Timeout = 10 * time.Second // OTLP's own default
	options := []otlptracehttp.Option{otlptracehttp.WithHTTPClient(client)}
	if os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		options = append(options, otlptracehttp.WithEndpointURL(googleTraces))
	}
	return otlptracehttp.New(ctx, options...)
}
