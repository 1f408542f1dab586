package telemetry

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Headers that name the trace of a request. Google's load balancers set both.
const (
	traceparent = "Traceparent" // W3C Trace Context
	cloudTrace  = "X-Cloud-Trace-Context"
)

var w3c propagation.TraceContext

// WithTrace returns a context with the trace that a request's header names. If
// the header names none, or is malformed, it returns ctx. Log lines with the context
// carry the trace: Cloud Logging shows the lines of a trace together, with those of the
// load balancer and of other functions.
func WithTrace(ctx context.Context, header http.Header) context.Context {
	if header[traceparent] != nil {
		extracted := w3c.Extract(ctx, propagation.HeaderCarrier(header))
		if trace.SpanContextFromContext(extracted).IsValid() {
			return extracted
		}
	}
	if parent := parseCloudTrace(header.Get(cloudTrace)); parent.HasTraceID() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}

// TraceID returns the ID of the request's trace, 32 hexadecimal digits, or "".
func TraceID(ctx context.Context) string {
	if current := trace.SpanContextFromContext(ctx); current.HasTraceID() {
		return current.TraceID().String()
	}
	return ""
}

// parseCloudTrace reads <trace>/<span, decimal>;o=<flags>. The span and the flags
// may be missing. Google's own propagator for OpenTelemetry is no longer maintained.
func parseCloudTrace(s string) trace.SpanContext {
	rest, options, _ := strings.Cut(s, ";")
	id, span, _ := strings.Cut(rest, "/")
	var c trace.SpanContextConfig
	var err error
	if c.TraceID, err = trace.TraceIDFromHex(id); err != nil {
		return trace.SpanContext{}
	}
	if n, err := strconv.ParseUint(span, 10, 64); err == nil {
		binary.BigEndian.PutUint64(c.SpanID[:], n)
	}
	if options == "o=1" {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(c)
}

// traced is a handler that adds the trace of the context to each line.
type traced struct {
	slog.Handler
	project string
}

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if current := trace.SpanContextFromContext(ctx); current.HasTraceID() {
		r = r.Clone()
		r.AddAttrs(slog.String("logging.googleapis.com/trace", "projects/"+h.project+"/traces/"+current.TraceID().String()))
		if current.HasSpanID() {
			r.AddAttrs(slog.String("logging.googleapis.com/spanId", current.SpanID().String()))
		}
		r.AddAttrs(slog.Bool("logging.googleapis.com/trace_sampled", current.IsSampled()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traced{h.Handler.WithAttrs(attrs), h.project}
}

func (h traced) WithGroup(name string) slog.Handler {
	return traced{h.Handler.WithGroup(name), h.project}
}
