package history_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// crowded makes worlds in which nearly everything scores and meets, unlike
// those that rapid draws: some hundred events a user, few values, windows that
// cut through blocks.
type crowded struct{ *rand.Rand }

// texts are values whose words, lengths or both are alike.
var texts = []string{"", "v", "v\x00", "v1", "value 7", "value 77", "value 78", "fifteen letters", "sixteen letters.", "sixteen letters,",
	"sixteen letters, and more", "sixteen letters, and less", "sixteen letters, and more of the same", "été", "merged"}

func (r crowded) strategy() strategy.Strategy {
	s := strategy.Strategy{Aliases: map[string]map[string]string{}}
	for _, typ := range types {
		for _, name := range eventNames[:2] {
			if r.IntN(5) > 0 {
				s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: name, EventType: typ, Score: 1 + r.IntN(100)})
			}
		}
	}
	for _, f := range facets[:3] {
		if r.IntN(5) > 0 {
			s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: f, Score: 1 + r.IntN(100)})
		}
		s.Aliases[f] = map[string]string{}
		for _, from := range texts[2:6] {
			if r.IntN(3) == 0 {
				s.Aliases[f][from] = []string{"merged", "sixteen letters.", "v"}[r.IntN(3)]
			}
		}
	}
	minutes, err := strategy.ParseHalfLife("45m")
	if err != nil {
		panic(err)
	}
	s.HalfLives = [][]strategy.HalfLife{
		nil, strategy.InDays(30), strategy.InDays(1), strategy.InDays(7, 30, 180), strategy.InDays(3650), {strategy.Days(7), minutes},
	}[r.IntN(6)]
	return s
}

func (r crowded) window() affinity.Window {
	w := affinity.Window{Now: now, RetentionDays: []int{0, 15, 45, 90}[r.IntN(4)]}
	if r.IntN(3) == 0 {
		w.DeletedUntil = now - r.Int64N(80*dayMS)
	}
	return w
}

// log makes a user's events, from some days before any window to some after it.
func (r crowded) log() []affinity.Event {
	events := make([]affinity.Event, 1+r.IntN(400))
	names := eventNames
	if r.IntN(4) == 0 {
		for i := range 200 { // more kinds than have places of one byte
			names = append(names[:len(names):len(names)], fmt.Sprint("name ", i))
		}
	}
	few := r.IntN(2) == 0
	for i := range events {
		e := &events[i]
		e.Time = now + 5*dayMS - r.Int64N(110*dayMS)
		if r.IntN(20) == 0 {
			continue
		}
		e.Type, e.Name = types[r.IntN(3)], names[r.IntN(len(names))]
		for range r.IntN(3) {
			e.Index, e.ObjectIDs = "products", append(e.ObjectIDs, texts[r.IntN(len(texts))])
		}
		for range r.IntN(8) {
			c := affinity.Count{Facet: facets[r.IntN(4)], Value: texts[r.IntN(len(texts))], N: 1}
			if few && r.IntN(3) == 0 {
				c.N = []int{-1, 0, 2, 300, math.MaxInt}[r.IntN(5)]
			}
			e.Counts = append(e.Counts, c)
		}
	}
	slices.SortStableFunc(events, byTime)
	return events
}

// add adds a log to scorers, parts of it in blocks and parts loose, and returns
// how many events that were.
func (r crowded) add(t *testing.T, all []layout, reader *history.Reader, events []affinity.Event, scorers ...*affinity.Scorer) int {
	n := 0
	for rest := events; len(rest) > 0; {
		part := rest[:1+r.IntN(len(rest))]
		rest = rest[len(part):]
		sc := scorers[r.IntN(len(scorers))]
		if r.IntN(4) == 0 {
			for _, e := range part {
				sc.AddEvent(e)
			}
			n += len(part)
			continue
		}
		for _, block := range pack(all[r.IntN(len(all))].Builder, part) {
			m, err := reader.Score(block, sc)
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
	}
	return n
}

func TestDenseBlocksEqualReference(t *testing.T) {
	all := testLayouts()
	listed, cut := 0, 0
	for seed := range uint64(150) {
		r := crowded{rand.New(rand.NewPCG(seed, 1))}
		s := r.strategy()
		c := affinity.Compile(s)
		reader, sc := history.NewReader(c, commonShelf), affinity.NewScorer(c, affinity.Window{})
		for user := range 3 {
			w, events := r.window(), r.log()
			sc.Reset(w)
			other := affinity.NewScorer(c, w)
			if n := r.add(t, all, reader, events, sc, other); n != len(events) {
				t.Fatalf("seed %d, user %d: %d of %d events", seed, user, n, len(events))
			}
			sc.Merge(other)
			p, want := sc.Profile(), affinity.Reference(events, s, w)
			if fault := differ(p, want); fault != "" || len(p.Affinities) != len(scores(p)) {
				t.Fatalf("seed %d, user %d, %d affinities: %s", seed, user, len(p.Affinities), fault)
			}
			p.StrategyVersion = 7
			if !bytes.Equal(sc.AppendProfile(nil, 7), p.AppendBinary(nil)) {
				t.Fatalf("seed %d, user %d: stored in another form", seed, user)
			}
			listed += len(p.Affinities)
			if want.Until < math.MaxInt64 {
				cut++
			}
		}
	}
	if listed < 5_000 || cut < 300 {
		t.Errorf("%d affinities and %d profiles that end: too few to say anything", listed, cut)
	}
}

// TestReaderForgetsPreviousBlock scores blocks that are cut by the window
// after one that is not, and is as long.
func TestReaderForgetsPreviousBlock(t *testing.T) {
	w := affinity.Window{Now: now, RetentionDays: 20}
	s := sampleStrategy()
	at := func(days ...int64) []affinity.Event {
		var events []affinity.Event
		for _, d := range days {
			events = append(events, affinity.Event{Time: now - d*dayMS, Type: event.View, Name: "a", Counts: []affinity.Count{{Facet: "f0", Value: "v0", N: 1}}})
		}
		return events
	}
	for _, halfLives := range [][]int{nil, {30}, {30, 7}} {
		s.HalfLives = strategy.InDays(halfLives...)
		c := affinity.Compile(s)
		r, sc := history.NewReader(c, commonShelf), affinity.NewScorer(c, w)
		var all []affinity.Event
		for _, events := range [][]affinity.Event{at(9, 8, 7, 6), at(22, 21, 2, 1), at(3, 2, -1, -2), at(22, 1, 0, -1)} {
			all = append(all, events...)
			for _, block := range pack(history.NewBuilder(), events) {
				if _, err := r.Score(block, sc); err != nil {
					t.Fatal(err)
				}
			}
		}
		if fault := differ(sc.Profile(), affinity.Reference(all, s, w)); fault != "" {
			t.Errorf("half-lives %v: %s", halfLives, fault)
		}
	}
}

// TestKindsOfEqualLength scores blocks whose kinds differ, though they take
// the same bytes.
func TestKindsOfEqualLength(t *testing.T) {
	s, w := sampleStrategy(), affinity.Window{Now: now}
	c := affinity.Compile(s)
	r, sc := history.NewReader(c, commonShelf), affinity.NewScorer(c, w)
	var all []affinity.Event
	for _, name := range []string{"a", "b", "a"} {
		e := affinity.Event{Time: now, Type: event.View, Name: name, Counts: []affinity.Count{{Facet: "f0", Value: "v0", N: 1}}}
		all = append(all, e)
		if _, err := r.Score(pack(history.NewBuilder(), all[len(all)-1:])[0], sc); err != nil {
			t.Fatal(err)
		}
	}
	if fault := differ(sc.Profile(), affinity.Reference(all, s, w)); fault != "" {
		t.Error(fault)
	}
}
