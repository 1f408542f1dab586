package profile

import (
	"context"

	"github.com/affinityengine/affinity/shared/store"
)

// maxHeld is the number of rows whose receipts and types readSifted reads from their
// originals at a time. Only an older version wrote such rows.
const maxHeld = 500

// readSifted reads the log with receipts and types, and calls fn for the events that
// neither a deletion nor an opt-out excludes. Only users who were deleted within the
// window, or have opted out of some types, have parts to sift. The order of events is not
// that of the log.
func (r *reading) readSifted(ctx context.Context, fn func(user string, row store.LogRow)) error {
	log := r.logs.of(r.app)
	give := func(token string, row store.LogRow) {
		u := r.byUser[token]
		receipt, _ := row.Receipt()
		o, _ := row.Objects()
		if !u.row.Excludes(o.Type, row.Time, receipt) {
			fn(token, row)
		}
	}
	var held []*store.LogRow
	var users []string
	flush := func() error {
		err := log.CompleteReceipts(ctx, held)
		if err == nil {
			err = log.CompleteObjects(ctx, held)
		}
		for i := range held {
			if err == nil {
				give(users[i], *held[i])
			}
		}
		held, users = held[:0], users[:0]
		return err
	}
	err := log.ReadWithObjects(ctx, r.sifted, r.compiled, func(token string, row store.LogRow) error {
		_, received := row.Receipt()
		if _, named := row.Objects(); received && (named || r.byUser[token].row.OptedOut == 0) {
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
