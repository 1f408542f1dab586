// Package httpapi is what all functions that speak HTTP share: routing with
// JSON answers to every mistake, CORS, bodies with limits, and the one place
// where an error becomes a status. It keeps no data.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/strategy"
)

// Error is an answer to the client: a status and a message that may be shown.
type Error struct {
	Status  int
	Message string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Status maps an error to the status and the message that a client gets. What
// is the client's mistake is told in full; what is ours is told in general and
// left to the log.
func Status(err error) (int, string) {
	var e *Error
	var refusal *event.Refusal
	var invalid *strategy.Invalid
	var bad *catalog.Error
	switch {
	case errors.As(err, &e):
		return e.Status, e.Message
	case errors.As(err, &refusal):
		return refusal.Status, refusal.Message
	case errors.As(err, &invalid):
		if invalid.Syntax {
			return http.StatusBadRequest, invalid.Message
		}
		return http.StatusUnprocessableEntity, invalid.Message
	case errors.As(err, &bad):
		return bad.Status, bad.Message
	case errors.Is(err, auth.ErrCredentials):
		return http.StatusUnauthorized, "Invalid credentials"
	case errors.Is(err, auth.ErrForbidden):
		return http.StatusForbidden, "Method not allowed with this API key"
	case errors.Is(err, auth.ErrHost):
		return http.StatusForbidden, "This host serves another app than the key's"
	case Transient(err):
		return http.StatusServiceUnavailable, "The service is unavailable, try again"
	}
	return http.StatusInternalServerError, "Internal error"
}

// Transient tells faults of a backend that may be gone at the next attempt.
func Transient(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var domain interface{ Transient() bool }
	if errors.As(err, &domain) {
		return domain.Transient()
	}
	var grpc interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &grpc) {
		return false
	}
	switch grpc.GRPCStatus().Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.ResourceExhausted, codes.Canceled:
		return true
	}
	return false
}

// WriteJSON answers with a status and a JSON document.
func WriteJSON(w http.ResponseWriter, code int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	writeBody(w, code, body)
	return nil
}

func writeBody(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	// The client went away: nothing is left to tell him.
	_, _ = w.Write(append(body, '\n'))
}

// WriteError answers with {"status":N,"message":"..."} and logs what was not the
// client's mistake.
func WriteError(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	code, message := Status(err)
	if code >= http.StatusInternalServerError && r.Context().Err() == nil { // else the client is gone
		log.LogAttrs(r.Context(), slog.LevelError, "request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", code), slog.Any("error", err))
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	body, _ := json.Marshal(statusMessage{code, message})
	writeBody(w, code, body)
}

// statusMessage is the body of every error, and of what is simply done.
type statusMessage struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// WriteMessage answers with {"status":N,"message":"..."}.
func WriteMessage(w http.ResponseWriter, code int, message string) error {
	return WriteJSON(w, code, statusMessage{code, message})
}
