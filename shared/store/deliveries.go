package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// columnOpen of familyState counts the deliveries of a message that have begun and
// not ended. Its row belongs to no app: an app's id is not empty.
const columnOpen = "a"

func deliveryKey(message string) string { return ",message," + message }

// OpenDeliveries returns how many deliveries of a message have begun and not ended:
// they run, or their process ended before it answered. The count includes only those
// that BeginDelivery marked.
func (s *Store) OpenDeliveries(ctx context.Context, message string) (int64, error) {
	row, err := s.tables.of("", message).users.ReadRow(ctx, deliveryKey(message), newestCells)
	if err != nil {
		return 0, fmt.Errorf("read deliveries of message %s: %w", message, err)
	}
	for _, item := range row[familyState] {
		if item.Column == familyState+":"+columnOpen && len(item.Value) == 8 {
			return int64(binary.BigEndian.Uint64(item.Value)), nil
		}
	}
	return 0, nil
}

// BeginDelivery marks that a delivery of a message begins.
func (s *Store) BeginDelivery(ctx context.Context, message string) error {
	return s.countDelivery(ctx, message, 1)
}

// EndDelivery marks that a delivery which BeginDelivery marked ended with an answer.
func (s *Store) EndDelivery(ctx context.Context, message string) error {
	return s.countDelivery(ctx, message, -1)
}

func (s *Store) countDelivery(ctx context.Context, message string, n int64) error {
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment(familyState, columnOpen, n)
	if _, err := s.tables.of("", message).users.ApplyReadModifyWrite(ctx, deliveryKey(message), rmw); err != nil {
		return fmt.Errorf("mark a delivery of message %s: %w", message, err)
	}
	return nil
}

// ForgetDeliveries removes the marks of a message that is acknowledged.
func (s *Store) ForgetDeliveries(ctx context.Context, message string) error {
	if err := s.tables.of("", message).users.Apply(ctx, deliveryKey(message), deletion()); err != nil {
		return fmt.Errorf("remove the marks of message %s: %w", message, err)
	}
	return nil
}
