// Package fault has the one type of error by which a domain package refuses what
// a client sent. It says what kind of fault it is; package httpapi gives each
// kind its HTTP status, so that the domain knows no HTTP.
package fault

import (
	"fmt"
	"strings"
)

// Kind says what is wrong with a request.
type Kind int

const (
	// Malformed: the body is not JSON, or does not have the form asked for.
	Malformed Kind = iota + 1
	// Invalid: the body has the form asked for, and breaks a rule.
	Invalid
	// TooLarge: the body or a part of it exceeds a limit.
	TooLarge
	// Unauthenticated: the app and the key do not belong together.
	Unauthenticated
	// Forbidden: the key does not permit the request.
	Forbidden
	// TooMany: more requests than a limit permits. It is the one kind that is not
	// final: the same request may be accepted later.
	TooMany
)

var names = [...]string{"unknown", "malformed", "invalid", "too large", "unauthenticated", "forbidden", "too many"}

// String returns the kind in words.
func (k Kind) String() string { return names[k] }

// Error is a refusal of what a client sent. It is final, unless Kind says
// otherwise: sending the same again is refused again.
type Error struct {
	Kind Kind
	// Message is for the client.
	Message string
	// Field names the field that is at fault, where the message may not; else empty.
	Field string
	// Hint says what the engine saw or what the client can do, beside a message whose
	// words are fixed. It may hold data of the client.
	Hint string
	// Others are the messages of further faults that were found with this one.
	Others []string
}

// Error returns the message, with the other ones on lines of their own.
func (e *Error) Error() string { return strings.Join(append([]string{e.Message}, e.Others...), "\n") }

// Is reports whether a target is the same refusal, of the same kind and with the same message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Message == e.Message
}

// New returns an Error.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
