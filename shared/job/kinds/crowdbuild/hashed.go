package crowdbuild

import (
	"context"
	"hash/maphash"

	"github.com/affinityengine/affinity/shared/rank/crowd"
)

// hashed holds numbers of objects, by hashes of their ids, as an objectSet holds them.
type hashed[N int64 | float64] struct {
	seed maphash.Seed
	sums map[uint64]N
}

func newHashed[N int64 | float64]() *hashed[N] { return &hashed[N]{maphash.MakeSeed(), map[uint64]N{}} }

func (h *hashed[N]) of(id string) N { return h.sums[maphash.String(h.seed, id)] }

func (h *hashed[N]) add(id string, n N) { h.sums[maphash.String(h.seed, id)] += n }

// counts reads the decayed counts of the objects of an index.
func (t *task) counts(ctx context.Context, index string) (*hashed[float64], error) {
	h := newHashed[float64]()
	return h, t.Store.Crowd.ReadCrowdIndex(ctx, t.params.ref(t.app.ID, index), func(cell []byte) error {
		var x crowd.Index
		err := x.AddCounts(cell)
		for id, n := range x.Counts {
			h.add(id, n)
		}
		return err
	}, func([]byte) error { return nil })
}
