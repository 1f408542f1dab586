package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
)

// maxRaises are under way at once.
const maxRaises = 64

// AdvanceTickets adds a step to the ticket counter of each user of an app, and
// returns how many users there are. A cluster that takes the place of a lost one
// may lack the newest tickets; drawn again, they would stand for two things. Doing
// it twice raises twice, which does no harm.
func (s *Store) AdvanceTickets(ctx context.Context, app string, step int64) (int, error) {
	n := 0
	g, raising := errgroup.WithContext(ctx)
	g.SetLimit(maxRaises)
	err := s.ScanUserKeys(raising, app, "", "", func(user string) error {
		n++
		g.Go(func() error {
			return retryAtomic(raising, func() error {
				rmw := bigtable.NewReadModifyWrite()
				rmw.Increment(familyState, columnCounter, step)
				_, err := s.tables.of(app, user).users.ApplyReadModifyWrite(raising, userKey(app, user), rmw)
				return err
			})
		})
		return nil
	})
	if failed := g.Wait(); failed != nil {
		err = failed // a scan that it ended tells less
	}
	if err != nil {
		return 0, fmt.Errorf("raise the tickets of %s, to be done again: %w", app, err)
	}
	return n, nil
}
