package move

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// rows returns the Bigtable of a region that the move of an app needs.
func (r Regions) rows(app, region string) (*store.Store, error) {
	if s := r.Rows[region]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("the move of app %s needs region %q, which this deployment does not have: add it to "+
		"the regions again until the app has arrived", app, region)
}

// known returns an error if the deployment lacks a region of an app's move.
func (r Regions) known(app config.App) error {
	for _, region := range []string{app.Move.From, app.Move.To} {
		if _, err := r.rows(app.ID, region); err != nil {
			return err
		}
	}
	return nil
}

// scan streams the users on whom a phase works, in the order of their rows.
func (r Regions) scan(ctx context.Context, app string, p Params, from, to string, fn func(user string) error) error {
	rows, err := r.rows(app, p.Region)
	if err != nil || p.Also == "" {
		if err == nil {
			err = rows.Users.ScanUserKeys(ctx, app, from, to, fn)
		}
		return err
	}
	also, err := r.rows(app, p.Also)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, stop := iter.Pull2(users(ctx, rows, app, from, to))
	defer stop()
	b, stop := iter.Pull2(users(ctx, also, app, from, to))
	defer stop()
	left, errLeft, moreLeft := a()
	right, errRight, moreRight := b()
	for moreLeft || moreRight {
		if err := errors.Join(errLeft, errRight); err != nil {
			return err
		}
		order := -1
		switch {
		case !moreLeft:
			order = 1
		case moreRight:
			order = store.UserOrder(left, right)
		}
		next := left
		if order > 0 {
			next = right
		}
		if err := fn(next); err != nil {
			return err
		}
		if order <= 0 {
			left, errLeft, moreLeft = a()
		}
		if order >= 0 {
			right, errRight, moreRight = b()
		}
	}
	return nil
}

var errStopped = errors.New("nobody asks for more users")

// users lists the users of an app in one region. An error is the last item.
func users(ctx context.Context, rows *store.Store, app, from, to string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		on := true
		err := rows.Users.ScanUserKeys(ctx, app, from, to, func(user string) error {
			if on = yield(strings.Clone(user), nil); !on {
				return errStopped
			}
			return nil
		})
		if err != nil && on {
			yield("", err)
		}
	}
}

// usersOf are the users on whom the phase of an app works.
type usersOf struct {
	config  config.Source
	regions Regions
}

func (u usersOf) ScanUserKeys(ctx context.Context, appID, from, to string, fn func(string) error) error {
	app, err := u.config.App(ctx, appID)
	if err != nil || !app.Moving() { // the move has ended
		return err
	}
	return u.regions.scan(ctx, appID, draft(app).Params.(Params), from, to, fn)
}
