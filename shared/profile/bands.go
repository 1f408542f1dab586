package profile

import (
	"context"

	"github.com/affinityengine/affinity/shared/store"
)

// maxHeld is the number of rows whose receipts readBands reads from their originals at a
// time. Only an older version wrote such rows.
const maxHeld = 500

// readBands reads the log in the bands of tombstones, where receipts decide which events
// are deleted, and calls fn for the others. Only users who were deleted within the
// window have a band. The order of events is not that of the log.
func (r *reading) readBands(ctx context.Context, fn func(user string, row store.LogRow)) error {
	log := r.logs.of(r.app)
	give := func(token string, row store.LogRow) {
		if receipt, _ := row.Receipt(); !r.byUser[token].row.Tombstone().Covers(row.Time, receipt) {
			fn(token, row)
		}
	}
	var held []*store.LogRow
	var users []string
	flush := func() error {
		err := log.CompleteReceipts(ctx, held)
		for i := range held {
			if err == nil {
				give(users[i], *held[i])
			}
		}
		held, users = held[:0], users[:0]
		return err
	}
	err := log.ReadWithObjects(ctx, r.bands, r.compiled, func(token string, row store.LogRow) error {
		if _, ok := row.Receipt(); ok {
			give(token, row)
			return nil
		}
		if held, users = append(held, &row), append(users, token); len(held) < maxHeld {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
