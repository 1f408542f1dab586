// Package telemetry reports what the engine does: structured log lines in the form
// that Cloud Logging reads, spans of requests and messages, and metrics of the process.
// Spans and metrics are OpenTelemetry's: package export sends them where the environment
// says. The package keeps no data.
package telemetry

import (
	"io"
	"log/slog"
	"os"
)

// NewLogger returns a logger that writes one JSON object a line, with the field
// names that Cloud Logging knows. Traces belong to the given Google Cloud project.
func NewLogger(w io.Writer, project string) *slog.Logger {
	return slog.New(traced{slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: rename}), project})
}

func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.LevelKey:
		a.Key = "severity"
		if a.Value.String() == slog.LevelWarn.String() {
			a.Value = slog.StringValue("WARNING")
		}
	case slog.MessageKey:
		a.Key = "message"
	}
	return a
}

// Default returns a logger to standard error, which the platform collects, for the
// project that GOOGLE_CLOUD_PROJECT names.
func Default() *slog.Logger { return NewLogger(os.Stderr, os.Getenv("GOOGLE_CLOUD_PROJECT")) }
