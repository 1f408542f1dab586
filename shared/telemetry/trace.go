package telemetry

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// trace identifies the trace of a request. Cloud Logging shows the lines of a
// trace together, with those of the load balancer and of other functions.
type trace struct {
	id, span string // hex, 32 and 16 digits; span may be empty
	sampled  bool
}

type traceKey struct{}

// WithTrace returns a context with the trace that a request's header names. If
// the header names none, or is malformed, it returns ctx.
func WithTrace(ctx context.Context, header http.Header) context.Context {
	t, ok := parseTraceparent(header.Get("Traceparent"))
	if !ok {
		t, ok = parseCloudTrace(header.Get("X-Cloud-Trace-Context"))
	}
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceID returns the ID of the request's trace, 32 hexadecimal digits, or "".
func TraceID(ctx context.Context) string {
	t, _ := ctx.Value(traceKey{}).(trace)
	return t.id
}

// parseTraceparent reads 00-<trace>-<span>-<flags>, W3C Trace Context.
func parseTraceparent(s string) (trace, bool) {
	parts := strings.Split(s, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || !hexadecimal(parts[1], 32) || !hexadecimal(parts[2], 16) || len(parts[3]) != 2 {
		return trace{}, false
	}
	flags, err := strconv.ParseUint(parts[3], 16, 8)
	return trace{parts[1], parts[2], flags&1 == 1}, err == nil
}

// parseCloudTrace reads <trace>/<span, decimal>;o=<flags>. The span and the flags
// may be missing.
func parseCloudTrace(s string) (trace, bool) {
	rest, options, _ := strings.Cut(s, ";")
	id, span, _ := strings.Cut(rest, "/")
	if !hexadecimal(id, 32) {
		return trace{}, false
	}
	t := trace{id: id, sampled: options == "o=1"}
	if n, err := strconv.ParseUint(span, 10, 64); err == nil && n != 0 {
		t.span = hex.EncodeToString([]byte{byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	return t, true
}

func hexadecimal(s string, digits int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == digits && strings.Trim(s, "0") != ""
}

// traced is a handler that adds the trace of the context to each line.
type traced struct {
	slog.Handler
	project string
}

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if t, ok := ctx.Value(traceKey{}).(trace); ok {
		r = r.Clone()
		r.AddAttrs(slog.String("logging.googleapis.com/trace", "projects/"+h.project+"/traces/"+t.id))
		if t.span != "" {
			r.AddAttrs(slog.String("logging.googleapis.com/spanId", t.span))
		}
		r.AddAttrs(slog.Bool("logging.googleapis.com/trace_sampled", t.sampled))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traced{h.Handler.WithAttrs(attrs), h.project}
}

func (h traced) WithGroup(name string) slog.Handler {
	return traced{h.Handler.WithGroup(name), h.project}
}
