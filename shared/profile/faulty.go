package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/store"
)

// Faulty are users for whom an operation on many users failed, each with the
// error, by token. The operation has succeeded for all others. Such a user has a
// row of the log that does not decode or that Bigtable does not take, or a manifest of a
// newer version, or histories that changed too often, or so many values that others had
// to be computed first.
type Faulty map[string]error

// Error names the first users.
func (f Faulty) Error() string {
	tokens := slices.Sorted(maps.Keys(f))
	return fmt.Sprintf("%d users fail, the first is %s: %v", len(f), tokens[0], f[tokens[0]])
}

// Unwrap returns the errors of the users.
func (f Faulty) Unwrap() []error {
	var all []error
	for _, token := range slices.Sorted(maps.Keys(f)) {
		all = append(all, f[token])
	}
	return all
}

// ByUser returns the errors by user token.
func (f Faulty) ByUser() map[string]error { return f }

// orNil returns f as an error, nil if no user is faulty.
func (f Faulty) orNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// note records that a computation has failed, if it has.
func (f Faulty) note(u *user) bool {
	if u.fault != nil {
		f[u.token] = u.fault
	}
	return u.fault != nil
}

// maxFaults bounds the faults that a recompute or a sweep names.
const maxFaults = 20

// faults counts and names what a pass over many users could not read or write.
type faults struct {
	count int64
	names []string
}

func (f *faults) add(what string, err error) {
	if f.count++; len(f.names) < maxFaults {
		f.names = append(f.names, fmt.Sprintf("%s: %v", what, err))
	}
}

// logFault logs that a user cannot be computed or stored.
func (v *env) logFault(ctx context.Context, appID, token string, err error) {
	v.counters.Faults.Add(1)
	v.log.LogAttrs(ctx, slog.LevelError, "a user is faulty, the others are not held up",
		slog.String("app", appID), slog.String("user", token), slog.Any("error", err))
}

// hide leaves a marker for a user whose profile cannot be computed or stored, so
// that nobody serves an older one.
func (v *env) hide(ctx context.Context, appID string, version int64, users ...*user) error {
	marks := make([]store.ProfileWrite, 0, len(users))
	for _, u := range users {
		if u.row.Ticket > 0 {
			marks = append(marks, store.ProfileWrite{User: u.token, Row: u.row, Version: version})
		}
	}
	return v.store.Users.WriteProfiles(ctx, appID, marks)
}

// refusedBy returns the users whose rows Bigtable will not take, if err says so.
func refusedBy(err error) store.RefusedRows {
	var refused store.RefusedRows
	errors.As(err, &refused)
	return refused
}

// leftRows are the rows that do not decode. Blocks and log are read at the same
// time.
type leftRows struct {
	mu sync.Mutex
	faults
}

func (l *leftRows) add(user string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults.add(user, err)
}

func (l *leftRows) all() faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults
}
