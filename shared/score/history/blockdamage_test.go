package history_test

import (
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestBlockDamageIsDetected(t *testing.T) {
	for _, l := range testLayouts() {
		t.Run(l.name, func(t *testing.T) {
			block, c := sampleBlock(l.Builder), affinity.Compile(sampleStrategy())
			r := history.NewReader(c, commonShelf)
			affinitytest.DetectsDamage(t, block, func(b []byte) bool {
				_, scored := r.Score(b, affinity.NewScorer(c, benchWindow))
				_, unpacked := unpack(b)
				named := (&history.ObjectReader{Dictionaries: commonShelf}).Read(b, allTime, func(affinity.Event) {})
				return history.Check(b) == nil || scored == nil || unpacked == nil || named == nil
			})
		})
	}
}

func TestBlockErrors(t *testing.T) {
	whole := sampleBlock(testLayouts()[0].Builder)
	body := func(parts ...byte) []byte { return sealBlock(append(make([]byte, 5), parts...)) }
	// After the header: no flags, two events 2 ms apart of one kind, no objects, and a
	// section of the facet "f0".
	two := func(section ...byte) []byte {
		return body(append([]byte{0, 0, 2, 4, 0, 0, 1, 'a', 1, 2, 1, 0, 0, 2, 'f', '0'}, section...)...)
	}
	// Six events, each 2^62 ms after the one before it: 2^62 after the first in
	// all, if that goes round.
	far := []byte{128, 128, 128, 128, 128, 128, 128, 128, 64}
	round := body(slices.Concat([]byte{0, 0, 6, 4, 0, 0, 1, 'a', 45}, far, far, far, far, far, []byte{1, 0})...)
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
		"countless events":         {body(0, 0, 255, 255, 255, 255, 15, 0, 0, 1, 0), "damaged, though"},
		"a kind not there":         {body(0, 0, 2, 11, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 'b', 12, 1, 2, 1, 0), "damaged, though"},
		"a time too many":          {body(0, 0, 2, 3, 0, 0, 0, 2, 1, 1, 1, 0), "damaged, though"},
		"a time too few":           {body(0, 0, 3, 3, 0, 0, 0, 1, 2, 1, 0), "damaged, though"},
		"no event of that ordinal": {two(6, 3, 2, 0, 2, 1, 'v'), "damaged, though"},
		"an ordinal far beyond":    {two(7, 3, 1, 255, 255, 127, 1, 'v'), "damaged, though"},
		"time that goes round":     {round, "damaged, though"},
		"a count of nothing":       {two(6, 7, 1, 1, 0, 1, 'v'), "damaged, though"},
		"a section cut short":      {two(5, 3, 2, 0, 1, 1), "damaged, though"},
		"a section too long":       {two(7, 3, 2, 0, 1, 1, 'v'), "damaged, though"},
	}
	s := sampleStrategy()
	s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: "a", Score: 1})
	c := affinity.Compile(s)
	r := history.NewReader(c, commonShelf)
	right := two(6, 3, 2, 0, 1, 1, 'v')
	if events, err := unpack(right); err != nil || len(events) != 2 || events[1].Counts[0].Value != "v" {
		t.Fatalf("what the tests begin with is %+v: %v", events, err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, scored := r.Score(test.block, affinity.NewScorer(c, affinity.Window{Now: now}))
			_, unpacked := unpack(test.block)
			for _, err := range []error{scored, unpacked} {
				wantDamage(t, name, err, test.want)
			}
		})
	}
}

// sealBlock makes the first bytes of b those of a block, so that what follows them is
// read.
func sealBlock(b []byte) []byte {
	return seal(b, 1)
}

// TestDistantTimes reads what no builder writes, but the format has
// room for.
func TestDistantTimes(t *testing.T) {
	far := []byte{128, 128, 128, 128, 128, 128, 128, 128, 64} // 2^62
	head, objects := append(make([]byte, 7), 3, 3, 0, 0, 0, 10), []byte{1, 0}
	block := sealBlock(slices.Concat(head, []byte{0}, far, objects))
	events, err := unpack(block)
	if err != nil || len(events) != 3 || events[1].Time != 0 || events[2].Time != 1<<62 {
		t.Errorf("got %+v, %v", events, err)
	}
	block = sealBlock(slices.Concat(head, far, []byte{0}, objects))
	events, err = unpack(block)
	if err != nil || len(events) != 3 || events[1].Time != 1<<62 || events[2].Time != 1<<62 {
		t.Errorf("got %+v, %v", events, err)
	}
}
