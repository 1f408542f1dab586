// Package telemetry is how the engine tells what it does: structured log lines
// in the form Cloud Logging reads, and metrics kept in the process, which
// /metrics of the private functions shows in Prometheus' text format.
package telemetry

import (
	"io"
	"log/slog"
	"os"
)

// NewLogger writes one JSON object a line, with the field names that Cloud
// Logging gives a meaning to. Traces are those of a project.
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

// Default logs to standard error, where the platform collects it, for the project
// that GOOGLE_CLOUD_PROJECT names.
func Default() *slog.Logger { return NewLogger(os.Stderr, os.Getenv("GOOGLE_CLOUD_PROJECT")) }
