package enrich

import (
	"context"
	"iter"
	"slices"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
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

// Rows reads the rows of events in the log of an app. Events that are not in it are missing
// in the answer.
func Rows(ctx context.Context, h Holder, app config.App, places iter.Seq[Place]) (map[Place]Row, error) {
	ranges := map[*store.Store][]store.UserRange{}
	for at := range places {
		s, err := h.StoreOf(ctx, app, at.User)
		if err != nil {
			return nil, err
		}
		from, to := history.Pos{Time: at.Time, ID: at.ID}, history.Pos{Time: at.Time, ID: at.ID + "\x00"}
		ranges[s] = append(ranges[s], store.UserRange{User: at.User, From: from, To: to})
	}
	rows := map[Place]Row{}
	for s, of := range ranges {
		slices.SortFunc(of, func(a, b store.UserRange) int {
			if c := store.UserOrder(a.User, b.User); c != 0 {
				return c
			}
			return a.From.Compare(b.From)
		})
		err := s.Log(app.ID, app.Log).ReadOriginals(ctx, of, func(user string, row store.LogRow, original []byte) error {
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
