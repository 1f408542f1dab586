package disk

import (
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Merge joins the parts of a value, the oldest first. Joining some of them first must not
// change the result.
type Merge func(parts [][]byte) ([]byte, error)

// merger makes Pebble join what Batch.Join has added to a key.
func merger(join Merge) *pebble.Merger {
	return &pebble.Merger{Name: "affinity.rows", Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		return &joining{join: join, parts: [][]byte{slices.Clone(value)}}, nil
	}}
}

type joining struct {
	join  Merge
	parts [][]byte // the oldest first
}

func (j *joining) MergeNewer(value []byte) error {
	j.parts = append(j.parts, slices.Clone(value))
	return nil
}

func (j *joining) MergeOlder(value []byte) error {
	j.parts = slices.Insert(j.parts, 0, slices.Clone(value))
	return nil
}

func (j *joining) Finish(bool) ([]byte, io.Closer, error) {
	if len(j.parts) == 1 {
		return j.parts[0], nil, nil
	}
	value, err := j.join(j.parts)
	return value, nil, err
}
