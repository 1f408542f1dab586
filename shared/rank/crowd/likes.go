package crowd

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/wire"
)

const (
	// MaxLiked is how many objects of a filter are listed.
	MaxLiked = 20
	// maxLikedFilter is the longest filter that has a list, in bytes: it is part of a key.
	maxLikedFilter = 1024
)

// Likes keeps the objects with the highest counts of each filter. While they fit its memory
// the lists are exact. When they do not, it forgets the filters that the fewest objects with a
// count carry, as FilterCounter does, until half of its memory is free. A filter that comes
// again then lists later objects only: at most Bound objects are missing in what it lists from.
type Likes struct {
	lists map[event.Filter]*liked
	bytes int
	most  int
	bound int
}

type liked struct {
	carried int      // by objects with a count
	objects []Scored // the best, the first by Better
}

// NewLikes returns lists that take so many bytes at most.
func NewLikes(bytes int) *Likes { return &Likes{lists: map[event.Filter]*liked{}, most: bytes} }

// likedBytes estimates what an object of a list takes beside its id, and headBytes what a
// list does.
const (
	likedBytes = 48
	headBytes  = 64
)

// Add adds an object with its decayed count and its filters. One without a count is in no list.
func (l *Likes) Add(id string, count float64, filters []event.Filter) {
	if !(count > 0) {
		return
	}
	for i, f := range filters {
		if contains(filters[:i], f) || len(f.Facet)+len(f.Value) > maxLikedFilter {
			continue
		}
		list := l.lists[f]
		if list == nil {
			list = &liked{}
			l.lists[f] = list
			l.bytes += filterSize(f) + headBytes
		}
		list.carried++
		l.bytes += list.add(Scored{id, count})
	}
	if l.bytes > l.most {
		l.forget()
	}
}

// add adds an object and returns by how many bytes the list has grown.
func (l *liked) add(s Scored) (grown int) {
	at, _ := slices.BinarySearchFunc(l.objects, s, Better)
	if at == MaxLiked {
		return 0
	}
	if len(l.objects) == MaxLiked {
		grown -= likedBytes + len(l.objects[MaxLiked-1].ObjectID)
		l.objects = l.objects[:MaxLiked-1]
	}
	s.ObjectID = strings.Clone(s.ObjectID)
	l.objects = slices.Insert(l.objects, at, s)
	return grown + likedBytes + len(s.ObjectID)
}

// forget forgets the filters that the fewest objects carry, and all of as few.
func (l *Likes) forget() {
	sizes := map[int]int{} // by the objects that carry them
	for f, list := range l.lists {
		size := filterSize(f) + headBytes
		for _, s := range list.objects {
			size += likedBytes + len(s.ObjectID)
		}
		sizes[list.carried] += size
	}
	highest := rarest(sizes, &l.bytes, l.most)
	for f, list := range l.lists {
		if list.carried <= highest {
			delete(l.lists, f)
		}
	}
	l.bound += highest
}

// All returns the filters and the objects that they list, those of the highest counts first
// and of equal counts by ObjectID.
func (l *Likes) All() iter.Seq2[event.Filter, []Scored] {
	return func(yield func(event.Filter, []Scored) bool) {
		for f, list := range l.lists {
			if !yield(f, list.objects) {
				return
			}
		}
	}
}

// Bound is 0 if the lists are exact. Otherwise each is that of all objects but as many.
func (l *Likes) Bound() int { return l.bound }

// AppendLiked appends the stored form of the objects of a filter.
func AppendLiked(b []byte, objects []Scored) []byte {
	start := len(b)
	b = binary.AppendUvarint(append(b, format), uint64(len(objects)))
	for _, s := range objects {
		b = wire.AppendFloat(wire.AppendText(b, s.ObjectID), s.Score)
	}
	return wire.Seal(b, start)
}

// ParseLiked decodes what AppendLiked wrote. The error is wire.ErrNewer if a newer version of
// the engine wrote it.
func ParseLiked(b []byte) ([]Scored, error) {
	c, err := wire.Unseal(b, format)
	if err != nil {
		return nil, fmt.Errorf("read the objects of a filter: %w", err)
	}
	objects := make([]Scored, c.Size(9))
	for i := range objects {
		objects[i] = Scored{string(c.Text()), c.Float()}
	}
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("read the objects of a filter: %w", err)
	}
	return objects, nil
}
