// Package api holds the wire format of the public HTTP API, once for both sides:
// the types of requests and answers, and the limits that requests are checked
// against. The functions encode answers from these types and package client
// decodes them, so that a field cannot differ between the two.
//
// Strategies are stored as they are sent, so their type lives in package strategy
// and is an alias here. Limits that a domain package checks are its constants.
//
// Every request names the app in the header X-Algolia-Application-Id and a key
// of it in X-Algolia-API-Key. Every answer is JSON. A refusal is an [Error].
// functions/README.md lists the routes and the right that each one needs.
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
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+timeFormat+`"`), nil
}

// Message is the answer of a route that has nothing else to say.
type Message struct {
	Status  int    `json:"status"` // the HTTP status
	Message string `json:"message"`
}
