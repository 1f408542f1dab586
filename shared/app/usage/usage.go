// Package usage counts what each app uses: events, reads, and what they cost in
// Bigtable. A process counts in memory and flushes every few seconds, so no request
// waits for a count or fails because of one. Package store keeps the counts in the
// table usage.
package usage

import (
	"context"
	"fmt"
	"time"
)

// Counts are what an app used in a day.
type Counts struct {
	// Events are accepted events: those of a request of events or of an import that
	// was answered with 200, repeated events and those of type instantsearch too.
	Events int64 `json:"events"`
	// Refused are requests of events that were refused for their content, each once
	// however many events it had, and the refused lines of imports.
	Refused int64 `json:"refusedEvents"`
	// RefusedLinks are accepted events that asked for a link between their two tokens and got none, each once for
	// each delivery to the engine, at least.
	RefusedLinks int64 `json:"refusedLinks"`
	// Reads are users whose profile a request asked for: each user of a batch, and one
	// of a ranking or an explanation.
	Reads int64 `json:"reads"`
	// Rows are rows of Bigtable that the engine wrote or was sent for the app, by
	// requests and by jobs. A row counts as often as it is sent.
	Rows int64 `json:"rows"`
	// Bytes are the keys, columns and values of these rows, in bytes.
	Bytes int64 `json:"bytes"`
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Events += other.Events
	c.Refused += other.Refused
	c.RefusedLinks += other.RefusedLinks
	c.Reads += other.Reads
	c.Rows += other.Rows
	c.Bytes += other.Bytes
}

// Day is a day in UTC: the number of days since 1970-01-01.
type Day int32

const dayForm = "2006-01-02"

// DayOf returns the day of a time.
func DayOf(t time.Time) Day {
	seconds, day := t.Unix(), int64(24*60*60)
	n := seconds / day
	if seconds%day < 0 {
		n--
	}
	return Day(n)
}

// ParseDay reads a day of the form 2006-01-02.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(dayForm, s)
	if err != nil || t.Year() < 1 {
		return 0, fmt.Errorf("%q is not a day like 2026-11-22", s)
	}
	return DayOf(t), nil
}

// Time returns the first instant of the day.
func (d Day) Time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// String returns the day in the form 2006-01-02.
func (d Day) String() string { return d.Time().Format(dayForm) }

// shards is how many rows of the table share an app's day, so that processes seldom
// write the same row.
const shards = 16

// Keep is how many days the table keeps counts and the last use of keys, keepNames how
// many it keeps the names of events and facets, and KeepUsers how many hot users.
const (
	Keep      = 400
	keepNames = 32
	KeepUsers = 7
)

// User is a user and how many of an app's events were theirs in a day, at least:
// the sketch that counts them is small.
type User struct {
	Token  string `json:"user"`
	Events int64  `json:"events"`
}

// Batch is what a process counted for an app's day and no earlier batch has.
type Batch struct {
	App    string
	Day    Day
	Shard  int // 0 to shards-1
	Counts Counts
	Names  Names
	// Process and Number make a batch count once: Number is 1 for the process's first
	// batch of this app and day, and one more for each next batch. Repeated says that
	// an earlier attempt may have written it.
	Process  string
	Number   int64
	Repeated bool
}

// Table keeps what processes count.
type Table interface {
	// AddUsage adds a batch, once even if it is repeated.
	AddUsage(ctx context.Context, b Batch) error
	// KnownNames returns the names that a shard of an app's day has.
	KnownNames(ctx context.Context, app string, day Day, shard int) (Names, error)
	// PutHotUsers replaces what a process counted of an app's users in a day.
	PutHotUsers(ctx context.Context, app string, day Day, shard int, process string, users []User) error
	// Deleted returns, of those of the users whose events were deleted, up to which time.
	Deleted(ctx context.Context, app string, users []User) (map[string]time.Time, error)
	// PutKeyDays stores days on which keys were used, by the keys' hashes. A later
	// day stays.
	PutKeyDays(ctx context.Context, app string, days map[string]Day) error
}

// Reader reads what processes have counted.
type Reader interface {
	// Usage returns an app's counts of days that have any, from a day to a day, both
	// included.
	Usage(ctx context.Context, app string, from, to Day) (map[Day]Counts, error)
	// HotUsers returns the users of an app with the most events of these days, the
	// hottest first.
	HotUsers(ctx context.Context, app string, from, to Day) ([]User, error)
	// LastUsed returns the last day on which each key of an app was used, by the key's
	// hash. A key that was not used within Keep days is missing.
	LastUsed(ctx context.Context, app string) (map[string]Day, error)
}
