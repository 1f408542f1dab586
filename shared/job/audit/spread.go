package audit

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// spread are the rows of an app whose users live in regions of their own. What belongs to a user is read where the
// user is held then. One who moves in between differs, and is read again.
type spread struct {
	Rows
	engine Engine
	app    config.App
}

// each calls do for the users of each region, in the order of the items that name them.
func each[T any](ctx context.Context, s spread, items []T, user func(T) string,
	do func(at Rows, items []T) error) error {
	var stores []*store.Store
	in, known := map[*store.Store][]T{}, map[string]*store.Store{}
	for _, item := range items {
		at := known[user(item)]
		if at == nil {
			var err error
			if at, err = s.engine.StoreOf(ctx, s.app, user(item)); err != nil {
				return err
			}
			known[user(item)] = at
		}
		if in[at] == nil {
			stores = append(stores, at)
		}
		in[at] = append(in[at], item)
	}
	for _, at := range stores {
		if err := do(RowsOf(at), in[at]); err != nil {
			return err
		}
	}
	return nil
}

func themselves(user string) string { return user }

func (s spread) ScanPrimary(ctx context.Context, app string, users []string,
	fn func(user string, row store.User) error) error {
	return each(ctx, s, users, themselves, func(at Rows, users []string) error {
		return at.ScanPrimary(ctx, app, users, fn)
	})
}

func (s spread) ReadLog(ctx context.Context, app string, l schema.Layout, ranges []store.UserRange,
	fn func(user string, row store.LogRow) error) error {
	of := func(r store.UserRange) string { return r.User }
	return each(ctx, s, ranges, of, func(at Rows, ranges []store.UserRange) error {
		return at.ReadLog(ctx, app, l, ranges, fn)
	})
}

func (s spread) ReadInline(ctx context.Context, app string, users []string,
	fn func(user string, cell []byte) error) error {
	return each(ctx, s, users, themselves, func(at Rows, users []string) error {
		return at.ReadInline(ctx, app, users, fn)
	})
}

func (s spread) ReadBlocks(ctx context.Context, app string, names []store.BlockName,
	fn func(store.BlockName, []byte) error) error {
	of := func(n store.BlockName) string { return n.User }
	return each(ctx, s, names, of, func(at Rows, names []store.BlockName) error {
		return at.ReadBlocks(ctx, app, names, fn)
	})
}
