package store

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
)

// columnDelivery begins the columns of familyState that hold the deliveries of a
// message, one cell each. Their row belongs to no app: an app's id is not empty.
const columnDelivery = "a"

// The states of a delivery. A later state has a later cell time, so the newest cell
// is right in whatever order the writes arrive, and writing one twice changes
// nothing.
const (
	deliveryBegun  = "begun"
	deliveryFailed = "failed"
	deliveryEnded  = "ended"
	atBegin        = bigtable.Timestamp(0)
	atEnd          = bigtable.Timestamp(1000)
)

// Deliveries counts the marked deliveries of a message.
type Deliveries struct {
	Open   int // began and did not end: they run, or their process ended before it answered
	Failed int // ended, and failed for a reason that may lie in the message
	// FirstEnded is whether FirstDelivery ended. Its beginning has no mark.
	FirstEnded bool
}

// FirstDelivery is the name of the first delivery of a message if only its end is
// marked. Other names have no lower-case letters.
const FirstDelivery = "first"

func deliveryKey(message string) string { return ",message," + message }

// Deliveries reads the marks of a message.
func (s *Store) Deliveries(ctx context.Context, message string) (Deliveries, error) {
	var d Deliveries
	row, err := s.tables.of("", message).users.ReadRow(ctx, deliveryKey(message), newestCells)
	if err != nil {
		return d, fmt.Errorf("read deliveries of message %s: %w", message, err)
	}
	for _, item := range row[familyState] {
		if !strings.HasPrefix(item.Column, familyState+":"+columnDelivery) {
			continue
		}
		if item.Column == familyState+":"+columnDelivery+FirstDelivery {
			d.FirstEnded = true
		}
		switch string(item.Value) {
		case deliveryBegun:
			d.Open++
		case deliveryFailed:
			d.Failed++
		}
	}
	return d, nil
}

// BeginDelivery marks that a delivery of a message begins. delivery is a name that
// no other delivery of the message has. After an error the mark may be there: call
// EndDelivery.
func (s *Store) BeginDelivery(ctx context.Context, message, delivery string) error {
	return s.markDelivery(ctx, message, delivery, atBegin, deliveryBegun)
}

// EndDelivery marks that a delivery ended with an answer, and whether it failed. It
// also ends a delivery whose mark of the beginning arrives later.
func (s *Store) EndDelivery(ctx context.Context, message, delivery string, failed bool) error {
	state := deliveryEnded
	if failed {
		state = deliveryFailed
	}
	return s.markDelivery(ctx, message, delivery, atEnd, state)
}

func (s *Store) markDelivery(ctx context.Context, message, delivery string, at bigtable.Timestamp, state string) error {
	m := bigtable.NewMutation()
	m.Set(familyState, columnDelivery+delivery, at, []byte(state))
	return s.changeDeliveries(ctx, message, m)
}

// ForgetDeliveries removes the marks of a message that is acknowledged.
func (s *Store) ForgetDeliveries(ctx context.Context, message string) error {
	return s.changeDeliveries(ctx, message, deletion())
}

func (s *Store) changeDeliveries(ctx context.Context, message string, m *bigtable.Mutation) error {
	err := retryAtomic(ctx, func() error { return s.tables.of("", message).users.Apply(ctx, deliveryKey(message), m) })
	if err != nil {
		return fmt.Errorf("mark a delivery of message %s: %w", message, err)
	}
	return nil
}
