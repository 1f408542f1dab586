package auditlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Log stores the entries of all apps. It does not know what they say.
type Log interface {
	// BeginEntry stores an entry that has not ended, by its ID.
	BeginEntry(ctx context.Context, app, id string, entry []byte) error
	// EndEntry stores how the entry with that ID ended.
	EndEntry(ctx context.Context, app, id string, end []byte) error
	// AuditSalt returns the app's secret for hashes of users. The first call makes it.
	AuditSalt(ctx context.Context, app string) ([]byte, error)
}

// Begin stores an entry that has not ended.
func Begin(ctx context.Context, in Log, app string, e Entry) error {
	value, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode an entry of the audit log: %w", err)
	}
	return in.BeginEntry(ctx, app, e.ID, value)
}

// Finish stores how the entry with an ID ended.
func Finish(ctx context.Context, in Log, app, id string, end End) error {
	value, err := json.Marshal(end)
	if err != nil {
		return fmt.Errorf("encode the end of an entry of the audit log: %w", err)
	}
	return in.EndEntry(ctx, app, id, value)
}

// Entries reads what a Log stores.
type Entries interface {
	// ScanEntries passes entries of an app, the newest first: those behind an ID, at most limit. An
	// empty after stands before all. ended is nil of an entry that has not. It ends when fn returns false.
	ScanEntries(ctx context.Context, app, after string, limit int, fn func(id string, begun, ended []byte) bool) error
}

// maxScan is how many entries Read reads at most, whatever it selects.
const maxScan = 10_000

// Read returns entries of an app, the newest first. next is the ID after which
// more may follow, empty if none do. It reads at most 10,000 entries, so a
// query that selects few may return fewer than its limit, or none, and a next.
func Read(ctx context.Context, from Entries, app string, q Query) (entries []Entry, next string, err error) {
	return q.read(ctx, from, app, maxScan)
}

func (q Query) read(ctx context.Context, from Entries, app string, most int) (entries []Entry, next string, err error) {
	limit := most
	if q.Action == "" && q.User == "" {
		limit = min(limit, q.Limit+1) // one more shows that more follow
	}
	read, last := 0, ""
	err = from.ScanEntries(ctx, app, q.After, limit, func(id string, begun, ended []byte) bool {
		if len(entries) == q.Limit {
			next = last
			return false
		}
		read, last = read+1, id
		if e := decode(id, begun, ended); q.matches(e) {
			entries = append(entries, e)
		}
		return true
	})
	if err != nil {
		return nil, "", err
	}
	if next == "" && read == most {
		next = last
	}
	return entries, next, nil
}

// matches reports whether a query selects an entry, wherever it stands.
func (q Query) matches(e Entry) bool {
	return (q.Action == "" || q.Action == e.Action) && (q.User == "" || q.User == e.User)
}

// unreadable is the detail of an entry that does not decode. The others are listed
// all the same.
const unreadable = "this entry cannot be read"

func decode(id string, begun, ended []byte) Entry {
	e, end := Entry{}, End{Outcome: Unknown}
	failed := json.Unmarshal(begun, &e)
	if ended != nil {
		failed = errors.Join(failed, json.Unmarshal(ended, &end))
	}
	if failed != nil || e.Action == "" || !ValidID(id) {
		e = Entry{Detail: unreadable}
	}
	if e.ID, e.Outcome = id, end.Outcome; ValidID(id) {
		e.At = timeOf(id)
	}
	if end.Subject != "" {
		e.Subject = end.Subject
	}
	if end.Detail != "" {
		e.Detail = end.Detail
	}
	return e
}
