package backtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
)

// robotLog has a robot with so many views of 100 objects at one instant, and two
// users that make a case.
func robotLog(t *testing.T, views int) *Log {
	var objects []Object
	for o := range 100 {
		objects = append(objects, Object{ID: fmt.Sprintf("o%02d", o), Filters: []event.Filter{{Facet: "brand", Value: "X"}}})
	}
	l, err := NewLog("products", objects)
	must.Succeed(t, err)
	add := func(user string, time int64, i, o int) {
		l.Add(Event{User: user, Time: time, ID: fmt.Sprint(i), Type: event.View, Name: "Viewed", Index: "products", ObjectIDs: []string{fmt.Sprintf("o%02d", o)}})
	}
	for i := range views {
		add("robot", 10, i, i%100)
	}
	add("u", 0, 0, 1)
	add("u", 100, 1, 2)
	return l
}

// Pairs of events at one instant are counted by their products. One by one, the
// 90,000,000,000 pairs of the robot would take many minutes.
func TestRobot(t *testing.T) {
	views := race.Or[int64](300_000, 60_000)
	c, err := robotLog(t, int(views)).Cases(t.Context(), viewed, Options{})
	must.Succeed(t, err)
	for a, p := range c.crowd.pairs {
		if len(p.counts) != pairsKept || p.counts[0] != (views/100)*(views/100) {
			t.Fatalf("object %d has the counts %v, want %d of %d", a, p.counts, pairsKept, (views/100)*(views/100))
		}
	}
}

func TestCasesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := robotLog(t, 1000).Cases(ctx, viewed, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// Memory for pairs goes by how many differ, and is bounded.
func TestPairCountsAreBounded(t *testing.T) {
	const objects, most = 20, 2500
	p, rng := newPairCounts(objects, most), rand.New(rand.NewPCG(1, 2))
	want := map[[2]uint32]int64{}
	check := func(i, limit int) {
		held := 0
		for a := range p.of {
			held += len(p.of[a].objects) + len(p.of[a].fresh)
		}
		if held > limit {
			t.Fatalf("%d pairs are held after %d, at most %d may be", held, i, limit)
		}
	}
	for i := range 100_000 { // of few objects: exact
		a, b := uint32(rng.IntN(objects)), uint32(rng.IntN(objects))
		want[[2]uint32{a, b}]++
		p.add(a, b, 1)
		check(i, 2*objects*objects)
	}
	for i := range 100_000 { // of more than are held, besides one that is frequent
		p.add(uint32(rng.IntN(objects)), 100+uint32(rng.IntN(100_000)), 1)
		p.add(3, 50, 1)
		want[[2]uint32{3, 50}]++
		if i%100 == 0 {
			check(i, 2*most+2*minFresh*objects)
		}
	}
	for a := range p.of {
		l := &p.of[a]
		p.merge(l)
		for i, b := range l.objects {
			if n, ok := want[[2]uint32{uint32(a), uint32(b)}]; ok && n != l.counts[i] {
				t.Errorf("pair %d, %d: count %d, want %d", a, b, l.counts[i], n)
			}
			delete(want, [2]uint32{uint32(a), uint32(b)})
		}
	}
	if len(want) > 0 {
		t.Errorf("frequent pairs are lost: %v", want)
	}
}

// Objects that users turn to only after the cut say nothing about how rare a
// filter is.
func TestFrequenciesAreThoseOfTheCut(t *testing.T) {
	l := robotLog(t, 50) // of objects 0 to 49
	c, err := l.Cases(t.Context(), viewed, Options{})
	must.Succeed(t, err)
	brand := l.filterOf[event.Filter{Facet: "brand", Value: "X"}]
	if c.crowd.objects != 50 || c.crowd.frequency[brand] != 50 {
		t.Errorf("%d objects, %d with the brand, of 50 objects that events before the cut name", c.crowd.objects, c.crowd.frequency[brand])
	}
}
