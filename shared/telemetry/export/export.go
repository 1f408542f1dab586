// Package export sends the spans and the metrics of a process where OpenTelemetry's
// standard variables say. It sends nothing if they say nothing. It keeps no data but what
// waits to be sent.
//
// OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER are otlp, console or none, for traces also
// google (Cloud Trace), for metrics also prometheus. OTEL_EXPORTER_OTLP_ENDPOINT alone means
// otlp for both. All variables:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
package export

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"github.com/affinityengine/affinity/shared/telemetry"
)

// Exporters send what the process records.
type Exporters struct {
	// Meters makes metrics that are exported.
	Meters    metric.MeterProvider
	shutdowns []func(context.Context) error
}

// service is the name of the service if the environment gives no other.
const service = "affinity"

// Start starts the exporters that the environment names. Readers read the metrics besides.
// Start must be called before Google's clients are opened. The error names the variable
// that is wrong.
func Start(ctx context.Context, log *slog.Logger, readers ...sdkmetric.Reader) (*Exporters, error) {
	e := &Exporters{Meters: noop.NewMeterProvider()}
	attributes := []attribute.KeyValue{semconv.ServiceName(service), semconv.ServiceInstanceID(rand.Text())}
	if project := os.Getenv("GOOGLE_CLOUD_PROJECT"); project != "" {
		attributes = append(attributes, attribute.String("gcp.project_id", project)) // Cloud Trace asks for it
	}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	spans, err := newSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER: %w", err)
	}
	if spans != nil {
		p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(private{spans}), sdktrace.WithResource(from))
		e.shutdowns = append(e.shutdowns, p.Shutdown)
		telemetry.RecordSpans(p)
	}
	reader, err := newMetricReader(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("OTEL_METRICS_EXPORTER: %w", err), e.Shutdown(ctx))
	}
	if reader != nil {
		readers = append(readers, reader)
	}
	if len(readers) > 0 {
		options := []sdkmetric.Option{sdkmetric.WithResource(from)}
		for _, r := range readers {
			options = append(options, sdkmetric.WithReader(r))
		}
		p := sdkmetric.NewMeterProvider(options...)
		e.Meters, e.shutdowns = p, append(e.shutdowns, p.Shutdown)
		if reader != nil {
			otel.SetMeterProvider(p) // Google's clients use it
		}
	}
	if spans != nil || reader != nil {
		otel.SetErrorHandler(faults{log, rate.NewLimiter(rate.Every(time.Minute), 1)})
	}
	return e, nil
}

// Shutdown sends what waits to be sent, and stops.
func (e *Exporters) Shutdown(ctx context.Context) error {
	var errs []error
	for _, f := range e.shutdowns {
		errs = append(errs, f(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("send the last spans and metrics: %w", err)
	}
	return nil
}

// newSpanExporter returns nil if the environment names no exporter.
func newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if !wanted(os.Getenv("OTEL_TRACES_EXPORTER"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) {
		return nil, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil || autoexport.IsNoneSpanExporter(exporter) {
		return nil, err
	}
	return exporter, nil
}

// newMetricReader returns nil if the environment names no exporter.
func newMetricReader(ctx context.Context) (sdkmetric.Reader, error) {
	if !wanted(os.Getenv("OTEL_METRICS_EXPORTER"), os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")) {
		return nil, nil
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil || autoexport.IsNoneMetricReader(reader) {
		return nil, err
	}
	return reader, nil
}

// wanted reports whether the environment asks to export a signal, for which it names an
// exporter or an endpoint. The library would export to localhost if it asks for nothing.
func wanted(exporter, endpoint string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	return cmp.Or(exporter, endpoint, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}

// faults logs what keeps telemetry from being exported, a line a minute at most: the engine
// works without it.
type faults struct {
	log   *slog.Logger
	limit *rate.Limiter
}

func (f faults) Handle(err error) {
	if f.limit.Allow() {
		f.log.LogAttrs(context.Background(), slog.LevelWarn, "telemetry is not exported", slog.Any("error", err))
	}
}
