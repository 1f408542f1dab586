package history_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestBlockDamageIsDetected(t *testing.T) {
	for _, l := range testLayouts() {
		t.Run(l.name, func(t *testing.T) {
			block, c := sampleBlock(l.Builder), affinity.Compile(sampleStrategy())
			r := history.NewReader(c, commonShelf)
			readable := func(b []byte) bool {
				_, scored := r.Score(b, affinity.NewScorer(c, benchWindow))
				_, unpacked := unpack(b)
				_, named := history.HasObjects(b)
				return history.Check(b) == nil || scored == nil || unpacked == nil || named == nil
			}
			if !readable(block) {
				t.Fatal("the test begins with a damaged block")
			}
			for n := range block {
				if readable(block[:n]) {
					t.Errorf("cut to %d of %d bytes it can still be read", n, len(block))
				}
				for bit := range 8 {
					damaged := slices.Clone(block)
					damaged[n] ^= 1 << bit
					if readable(damaged) {
						t.Errorf("with bit %d of byte %d turned over it can still be read", bit, n)
					}
				}
			}
			other := slices.Clone(block)
			other[0] = 3 - other[0]
			if readable(other) {
				t.Error("as a block of the other format it can still be read")
			}
		})
	}
}

func TestBlockErrors(t *testing.T) {
	whole := sampleBlock(testLayouts()[0].Builder)
	// After the header: two events 2 ms apart, one kind, one facet "f", one
	// time, two kinds of events, one section.
	body := func(parts ...byte) []byte { return sealBlock(append(make([]byte, 5), parts...)) }
	// Six events, each 2^62 ms after the one before it: 2^62 after the first in
	// all, if that goes round.
	far := []byte{128, 128, 128, 128, 128, 128, 128, 128, 64}
	round := body(slices.Concat([]byte{0}, far, []byte{6, 3, 0, 1, 'a', 0, 45}, far, far, far, far, far, make([]byte, 6))...)
	tests := map[string]struct {
		block []byte
		want  string
	}{
		"another format":           {append([]byte{3}, whole[1:]...), "format 3, want 2"},
		"nothing":                  {nil, "not a block"},
		"no format":                {append([]byte{0}, whole[1:]...), "not a block"},
		"damage":                   {append(slices.Clone(whole), 0), "checksum does not match"},
		"nothing in it":            {body(), "damaged, though"},
		"bytes left over":          {sealBlock(append(slices.Clone(whole), 0)), "damaged, though"},
		"countless events":         {body(0, 0, 255, 255, 255, 255, 15, 0, 0, 0), "damaged, though"},
		"a kind not there":         {body(0, 2, 2, 2, 0, 0, 1, 2, 'f', '0', 5, 1, 2, 0, 1, 1, 'v', 4, 0, 1), "damaged, though"},
		"more time than said":      {body(0, 2, 2, 2, 0, 0, 1, 2, 'f', '0', 5, 1, 3, 0, 0, 1, 'v', 4, 0, 1), "damaged, though"},
		"less time than said":      {body(0, 2, 2, 2, 0, 0, 1, 2, 'f', '0', 5, 1, 1, 0, 0, 1, 'v', 4, 0, 1), "damaged, though"},
		"no event of that ordinal": {body(0, 2, 2, 3, 0, 1, 'a', 1, 2, 'f', '0', 5, 1, 2, 0, 0, 1, 'v', 4, 0, 2), "damaged, though"},
		"an ordinal far beyond":    {body(0, 2, 2, 3, 0, 1, 'a', 1, 2, 'f', '0', 7, 1, 2, 0, 0, 1, 'v', 2, 255, 255, 127), "damaged, though"},
		"time that goes round":     {round, "damaged, though"},
		"a count of nothing":       {body(0, 2, 2, 3, 0, 1, 'a', 1, 2, 'f', '0', 5, 1, 2, 0, 0, 1, 'v', 3, 1, 0), "damaged, though"},
		"a section cut short":      {body(0, 2, 2, 3, 0, 1, 'a', 1, 2, 'f', '0', 4, 1, 2, 0, 0, 1, 'v', 4, 0), "damaged, though"},
		"a section too long":       {body(0, 2, 2, 3, 0, 1, 'a', 1, 2, 'f', '0', 6, 1, 2, 0, 0, 1, 'v', 4, 0, 1), "damaged, though"},
	}
	s := sampleStrategy()
	s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: "a", Score: 1})
	c := affinity.Compile(s)
	r := history.NewReader(c, commonShelf)
	right := body(0, 2, 2, 3, 0, 1, 'a', 1, 2, 'f', '0', 5, 1, 2, 0, 0, 1, 'v', 4, 0, 1)
	if events, err := unpack(right); err != nil || len(events) != 2 || events[1].Counts[0].Value != "v" {
		t.Fatalf("what the tests begin with is %+v: %v", events, err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, scored := r.Score(test.block, affinity.NewScorer(c, affinity.Window{Now: now}))
			_, unpacked := unpack(test.block)
			for _, err := range []error{scored, unpacked} {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got error %v, want %q", err, test.want)
				}
				if newer := errors.Is(err, history.ErrNewer); newer != (name == "another format") {
					t.Errorf("of a newer version: %v", newer)
				}
			}
		})
	}
}

// sealBlock makes the first bytes of b those of a block of format 1, so that what
// follows them is read.
func sealBlock(b []byte) []byte {
	b[0] = 1
	binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(b[5:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// sealBlock2 is sealBlock for format 2.
func sealBlock2(b []byte) []byte {
	b[0] = 2
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[1:], crc32.Update(crc32.Checksum(b[:1], table), table, b[5:]))
	return b
}

// TestDistantTimes reads what no builder writes, but the format has
// room for.
func TestDistantTimes(t *testing.T) {
	far := []byte{128, 128, 128, 128, 128, 128, 128, 128, 64} // 2^62
	block := sealBlock(slices.Concat(make([]byte, 6), far, []byte{3, 2, 0, 0, 0, 10, 0}, far, make([]byte, 3)))
	events, err := unpack(block)
	if err != nil || len(events) != 3 || events[1].Time != 0 || events[2].Time != 1<<62 {
		t.Errorf("got %+v, %v", events, err)
	}
	block = sealBlock(slices.Concat(make([]byte, 6), far, []byte{3, 2, 0, 0, 0, 10}, far, make([]byte, 4)))
	events, err = unpack(block)
	if err != nil || len(events) != 3 || events[1].Time != 1<<62 || events[2].Time != 1<<62 {
		t.Errorf("got %+v, %v", events, err)
	}
}
