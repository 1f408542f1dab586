package crowd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/crowd"
)

// tallied counts users with one tally for each run, and merges the runs.
func tallied(users [][]step, usersPerRun, kept int, asOf int64, halfLife float64) (counts, recent map[string]float64, objects map[string]crowd.Object) {
	tally := crowd.NewTally(asOf, halfLife)
	counter := crowd.NewCounter(tally)
	byObject := map[string][]crowd.Partial{}
	for i, user := range users {
		for _, s := range user {
			counter.Add(s.time, s.bought, s.objects)
		}
		counter.End()
		if (i+1)%usersPerRun == 0 || i == len(users)-1 {
			for _, p := range tally.Cut(kept, name) {
				byObject[p.ObjectID] = append(byObject[p.ObjectID], p)
			}
		}
	}
	counts, recent, objects = map[string]float64{}, map[string]float64{}, map[string]crowd.Object{}
	for id, partials := range byObject {
		counts[id], recent[id], objects[id] = crowd.Merge(partials, func(id string) int64 { return ownOf(byObject[id]) })
	}
	return counts, recent, objects
}

func ownOf(partials []crowd.Partial) (own int64) {
	for _, p := range partials {
		own += p.Own
	}
	return own
}

func reference(users [][]step, asOf int64, halfLife float64) (map[string]float64, map[string]crowd.Object) {
	all := make([][]crowd.Event, len(users))
	for i, user := range users {
		all[i] = events(user)
	}
	return crowd.Reference(all, asOf, halfLife)
}

// best cuts the pairs of the reference to those that statistics list.
func best(objects map[string]crowd.Object) map[string]crowd.Object {
	cut := map[string]crowd.Object{}
	for id, o := range objects {
		for kind, links := range o.Links {
			o.Links[kind] = links[:min(len(links), crowd.Best)]
		}
		cut[id] = o
	}
	return cut
}

const (
	testAsOf     = 5 * 86_400_000
	testHalfLife = 2 * 86_400_000
)

func TestTalliesEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.SliceOfN(rapid.Custom(genUser), 0, 6).Draw(t, "users")
		runs := rapid.IntRange(1, 3).Draw(t, "users a run")
		wantCounts, want := reference(users, testAsOf, testHalfLife)
		counts, recent, got := tallied(users, runs, crowd.Kept, testAsOf, testHalfLife)
		if diff := cmp.Diff(wantCounts, counts, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Fatalf("counts (-reference +tallies):\n%s", diff)
		}
		wantRecent, _ := reference(users, testAsOf, crowd.Recently)
		if diff := cmp.Diff(wantRecent, recent, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Fatalf("recent counts (-reference +tallies):\n%s", diff)
		}
		if diff := cmp.Diff(best(want), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("objects (-reference +tallies):\n%s", diff)
		}
	})
}

// checkBounds checks what Bound promises, and returns how many objects have
// exact pairs.
func checkBounds(t rapid.TB, want, got map[string]crowd.Object) (exact int) {
	t.Helper()
	for id, o := range got {
		full := want[id].Links[crowd.Follows]
		if o.Exact() {
			exact++
			if diff := cmp.Diff(full[:min(len(full), crowd.Best)], o.Links[crowd.Follows], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s has exact pairs that differ (-reference +merged):\n%s", id, diff)
			}
			continue
		}
		listed := map[string]int64{}
		for _, p := range o.Links[crowd.Follows] {
			listed[p.ObjectID] = p.Count
		}
		var last int64
		if len(o.Links[crowd.Follows]) == crowd.Best {
			last = o.Links[crowd.Follows][crowd.Best-1].Count
		}
		for _, p := range full {
			n, ok := listed[p.ObjectID]
			switch {
			case ok && (n > p.Count || p.Count > n+o.Bound):
				t.Errorf("pair %s, %s: count %d, bound %d; it occurs %d times", id, p.ObjectID, n, o.Bound, p.Count)
			case !ok && p.Count > last+o.Bound:
				t.Errorf("pair %s, %s is missing: it occurs %d times, above %d and bound %d", id, p.ObjectID, p.Count, last, o.Bound)
			}
		}
	}
	return exact
}

func TestBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.SliceOfN(rapid.Custom(genUser), 1, 12).Draw(t, "users")
		kept := rapid.IntRange(1, 60).Draw(t, "kept")
		_, want := reference(users, testAsOf, testHalfLife)
		_, _, got := tallied(users, 1, kept, testAsOf, testHalfLife)
		checkBounds(t, want, got)
	})
}

// In every run the second object "steady" is sixth, behind five others of that
// run alone, so a cut of five loses it although it is the most frequent one.
func TestBoundHoldsAgainstAnAdversary(t *testing.T) {
	const runs, kept, first, steady = 40, 5, 0, 1
	var users [][]step
	for run := range runs {
		var user []step
		time := int64(run) * 1000
		for i := range 5 {
			other := uint32(2 + run*5 + i)
			for range 3 {
				time += 31 * minute
				user = append(user, step{time, false, []uint32{first}}, step{time + 1, false, []uint32{other}})
			}
		}
		for range 2 {
			time += 31 * minute
			user = append(user, step{time, false, []uint32{first}}, step{time + 1, false, []uint32{steady}})
		}
		users = append(users, user)
	}
	_, want := reference(users, testAsOf, testHalfLife)
	_, _, got := tallied(users, 1, kept, testAsOf, testHalfLife)
	if p := want[name(first)].Links[crowd.Follows][0]; p.ObjectID != name(steady) || p.Count != 2*runs {
		t.Fatalf("most frequent pair %+v, want %s %d times", p, name(steady), 2*runs)
	}
	o := got[name(first)]
	if slices.ContainsFunc(o.Links[crowd.Follows], func(p crowd.Pair) bool { return p.ObjectID == name(steady) }) {
		t.Error("the cut kept the pair: the stream does not break it")
	}
	if o.Exact() {
		t.Error("the pairs count as exact")
	}
	checkBounds(t, want, got)
}

// A tally whose buffer overflows often counts the same.
func TestTallyOfManyPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tally := crowd.NewTally(testAsOf, testHalfLife)
	want := map[[2]uint32]int64{}
	for o := range uint32(300) {
		tally.Event(o, 0)
	}
	for range 2_500_000 {
		p := [2]uint32{uint32(r.IntN(300)), uint32(r.IntN(300))}
		want[p]++
		tally.Link(crowd.Follows, p[0], p[1], 1)
	}
	if tally.Release(); tally.Different() != len(want) {
		t.Errorf("%d different pairs, want %d", tally.Different(), len(want))
	}
	n := 0
	for first, part := range tally.Cut(crowd.Kept, name) {
		for second, p := range part.Links[crowd.Follows].Pairs {
			n++
			if p.ObjectID != name(uint32(second)) || p.Count != want[[2]uint32{uint32(first), uint32(second)}] {
				t.Fatalf("pair %d, %d = %+v, want %d", first, second, p, want[[2]uint32{uint32(first), uint32(second)}])
			}
		}
	}
	if n != len(want) || len(tally.Cut(crowd.Kept, name)) != 0 {
		t.Errorf("%d pairs, want %d and then none", n, len(want))
	}
}

// A tally that releases its buffer counts the same, and holds no buffer.
func TestTallyReleases(t *testing.T) {
	kept, released := crowd.NewTally(0, math.Inf(1)), crowd.NewTally(0, math.Inf(1))
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 1000 {
		a, b := uint32(r.IntN(20)), uint32(r.IntN(20))
		for _, x := range []*crowd.Tally{kept, released} {
			x.Event(a, 0)
			x.Link(crowd.Sequence, a, b, 7)
		}
		if i%90 == 0 {
			if released.Buffered() == 0 {
				t.Error("the buffer has no room for the last pair")
			}
			if released.Release(); released.Buffered() != 0 || released.Different() == 0 {
				t.Errorf("room for %d pairs and %d different ones after a release", released.Buffered(), released.Different())
			}
		}
	}
	name := func(o uint32) string { return fmt.Sprintf("%02d", o) }
	if diff := cmp.Diff(kept.Cut(10, name), released.Cut(10, name)); diff != "" || kept.Buffered() != 0 {
		t.Errorf("room for %d pairs after the cut (-kept +released):\n%s", kept.Buffered(), diff)
	}
}

// The numbers of objects need not sort as their ids do.
func TestCutIsByObjectID(t *testing.T) {
	cut := func(number, id func(o uint32) uint32) []crowd.Partial {
		tally := crowd.NewTally(0, math.Inf(1))
		r := rand.New(rand.NewPCG(3, 3))
		for range 2000 {
			a, b := uint32(r.IntN(40)), uint32(r.IntN(40))
			tally.Event(number(a), 0)
			tally.Event(number(b), 0)
			tally.Link(crowd.Together, number(a), number(b), 3)
		}
		return tally.Cut(10, func(o uint32) string { return fmt.Sprintf("%02d", id(o)) })
	}
	same, other := func(o uint32) uint32 { return o }, func(o uint32) uint32 { return (o*7 + 3) % 40 }
	back := func(o uint32) uint32 { return (o + 37) * 23 % 40 } // 7 x 23 = 4 x 40 + 1
	if diff := cmp.Diff(cut(same, same), cut(other, back)); diff != "" {
		t.Errorf("parts (-sorted numbers +others):\n%s", diff)
	}
}
