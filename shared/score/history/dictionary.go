package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/wire"
)

// The stored form of a dictionary. Integers are unsigned varints as in
// encoding/binary unless marked. A text is its length in bytes, then the bytes.
// The id of a term is its index in its list, from 0.
//
//	offset  size
//	0       1     format: 1
//	1       4     CRC-32C of all bytes that follow, little-endian
//	5       var   generation: a signed varint
//	        var   number of kinds of events, then of each:
//	              var   type, name: text
//	        var   number of facets, then of each:
//	              var   name: text
//	              var   number of values, then each of them: text
//
// This is stored data: a new layout needs a new format byte.
const (
	dictionaryFormat = 1
	dictionaryHeader = 5
)

// ErrNoDictionary means that the dictionary of a block is lost or damaged. Nobody
// can read the block any more, so it counts as damaged.
var ErrNoDictionary = errors.New("the dictionary is lost or damaged")

// ErrUnread means that the dictionary of a block could not be read at the moment.
// The block is not damaged.
var ErrUnread = errors.New("the dictionary could not be read")

// Dictionaries returns the dictionaries of one app. It must be safe for concurrent
// use if its readers run concurrently.
type Dictionaries interface {
	// Dictionary returns the dictionary of a generation. The error is
	// ErrNoDictionary if the dictionary is lost or damaged. Any other error is
	// temporary: what reads a block returns it, wrapped in ErrUnread.
	Dictionary(generation int64) (*Dictionary, error)
}

// Dictionary gives short ids to the kinds of events, facets and values that many
// users of an app share. Blocks hold these ids in place of texts. A dictionary is
// immutable and safe for concurrent use. It is a cache like the blocks: without
// it, their ranges are read from the log.
type Dictionary struct {
	generation int64
	stored     []byte
	kinds      []pairPlace
	facets     []facetTerms

	// Derived on first use: readers that only score need no texts, and only
	// builders need ids.
	texts   func() *dictionaryTexts
	indexed func() *dictionaryIndex
}

// span is the place of a text in the stored form.
type span struct{ start, end uint32 }

type pairPlace struct{ typ, name span }

type facetTerms struct {
	name   span
	values []span
}

// dictionaryTexts are the terms of a dictionary as strings, which share one copy of
// the stored form.
type dictionaryTexts struct {
	kinds  []affinity.Pair
	facets []string
	values [][]string // by facet
}

// dictionaryIndex finds the ids of terms.
type dictionaryIndex struct {
	kinds  map[affinity.Pair]uint32
	facets map[string]uint32
	values []map[string]uint32 // by facet
}

// Generation returns the number that blocks name the dictionary by. The caller must
// give every dictionary of an app a number of its own.
func (d *Dictionary) Generation() int64 { return d.generation }

// Len returns the number of terms: kinds of events, facets and values.
func (d *Dictionary) Len() int {
	n := len(d.kinds) + len(d.facets)
	for i := range d.facets {
		n += len(d.facets[i].values)
	}
	return n
}

// Bytes returns the size of the stored form.
func (d *Dictionary) Bytes() int { return len(d.stored) }

// sum is the checksum by which a block knows its dictionary. It covers the
// generation.
func (d *Dictionary) sum() uint32 { return binary.LittleEndian.Uint32(d.stored[1:]) }

func (d *Dictionary) text(s span) []byte { return d.stored[s.start:s.end] }

// AppendBinary appends the stored form to dst.
func (d *Dictionary) AppendBinary(dst []byte) []byte { return append(dst, d.stored...) }

// ParseDictionary parses what AppendBinary wrote. The dictionary shares no memory
// with b. The error is wire.ErrNewer for an unknown format. Any other error is
// ErrNoDictionary and says how b is damaged.
func ParseDictionary(b []byte) (*Dictionary, error) {
	d, err := parseDictionary(slices.Clone(b))
	if err != nil {
		return nil, fmt.Errorf("parse dictionary of %d bytes: %w", len(b), err)
	}
	return d, nil
}

func parseDictionary(b []byte) (*Dictionary, error) {
	switch {
	case len(b) > 0 && b[0] > dictionaryFormat:
		return nil, fmt.Errorf("format %d, want %d: %w", b[0], dictionaryFormat, wire.ErrNewer)
	case len(b) < dictionaryHeader || b[0] != dictionaryFormat:
		return nil, fmt.Errorf("%w: not a dictionary", ErrNoDictionary)
	case wire.Checksum(b[dictionaryHeader:]) != binary.LittleEndian.Uint32(b[1:]):
		return nil, fmt.Errorf("%w: checksum does not match", ErrNoDictionary)
	}
	r := termReader{cursor{B: b, Next: dictionaryHeader}}
	d := &Dictionary{stored: b, generation: r.Signed()}
	d.kinds = make([]pairPlace, r.Size(2))
	for i := range d.kinds {
		d.kinds[i] = pairPlace{r.span(), r.span()}
	}
	d.facets = make([]facetTerms, r.Size(2))
	for i := range d.facets {
		f := &d.facets[i]
		f.name = r.span()
		f.values = make([]span, r.Size(1))
		for j := range f.values {
			f.values[j] = r.span()
		}
	}
	if r.Damaged || r.Next != len(b) {
		return nil, fmt.Errorf("%w: %w", ErrNoDictionary, errDamaged)
	}
	d.texts, d.indexed = sync.OnceValue(d.makeTexts), sync.OnceValue(d.makeIndex)
	return d, nil
}

// termReader reads texts as places.
type termReader struct{ cursor }

func (r *termReader) span() span {
	n := len(r.Text())
	return span{uint32(r.Next - n), uint32(r.Next)}
}

func (d *Dictionary) makeTexts() *dictionaryTexts {
	all := string(d.stored)
	text := func(s span) string { return all[s.start:s.end] }
	t := &dictionaryTexts{
		kinds:  make([]affinity.Pair, len(d.kinds)),
		facets: make([]string, len(d.facets)),
		values: make([][]string, len(d.facets)),
	}
	for i, k := range d.kinds {
		t.kinds[i] = affinity.Pair{Type: text(k.typ), Name: text(k.name)}
	}
	for i := range d.facets {
		f := &d.facets[i]
		t.facets[i] = text(f.name)
		t.values[i] = make([]string, len(f.values))
		for j, v := range f.values {
			t.values[i][j] = text(v)
		}
	}
	return t
}

func (d *Dictionary) makeIndex() *dictionaryIndex {
	t := d.texts()
	x := &dictionaryIndex{
		kinds:  make(map[affinity.Pair]uint32, len(t.kinds)),
		facets: make(map[string]uint32, len(t.facets)),
		values: make([]map[string]uint32, len(t.facets)),
	}
	for i, pair := range t.kinds {
		x.kinds[pair] = uint32(i)
	}
	for i, name := range t.facets {
		x.facets[name] = uint32(i)
		x.values[i] = make(map[string]uint32, len(t.values[i]))
		for j, value := range t.values[i] {
			x.values[i][value] = uint32(j)
		}
	}
	return x
}

// dictionary returns the dictionary of a block, nil if the block has none.
func (f *frame) dictionary(from Dictionaries) (*Dictionary, error) {
	if !f.bound {
		return nil, nil
	}
	generation := f.generation
	if from == nil {
		return nil, fmt.Errorf("dictionary %d: %w", generation, ErrNoDictionary)
	}
	d, err := from.Dictionary(generation)
	switch {
	case errors.Is(err, ErrNoDictionary) || errors.Is(err, wire.ErrNewer):
		return nil, fmt.Errorf("dictionary %d: %w", generation, err)
	case err != nil:
		return nil, fmt.Errorf("dictionary %d: %w: %w", generation, ErrUnread, err)
	case d == nil || d.generation != generation || d.sum() != f.sum:
		return nil, fmt.Errorf("dictionary %d: it is not the one of the block: %w", generation, ErrNoDictionary)
	}
	return d, nil
}
