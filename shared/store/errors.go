package store

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TimedOut reports whether an error means that a request's deadline has passed. The
// server may notice that a little earlier than the client's context.
func TimedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

// ErrLogKey means that a row of the log has a key that is not app,user,time,id.
// The row is damaged; its message names it.
var ErrLogKey = errors.New("log key")
