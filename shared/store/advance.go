package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
)

// maxAdvances is the number of counters that AdvanceTickets advances at a time.
const maxAdvances = 64

// AdvanceTickets adds a step to the ticket counter of each user of an app, and
// returns the number of users. A cluster restored from a backup may lack the newest
// tickets, and nobody may draw these again. It deletes the inline blocks: they may be
// older than the log. A second run is harmless.
func (s Users) AdvanceTickets(ctx context.Context, app string, step int64) (int, error) {
	n := 0
	g, advancing := errgroup.WithContext(ctx)
	g.SetLimit(maxAdvances)
	err := s.Users.ScanUserKeys(advancing, app, "", "", func(user string) error {
		n++
		g.Go(func() error {
			return retryAtomic(advancing, func() error {
				rmw := bigtable.NewReadModifyWrite()
				rmw.Increment(familyState, columnCounter, step)
				if _, err := s.tables.of(app, user).users.ApplyReadModifyWrite(advancing, userKey(app, user), rmw); err != nil {
					return err
				}
				m := bigtable.NewMutation()
				DropInline()(m)
				return s.tables.of(app, user).users.Apply(advancing, userKey(app, user), m)
			})
		})
		return nil
	})
	if failed := g.Wait(); failed != nil {
		err = failed // the cause: it ended the scan
	}
	if err != nil {
		return 0, fmt.Errorf("advance the ticket counters of %s, run it again: %w", app, err)
	}
	return n, nil
}
