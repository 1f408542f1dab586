package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TimedOut reports whether an error means that a request's deadline has passed. The
// server may notice that a little earlier than the client's context.
func TimedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

// RefusedRows reports rows that Bigtable will not take, however often they are written,
// by the user of each. The other rows of the request are written.
type RefusedRows map[string]error

// Error names one of the users.
func (r RefusedRows) Error() string {
	user := slices.Min(slices.Collect(maps.Keys(r)))
	return fmt.Sprintf("%d rows are refused, that of %s: %v", len(r), user, r[user])
}

// RefusedEvents reports rows of the log that Bigtable will not take, however often they
// are written, by key. The other rows are written.
type RefusedEvents map[string]error

// Error names one of the rows.
func (r RefusedEvents) Error() string {
	key := slices.Min(slices.Collect(maps.Keys(r)))
	return fmt.Sprintf("%d rows are refused, row %q: %v", len(r), key, r[key])
}

// ByUser returns the error of one row of each user.
func (r RefusedEvents) ByUser() map[string]error {
	users := map[string]error{}
	for _, key := range slices.Sorted(maps.Keys(r)) {
		users[userOf(key)] = fmt.Errorf("row %q: %w", key, r[key])
	}
	return users
}

// Among returns the refused rows of some events of an app.
func (r RefusedEvents) Among(app string, events []LogEvent) RefusedEvents {
	own := RefusedEvents{}
	for i := range events {
		key := logKey(app, events[i].User, events[i].Time, events[i].ID)
		if err := r[key]; err != nil {
			own[key] = err
		}
	}
	return own
}

// orNil returns r as an error, nil if no row is refused.
func (r RefusedEvents) orNil() error {
	if len(r) == 0 {
		return nil
	}
	return r
}

// ErrLogKey means that a row of the log has a key that is not app,user,time,id.
// The row is damaged; its message names it.
var ErrLogKey = errors.New("log key")
