package measure

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/store"
)

// Families of the engine's tables that are counted separately.
const (
	familyOriginal = "m" // original events
	familyProfile  = "p" // profiles
)

// held is the size of tables: keys, once per row, qualifiers and values.
type held struct {
	bytes     int64 // data that profiles are computed from
	originals int64 // original events
}

// hold counts the cells of all tables without the profiles.
func (c *client) hold(ctx context.Context) (h held, err error) {
	declared, err := store.Tables()
	if err != nil {
		return held{}, err
	}
	for _, t := range declared {
		err := c.raw.Open(t.Name).ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			h.bytes += int64(len(r.Key()))
			for family, items := range r {
				for _, item := range items {
					n := int64(len(item.Column) - len(family) - 1 + len(item.Value))
					switch family {
					case familyOriginal:
						h.originals += n
					case familyProfile:
					default:
						h.bytes += n
					}
				}
			}
			return true
		})
		if err != nil {
			return held{}, fmt.Errorf("count what table %s holds: %w", t.Name, err)
		}
	}
	return h, nil
}
