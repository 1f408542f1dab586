package rowstream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/affinityengine/affinity/shared/local/race"
)

// FuzzSameAsLibrary gives the same answers to the library's reader. Both must pass on
// the same rows, ask again in the same way, and end alike.
func FuzzSameAsLibrary(f *testing.F) {
	c, seeds := start(f), uint64(400)
	if race.On {
		seeds = 60
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		attempts := g.attempts()
		var set bigtable.RowSet = bigtable.NewRange("k", "l")
		if g.IntN(3) == 0 {
			set = bigtable.RowRangeList{bigtable.NewRange("k", "k000003"), bigtable.NewOpenClosedRange("k000004", "kz")}
		}
		var opts []bigtable.ReadOption
		limit := -1
		if g.IntN(3) == 0 {
			limit = 1 + g.IntN(6)
			opts = append(opts, bigtable.LimitRows(int64(limit)))
		}
		stop := max(0, g.IntN(12)-6)
		own, library := c.read(t.Context(), c.own, set, stop, attempts, opts...), c.read(t.Context(), c.library, set, stop, attempts, opts...)
		if len(own.Rows) >= limit && limit > 0 {
			own.Err, library.Err = nil, nil // the library returns an error after all rows
		}
		if diff := cmp.Diff(library, own, same); diff != "" {
			t.Errorf("seed %d (-library +own):\n%s", seed, diff)
		}
	})
}

// generator makes answers: mostly what a server may send.
type generator struct {
	*rand.Rand
	key int
}

func (g *generator) attempts() []attempt {
	var all []attempt
	damaged := false
	for range 1 + g.IntN(4) {
		a := attempt{end: again()}
		for range g.IntN(4) {
			if !damaged {
				a.messages = append(a.messages, g.message(&damaged))
			}
		}
		if all = append(all, a); damaged {
			break // the library takes no row that the next message ends
		}
	}
	if last := &all[len(all)-1]; g.IntN(3) > 0 || damaged {
		last.end = nil
	} else {
		last.end = status.Error(codes.NotFound, "the end, by the test")
	}
	return all
}

// message returns some rows, whole ones: the library takes no others.
func (g *generator) message(damaged *bool) *message {
	m := &message{}
	for range g.IntN(4) {
		m.Chunks = append(m.Chunks, g.row()...)
	}
	if g.IntN(4) == 0 {
		g.key++
		m.LastScannedRowKey = fmt.Appendf(nil, "k%06d", g.key)
	}
	if len(m.Chunks) > 0 && g.IntN(20) == 0 {
		g.damage(m)
		*damaged = true
	}
	return m
}

func (g *generator) row() []*chunk {
	g.key++
	key := fmt.Sprintf("k%06d", g.key)
	var chunks []*chunk
	for range 1 + g.IntN(4) {
		chunks = append(chunks, g.cell(key, len(chunks) == 0)...)
		if g.IntN(8) == 0 {
			chunks = append(chunks, reset())
			chunks = append(chunks, g.cell(key, true)...)
		}
	}
	committed(chunks[len(chunks)-1])
	return chunks
}

// cell returns a cell in one chunk or in several. One that is not the first of its row
// may leave out what the cell before has said.
func (g *generator) cell(key string, begins bool) []*chunk {
	c := first(key, string("fgh"[g.IntN(3)]), string("qrs"[g.IntN(3)]), string(make([]byte, g.IntN(5))))
	c.TimestampMicros = int64(g.IntN(3)) * 1000
	if !begins {
		if g.IntN(2) == 0 {
			c.RowKey = nil
		}
		switch g.IntN(4) {
		case 0:
			c.FamilyName = nil
		case 1:
			c.FamilyName, c.Qualifier = nil, nil
		}
	}
	chunks := []*chunk{c}
	for parts := g.IntN(4); parts > 1; parts-- {
		chunks[len(chunks)-1].ValueSize = 9
		chunks = append(chunks, &chunk{Value: []byte("xyz")[:g.IntN(4)]})
	}
	return chunks
}

// damage changes a chunk, so that the answer may be invalid.
func (g *generator) damage(m *message) {
	i := g.IntN(len(m.Chunks))
	c := m.Chunks[i]
	switch g.IntN(7) {
	case 0:
		c.FamilyName = wrapperspb.String("f")
	case 1:
		c.Qualifier = nil
	case 2:
		c.RowKey = []byte("kzzzzzz")
	case 3:
		c.RowStatus = nil
	case 4:
		if i > 0 {
			c.RowStatus = reset().RowStatus
		}
	case 5:
		c.RowKey = nil
	case 6:
		m.Chunks = append(m.Chunks[:i], m.Chunks[i+1:]...)
	}
}
