package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
)

// maxAdvances is the number of counters that are advanced at a time.
const maxAdvances = 64

// AdvanceTickets adds a step to the ticket counter of each user of an app, and
// returns the number of users. A cluster that replaces a lost one may lack the
// newest tickets, which must not be drawn again. Running it twice is harmless.
func (s *Store) AdvanceTickets(ctx context.Context, app string, step int64) (int, error) {
	n := 0
	g, advancing := errgroup.WithContext(ctx)
	g.SetLimit(maxAdvances)
	err := s.ScanUserKeys(advancing, app, "", "", func(user string) error {
		n++
		g.Go(func() error {
			return retryAtomic(advancing, func() error {
				rmw := bigtable.NewReadModifyWrite()
				rmw.Increment(familyState, columnCounter, step)
				_, err := s.tables.of(app, user).users.ApplyReadModifyWrite(advancing, userKey(app, user), rmw)
				return err
			})
		})
		return nil
	})
	if failed := g.Wait(); failed != nil {
		err = failed // it ended the scan, whose error says less
	}
	if err != nil {
		return 0, fmt.Errorf("advance the tickets of %s, run it again: %w", app, err)
	}
	return n, nil
}
