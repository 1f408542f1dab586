// Package httpapi is what all functions share in how they answer: routes, JSON
// answers to every mistake, CORS, bodies with limits, the statuses of errors, and
// the telemetry of a request. It keeps no data.
package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/fault"
)

// answerError is an answer to the client: a status and a message that may be shown.
type answerError struct {
	Status  int
	Message string
}

// Error returns the message.
func (e *answerError) Error() string { return e.Message }

// Errorf returns an error that is answered with a status and a message.
func Errorf(status int, format string, args ...any) error {
	return &answerError{Status: status, Message: fmt.Sprintf(format, args...)}
}

// shapedError is an error whose answer has another form than those of the engine.
type shapedError struct {
	error
	shape Shape
}

func (s *shapedError) Unwrap() error { return s.error }

// Shape returns an answer in another form: for the status, the message and the hint that the
// engine's own answer would have.
type Shape func(status int, message, hint string) (int, []byte)

// InShape returns an error whose answer is the JSON document that a Shape makes, byte for byte.
func InShape(err error, shape Shape) error { return &shapedError{err, shape} }

// statuses are the answers to the faults of a request.
var statuses = map[fault.Kind]int{
	fault.Malformed:       http.StatusBadRequest,
	fault.Invalid:         http.StatusUnprocessableEntity,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.TooMany:         http.StatusTooManyRequests,
}

// Status returns the status and the message with which an error is answered. The
// client's own mistakes are described in full. Faults of the engine are described
// in general; the log holds the details.
func Status(err error) (int, string) {
	var e *answerError
	var refusal *fault.Error
	switch {
	case errors.As(err, &e):
		return e.Status, e.Message
	case errors.As(err, &refusal):
		return statuses[refusal.Kind], refusal.Message
	case errors.As(err, new(*limit.Refused)):
		return http.StatusTooManyRequests, limited(err).Error()
	case errors.Is(err, admission.ErrFull):
		return http.StatusTooManyRequests, busy
	case transient(err):
		return http.StatusServiceUnavailable, unavailable
	}
	return http.StatusInternalServerError, "Internal error"
}

// unavailable is the answer to a fault that may be gone at the next attempt.
const unavailable = "The service is unavailable, try again"

// busy is the answer to a request for which the process has no memory at the
// moment. It says when to try again in Retry-After.
const busy = "The service handles as many requests as it can at the moment, send this one again later"

// transient reports whether a fault may be gone at the next attempt. An error says
// so itself by a method Transient() bool.
func transient(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var t interface{ Transient() bool }
	return errors.As(err, &t) && t.Transient()
}

// WriteJSON answers with a status and a JSON document.
func WriteJSON(w http.ResponseWriter, code int, v any) error {
	return write(w, code, func(body *bytes.Buffer) error {
		if err := json.NewEncoder(body).Encode(v); err != nil { // ends with a newline
			return fmt.Errorf("encode answer: %w", err)
		}
		return nil
	})
}

// WriteAppended answers with a status and the JSON document that encode appends. It
// returns an error of encode.
func WriteAppended(w http.ResponseWriter, code int, encode func([]byte) ([]byte, error)) error {
	return write(w, code, func(body *bytes.Buffer) error {
		document, err := encode(body.AvailableBuffer())
		body.Write(append(document, '\n')) // in place, if it fits
		return err
	})
}

// write answers with what encode writes.
func write(w http.ResponseWriter, code int, encode func(*bytes.Buffer) error) error {
	body := bodies.Get().(*bytes.Buffer)
	body.Reset()
	if err := encode(body); err != nil {
		bodies.Put(body)
		return err
	}
	writeBody(w, code, jsonType, body.Bytes(), body)
	return nil
}

// bodies holds the memory of answers that have been sent.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBody bounds the memory that the pool keeps of one answer.
const maxPooledBody = 64 << 10

// WriteEncoded answers with a status and a JSON document that is encoded already.
func WriteEncoded(w http.ResponseWriter, code int, document []byte) error {
	writeBody(w, code, jsonType, append(document, '\n'), nil)
	return nil
}

// WriteExact answers with a status and a JSON document that is encoded already, without a newline
// at its end.
func WriteExact(w http.ResponseWriter, code int, document []byte) error {
	writeBody(w, code, jsonType, document, nil)
	return nil
}

// WriteLines answers with lines of JSON. It keeps them until they are sent.
func WriteLines(w http.ResponseWriter, lines []byte) {
	writeBody(w, http.StatusOK, linesType, lines, nil)
}

// SendLines answers with the lines of JSON that write writes, and sends them while it does.
func SendLines(w http.ResponseWriter, write func(*bufio.Writer) error) error {
	w.Header().Set("Content-Type", linesType)
	out := bufio.NewWriterSize(w, sentTogether)
	return errors.Join(write(out), out.Flush())
}

// sentTogether is how many bytes of lines are sent together.
const sentTogether = 64 << 10

const (
	jsonType = "application/json; charset=utf-8"
	// linesType is the content type of lines of JSON.
	linesType = "application/x-ndjson; charset=utf-8"
)

// writeBody answers with a body, whose memory belongs to pooled if that is not nil. The
// Router sends it once the handler has returned.
func writeBody(w http.ResponseWriter, code int, contentType string, body []byte, pooled *bytes.Buffer) {
	w.Header().Set("Content-Type", contentType)
	if a, ok := w.(*answer); ok {
		a.keep(code, body, pooled)
		return
	}
	w.WriteHeader(code)
	_, _ = newAnswer(w).sendNow(body) // an error means that the client went away
	if pooled != nil && pooled.Cap() <= maxPooledBody {
		bodies.Put(pooled)
	}
}

// statusMessage is the body of every error, and of answers without data.
type statusMessage struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
	// Field names the field whose value is at fault, if the message does not.
	Field string `json:"field,omitempty"`
	// Hint says what the engine saw, or what the caller can do.
	Hint string `json:"hint,omitempty"`
	// Others are the messages of further faults.
	Others []string `json:"others,omitempty"`
}

// WriteMessage answers with {"status":N,"message":"..."}.
func WriteMessage(w http.ResponseWriter, code int, message string) error {
	return WriteJSON(w, code, statusMessage{Status: code, Message: message})
}
