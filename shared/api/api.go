// Package api holds the types of the requests and answers of the public HTTP
// API, and the limits of requests. The functions encode answers from these
// types and package client decodes them, so a field cannot differ between the
// two.
//
// A strategy is stored as it is sent, so its type is an alias of the one in
// package strategy. A limit that a domain package checks is a constant of that
// package.
//
// Every request names the app in the header X-Algolia-Application-Id and a key
// of the app in X-Algolia-API-Key. Every answer is JSON. A refusal is an
// [Error]. functions/README.md lists the routes and the permission that each one
// needs.
//
// The package knows no HTTP and keeps no data.
package api

import "time"

// Time is an instant as most answers write it: RFC 3339 in UTC, always with
// three digits of milliseconds, such as 2026-11-21T19:33:10.394Z. It reads any
// RFC 3339 time.
type Time struct{ time.Time }

const timeFormat = "2006-01-02T15:04:05.000Z"

// At returns t as answers write it.
func At(t time.Time) Time { return Time{t.UTC()} }

// AtMillis returns the instant that is ms milliseconds after the Unix epoch.
func AtMillis(ms int64) Time { return At(time.UnixMilli(ms)) }

// MarshalJSON writes the time in UTC, to the millisecond.
func (t Time) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON writes.
func (t Time) AppendJSON(b []byte) []byte { return t.UTC().AppendFormat(b, `"`+timeFormat+`"`) }

// Message is the answer of a route without other data.
type Message struct {
	Status  int    `json:"status"` // the HTTP status
	Message string `json:"message"`
	// Field names the field whose value has the wrong type, where the message does not.
	Field string `json:"field,omitempty"`
	// Hint says what the engine saw, or what the caller can do.
	Hint string `json:"hint,omitempty"`
	// Others are the messages of further faults that were found at once.
	Others []string `json:"others,omitempty"`
	// Warnings say what of an accepted strategy has no effect, such as names that match
	// nothing.
	Warnings []string `json:"warnings,omitempty"`
}
