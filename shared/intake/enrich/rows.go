package enrich

import (
	"context"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// Row is what the log says of an event.
type Row struct {
	UnknownObjects int  // of its objects, those that the catalog did not know
	Damaged        bool // the number is not known
}

// Holder knows the Bigtable that holds a user: profile.Engine does.
type Holder interface {
	StoreOf(ctx context.Context, app config.App, user string) (*store.Store, error)
}

// maxHolders is how many users a message looks for at a time.
const maxHolders = 16

// holdersOf returns the Bigtable of each user. While the app moves, each costs up to three reads.
func holdersOf(ctx context.Context, h Holder, app config.App,
	users map[string][]store.UserRange) (map[string]*store.Store, error) {
	holders := make(map[string]*store.Store, len(users))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxHolders)
	for user := range users {
		g.Go(func() error {
			s, err := h.StoreOf(ctx, app, user)
			mu.Lock()
			defer mu.Unlock()
			holders[user] = s
			return err
		})
	}
	return holders, g.Wait()
}

// Rows reads the rows of events in the log of an app. Events that are not in it are missing
// in the answer.
func Rows(ctx context.Context, h Holder, app config.App, places iter.Seq[Place]) (map[Place]Row, error) {
	byUser := map[string][]store.UserRange{}
	for at := range places {
		from, to := schema.Pos{Time: at.Time, ID: at.ID}, schema.Pos{Time: at.Time, ID: at.ID + "\x00"}
		byUser[at.User] = append(byUser[at.User], store.UserRange{User: at.User, From: from, To: to})
	}
	holders, err := holdersOf(ctx, h, app, byUser)
	if err != nil {
		return nil, err
	}
	ranges := map[*store.Store][]store.UserRange{}
	for user, of := range byUser {
		ranges[holders[user]] = append(ranges[holders[user]], of...)
	}
	rows := map[Place]Row{}
	for s, of := range ranges {
		slices.SortFunc(of, func(a, b store.UserRange) int {
			if c := store.UserOrder(a.User, b.User); c != 0 {
				return c
			}
			return a.From.Compare(b.From)
		})
		err := s.Events.Log(app.ID, app.Log).ReadOriginals(ctx, of,
			func(user string, row store.LogRow, original []byte) error {
				o, err := schema.ParseOriginal(original)
				rows[Place{User: user, Time: row.Time, ID: row.ID}] = Row{o.UnknownObjects, err != nil}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
