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
	deliveryBegun = "begun"
	atBegin       = bigtable.Timestamp(0)
	atEnd         = bigtable.Timestamp(1000)
)

// DeliveryEnd is how a delivery ended.
type DeliveryEnd string

// The ends of a delivery that leaves the message to a later one.
const (
	DeliveryFailed DeliveryEnd = "failed" // for a reason that may lie in the message
	DeliveryEnded  DeliveryEnd = "ended"  // for another reason
	DeliveryWaited DeliveryEnd = "waited" // it left earlier deliveries time to end
)

// Deliveries are the marked deliveries of a message.
type Deliveries struct {
	// Open are the names of those that began and did not end: they run, or their
	// process has not written their end yet, or it is gone.
	Open   []string
	Failed int
	Waited int
}

func deliveryKey(message string) string { return ",message," + message }

// Deliveries reads the marks of a message.
func (s Users) Deliveries(ctx context.Context, message string) (Deliveries, error) {
	var d Deliveries
	row, err := s.tables.of("", message).users.ReadRow(ctx, deliveryKey(message), newestCells)
	if err != nil {
		return d, fmt.Errorf("read deliveries of message %s: %w", message, err)
	}
	for _, item := range row[familyState] {
		if !strings.HasPrefix(item.Column, familyState+":"+columnDelivery) {
			continue
		}
		switch string(item.Value) {
		case deliveryBegun:
			d.Open = append(d.Open, strings.TrimPrefix(item.Column, familyState+":"+columnDelivery))
		case string(DeliveryFailed):
			d.Failed++
		case string(DeliveryWaited):
			d.Waited++
		}
	}
	return d, nil
}

// BeginDelivery marks that a delivery of a message begins. delivery is a name that
// no other delivery of the message has. After an error the mark may be there: call
// EndDelivery.
func (s Users) BeginDelivery(ctx context.Context, message, delivery string) error {
	return s.markDelivery(ctx, message, delivery, atBegin, deliveryBegun)
}

// EndDelivery marks that a delivery ended with an answer, and how. It also ends a
// delivery whose mark of the beginning arrives later, or that has none.
func (s Users) EndDelivery(ctx context.Context, message, delivery string, end DeliveryEnd) error {
	return s.markDelivery(ctx, message, delivery, atEnd, string(end))
}

func (s *Store) markDelivery(ctx context.Context, message, delivery string, at bigtable.Timestamp, state string) error {
	m := bigtable.NewMutation()
	m.Set(familyState, columnDelivery+delivery, at, []byte(state))
	return s.changeDeliveries(ctx, message, m)
}

// ForgetDeliveries removes the marks of a message that is acknowledged.
func (s Users) ForgetDeliveries(ctx context.Context, message string) error {
	return s.changeDeliveries(ctx, message, deletion())
}

func (s *Store) changeDeliveries(ctx context.Context, message string, m *bigtable.Mutation) error {
	err := retryAtomic(ctx, func() error { return s.tables.of("", message).users.Apply(ctx, deliveryKey(message), m) })
	if err != nil {
		return fmt.Errorf("mark a delivery of message %s: %w", message, err)
	}
	return nil
}
