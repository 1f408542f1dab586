package export

import (
	"context"
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// private leaves the messages of errors out of spans. Those of a backend may quote a key,
// and with it the token of a user. Log lines hold them.
type private struct{ sdktrace.SpanExporter }

func (p private) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	kept := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		kept[i] = withoutMessages{s}
	}
	return p.SpanExporter.ExportSpans(ctx, kept)
}

type withoutMessages struct{ sdktrace.ReadOnlySpan }

func (s withoutMessages) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}

func (s withoutMessages) Events() []sdktrace.Event {
	return slices.DeleteFunc(slices.Clone(s.ReadOnlySpan.Events()),
		func(e sdktrace.Event) bool { return e.Name == semconv.ExceptionEventName })
}
