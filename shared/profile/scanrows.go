package profile

import (
	"context"
	"errors"
	"iter"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// foundRow is a row of a scan, or why the scan has ended.
type foundRow struct {
	place
	token string
	err   error
}

// scanRows calls fn for the rows of an app from a token on, in their order, at most limit. While the app moves it reads
// those of both regions side by side, and passes of each token the row that counts. An error of fn ends the scan.
func (e *Engine) scanRows(ctx context.Context, app config.App, from string, limit int,
	fn func(token string, of place) error) error {
	if !app.Moving() {
		return e.env.store.Users.ScanUsers(ctx, app.ID, from, "", limit, store.UserState,
			func(token string, row store.User) error { return fn(token, place{at: e, row: row}) })
	}
	other, err := e.env.other(app)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	here, stop := iter.Pull(e.rowsFrom(ctx, app, from, limit))
	defer stop()
	there, stop := iter.Pull(other.rowsFrom(ctx, app, from, limit))
	defer stop()
	a, more := here()
	b, others := there()
	for n := 0; n < limit && (more || others); n++ {
		if err := errors.Join(a.err, b.err); err != nil {
			return err
		}
		order := -1
		if !more {
			order = 1
		} else if others {
			order = store.UserOrder(a.token, b.token)
		}
		of := a
		if order > 0 || order == 0 && countsBefore(b.row.Owner, a.row.Owner) {
			of = b
		}
		if order <= 0 {
			a, more = here()
		}
		if order >= 0 {
			b, others = there()
		}
		if err := fn(of.token, of.place); err != nil {
			return err
		}
	}
	return nil
}

// rowsFrom are the rows in the region of e. The scan waits while nobody asks for the next one.
func (e *Engine) rowsFrom(ctx context.Context, app config.App, from string, limit int) iter.Seq[foundRow] {
	return func(yield func(foundRow) bool) {
		err := e.env.store.Users.ScanUsers(ctx, app.ID, from, "", limit, store.UserState,
			func(token string, row store.User) error {
				if !yield(foundRow{place: place{at: e, row: row}, token: token}) {
					return errNobodyAsks
				}
				return nil
			})
		if err != nil && !errors.Is(err, errNobodyAsks) {
			yield(foundRow{err: err})
		}
	}
}

// countsBefore reports whether the row of an owner counts and that of another one does not. They may have been read one
// after the other, while the user moved; of two rows that count none, that of the later epoch is to be read.
func countsBefore(o, other store.Owner) bool {
	if o.Here() != other.Here() {
		return o.Here()
	}
	return o.Epoch > other.Epoch
}
