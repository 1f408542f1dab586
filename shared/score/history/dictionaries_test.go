package history_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/wire"
)

// dictionaries is a function that returns dictionaries.
type dictionaries func(generation int64) (*history.Dictionary, error)

func (f dictionaries) Dictionary(generation int64) (*history.Dictionary, error) { return f(generation) }

// boundBlock is a block that needs common.
func boundBlock(t *testing.T) []byte {
	t.Helper()
	b := history.NewBuilder()
	b.Use(common)
	block := sampleBlock(b)
	if events, err := unpack(block); err != nil || len(events) != 10 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	return block
}

// readings returns the errors of all readings of a block that decode terms.
func readings(block []byte, from history.Dictionaries) map[string]error {
	s := sampleStrategy()
	c := affinity.Compile(s)
	r := history.NewReader(c, from)
	_, scored := r.Score(block, affinity.NewScorer(c, benchWindow))
	recent := r.Recent(block, benchWindow, 3, func(affinity.Event) {})
	o := history.ObjectReader{Strategy: c, Counts: true, Dictionaries: from}
	objects := o.Read(block, benchWindow, func(affinity.Event) {})
	var events error
	for _, err := range history.Events(block, from) {
		events = err
	}
	return map[string]error{"score": scored, "recent": recent, "objects": objects, "events": events}
}

func TestBlockNeedsItsDictionary(t *testing.T) {
	block := boundBlock(t)
	generation := common.Generation()
	same := sampleVocabulary().Dictionary(generation, history.Limits{}) // with other terms
	unavailable := errors.New("unavailable")
	for name, test := range map[string]struct {
		from history.Dictionaries
		want error
	}{
		"there are none":        {nil, history.ErrNoDictionary},
		"it is lost":            {shelf{}, history.ErrNoDictionary},
		"another has its place": {shelf{generation: same}, history.ErrNoDictionary},
		"another generation":    {shelf{generation: sampleDictionary()}, history.ErrNoDictionary},
		"nothing is returned":   {dictionaries(func(int64) (*history.Dictionary, error) { return nil, nil }), history.ErrNoDictionary},
		"a newer format":        {dictionaries(func(int64) (*history.Dictionary, error) { return nil, wire.ErrNewer }), wire.ErrNewer},
		"a fault":               {dictionaries(func(int64) (*history.Dictionary, error) { return nil, unavailable }), history.ErrUnread},
	} {
		for reading, err := range readings(block, test.from) {
			if !errors.Is(err, test.want) {
				t.Errorf("%s, %s: %v, want %v", name, reading, err, test.want)
			}
			if fault := test.want == history.ErrUnread; errors.Is(err, history.ErrUnread) != fault || errors.Is(err, unavailable) != fault {
				t.Errorf("%s, %s: is it temporary? %v", name, reading, err)
			}
		}
	}
	for reading, err := range readings(block, commonShelf) {
		if err != nil {
			t.Errorf("%s with the dictionary: %v", reading, err)
		}
	}
	if err := history.Check(block); err != nil {
		t.Errorf("check: %v", err)
	}
}

// TestDamagedDictionaryNeverScores: whatever happens to the stored form of a
// dictionary, it is refused, or its blocks are.
func TestDamagedDictionaryNeverScores(t *testing.T) {
	block, stored := boundBlock(t), common.AppendBinary(nil)
	for n := range stored {
		damaged := slices.Clone(stored)
		damaged[n] ^= 1 << (n % 8)
		cases := [][]byte{damaged, stored[:n]}
		if n >= 5 { // behind what the seal restores
			cases = append(cases, resealed(damaged), resealed(stored[:n]))
		}
		for _, b := range cases {
			d, err := history.ParseDictionary(b)
			if err != nil {
				continue
			}
			from := dictionaries(func(int64) (*history.Dictionary, error) { return d, nil })
			for reading, err := range readings(block, from) {
				if !errors.Is(err, history.ErrNoDictionary) {
					t.Fatalf("with byte %d damaged, %s: %v", n, reading, err)
				}
			}
		}
	}
}

// resealed gives a dictionary the right checksum.
func resealed(b []byte) []byte {
	if len(b) < 5 {
		return b
	}
	return sealDictionary(slices.Clone(b))
}

// TestReaderOfManyDictionaries scores blocks of more dictionaries than a reader
// remembers, in turns, and some without.
func TestReaderOfManyDictionaries(t *testing.T) {
	all := shelf{}
	var builders []*history.Builder
	for generation := range int64(7) {
		v := history.NewVocabulary()
		for user := range 10 {
			for i := range 6 { // in another order in every generation
				if (user+i+int(generation))%6 > 2 || user < history.MinUsers {
					v.Add(fmt.Sprint(user), filtered(eventNames[i%2], fmt.Sprintf("%s:v%d", facets[i%3], i)))
				}
			}
		}
		b := history.NewBuilder()
		if generation > 0 {
			all[generation] = v.Dictionary(generation, history.Limits{})
			b.Use(all[generation])
		}
		builders = append(builders, b)
	}
	s := sampleStrategy()
	c := affinity.Compile(s)
	r, sc := history.NewReader(c, all), affinity.NewScorer(c, benchWindow)
	var events []affinity.Event
	for i := range 60 {
		e := filtered(eventNames[i%2], fmt.Sprintf("%s:v%d", facets[i%3], i%6), fmt.Sprintf("%s:v%d", facets[i%2], i%5))
		events = append(events, e)
		for _, block := range pack(builders[i*i%7], events[i:]) {
			if _, err := r.Score(block, sc); err != nil {
				t.Fatal(err)
			}
		}
	}
	if fault := differ(sc.Profile(), affinity.Reference(events, s, benchWindow)); fault != "" {
		t.Error(fault)
	}
}

// TestReaderFindsDictionaryLater: a failed reading leaves nothing behind.
func TestReaderFindsDictionaryLater(t *testing.T) {
	block, from := boundBlock(t), shelf{}
	c := affinity.Compile(sampleStrategy())
	r, sc := history.NewReader(c, from), affinity.NewScorer(c, benchWindow)
	if _, err := r.Score(block, sc); !errors.Is(err, history.ErrNoDictionary) {
		t.Fatal(err)
	}
	from[common.Generation()] = common
	if n, err := r.Score(block, sc); n != 10 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
}

func TestErrorsInParts(t *testing.T) {
	body := func(parts ...byte) []byte { return sealBlock(append(make([]byte, 5), parts...)) }
	// Without a dictionary: two events 2 ms apart of one kind, no objects, one facet, one
	// value of all events.
	head := []byte{0, 0, 2, 4, 0, 0, 1, 'a', 1, 2, 1, 0}
	facet := func(groups ...byte) []byte {
		return body(slices.Concat(head, []byte{0, 2, 'f', '0', byte(len(groups))}, groups)...)
	}
	right := facet(1, 1, 'v')
	events, err := unpack(right)
	want := []affinity.Event{filtered("a", "f0:v"), filtered("a", "f0:v")}
	for i := range want {
		want[i].Type, want[i].Time = "", int64(2*i)
	}
	if diff := cmp.Diff(want, events); err != nil || diff != "" {
		t.Fatalf("what the tests begin with: %v\n%s", err, diff)
	}
	s := sampleStrategy()
	s.EventsScoring[0].EventType = ""
	c := affinity.Compile(s)
	r := history.NewReader(c, commonShelf)
	for name, block := range map[string][]byte{
		"nothing in it":             body(),
		"unknown flags":             body(4, 0, 0, 0, 0, 1, 0),
		"a dictionary cut short":    body(1, 2, 1, 2),
		"countless events":          body(0, 0, 255, 255, 255, 255, 15, 0, 0, 1, 0),
		"more events than times":    body(0, 0, 3, 4, 0, 0, 1, 'a', 1, 2, 1, 0),
		"fewer events than times":   body(0, 0, 1, 4, 0, 0, 1, 'a', 1, 2, 1, 0),
		"events without a kind":     body(0, 0, 2, 0, 1, 2, 1, 0),
		"a kind not there":          body(0, 0, 2, 12, 0, 0, 1, 'a', 0, 0, 1, 'b', 0, 0, 1, 'c', 12, 1, 2, 1, 0),
		"a kind without dictionary": body(0, 0, 2, 1, 1, 1, 2, 1, 0),
		"a kind cut short":          body(0, 0, 2, 3, 0, 0, 1, 1, 2, 1, 0),
		"time that goes round":      body(0, 0, 2, 4, 0, 0, 1, 'a', 10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1, 0),
		"a section too long":        body(slices.Concat(head, []byte{0, 2, 'f', '0', 9, 1, 1, 'v'})...),
		"a facet cut short":         body(slices.Concat(head, []byte{0, 9, 'f'})...),
		"a facet of no dictionary":  body(slices.Concat(head, []byte{1, 1, 0})...),
		"a value of no dictionary":  facet(16 + 1),
		"a text cut short":          facet(1, 2, 'v'),
		"an ordinal beyond":         facet(0, 2, 1, 'v'),
		"a bit beyond":              facet(2, 4, 1, 'v'),
		"no bits":                   facet(2),
		"a list beyond":             facet(3, 2, 0, 2, 1, 'v'),
		"a list too long":           facet(3, 200, 1, 0, 1, 'v'),
		"countless values":          facet(9, 255, 255, 255, 255, 15, 1, 'v'),
		"fewer values than said":    facet(9, 0, 1, 'v'),
		"a count of nothing":        facet(4, 1, 0, 1, 'v'),
		"a count too few":           facet(5, 1, 1, 'v'),
	} {
		t.Run(name, func(t *testing.T) {
			_, scored := r.Score(block, affinity.NewScorer(c, affinity.Window{Now: now}))
			_, unpacked := unpack(block)
			for _, err := range []error{scored, unpacked} {
				if err == nil || !strings.Contains(err.Error(), "damaged, though") {
					t.Errorf("got error %v", err)
				}
			}
		})
	}
}
