package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// maxDeadLetters is the largest number of dead letters that DeadLetters counts.
const maxDeadLetters = 10_000

// deadColumn is the column of a message that waits as a dead letter, in familyNames, whose
// cells live a day longer than Pub/Sub keeps dead letters.
const deadColumn = "dead"

// deadLetterKey sorts behind all days of an app. Its rows are in the table usage.
func deadLetterKey(app, message string) string { return app + ",dead," + message }

// PutDeadLetter notes that a message of an app waits as a dead letter.
func (s Usage) PutDeadLetter(ctx context.Context, app, message string) error {
	m := bigtable.NewMutation()
	m.Set(familyNames, deadColumn, bigtable.Now(), nil)
	return s.changeDeadLetter(ctx, app, message, m)
}

// ForgetDeadLetter notes that a message no longer waits.
func (s Usage) ForgetDeadLetter(ctx context.Context, app, message string) error {
	return s.changeDeadLetter(ctx, app, message, deletion())
}

func (s *Store) changeDeadLetter(ctx context.Context, app, message string, m *bigtable.Mutation) error {
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, allUsers).usage.Apply(ctx, deadLetterKey(app, message), m)
	})
	if err != nil {
		return fmt.Errorf("note dead letter %s of %s: %w", message, app, err)
	}
	return nil
}

// DeadLetters returns how many messages of an app wait as dead letters, at most
// maxDeadLetters.
func (s Usage) DeadLetters(ctx context.Context, app string) (int, error) {
	n := 0
	err := s.tables.of(app, allUsers).usage.ReadRows(ctx, bigtable.PrefixRange(deadLetterKey(app, "")),
		func(bigtable.Row) bool {
			n++
			return true
		}, bigtable.LimitRows(maxDeadLetters), bigtable.RowFilter(
			bigtable.ChainFilters(bigtable.FamilyFilter(familyNames), bigtable.LatestNFilter(1))))
	if err != nil {
		return 0, fmt.Errorf("count dead letters of %s: %w", app, err)
	}
	return n, nil
}
