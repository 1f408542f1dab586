package enrich

import (
	"context"
	"iter"
	"slices"

	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// Row is what the log says of an event.
type Row struct {
	UnknownObjects int  // of its objects, those that the catalog did not know
	Damaged        bool // the number is not known
}

// Rows reads the rows of events in a log. Events that are not in it are missing in the
// answer.
func Rows(ctx context.Context, log store.Log, places iter.Seq[Place]) (map[Place]Row, error) {
	var ranges []store.UserRange
	for at := range places {
		from, to := history.Pos{Time: at.Time, ID: at.ID}, history.Pos{Time: at.Time, ID: at.ID + "\x00"}
		ranges = append(ranges, store.UserRange{User: at.User, From: from, To: to})
	}
	if len(ranges) == 0 {
		return nil, nil
	}
	slices.SortFunc(ranges, func(a, b store.UserRange) int {
		if c := store.UserOrder(a.User, b.User); c != 0 {
			return c
		}
		return a.From.Compare(b.From)
	})
	rows := make(map[Place]Row, len(ranges))
	err := log.ReadOriginals(ctx, ranges, func(user string, row store.LogRow, original []byte) error {
		o, err := schema.ParseOriginal(original)
		rows[Place{User: user, Time: row.Time, ID: row.ID}] = Row{o.UnknownObjects, err != nil}
		return nil
	})
	return rows, err
}
