package affinity

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestExp2Neg(t *testing.T) {
	if exp2Neg(0) != 1 || exp2Neg(1) != 0.5 || exp2Neg(1000) != math.Exp2(-1000) || exp2Neg(math.Inf(1)) != 0 {
		t.Error("whole halvings are not exact")
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64Range(0, 20), rapid.Float64Range(0, 1100)).Draw(t, "x")
		if got, want := exp2Neg(x), math.Exp2(-x); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("2^-%v is %v, want %v", x, got, want)
		}
	})
}

func oneEvent(values ...string) Event {
	e := Event{Time: 1, Type: "view", Name: "a"}
	for _, v := range values {
		e.Counts = append(e.Counts, Count{Facet: "f", Value: v, N: 1})
	}
	return e
}

var oneFacet = Compile(strategy.Strategy{
	EventsScoring: []strategy.EventScore{{EventName: "a", EventType: "view", Score: 1}},
	FacetsScoring: []strategy.FacetScore{{FacetName: "f", Score: 1}},
}).Within(Bounds{})

// TestScorerBoundsWhatItKeeps gives users values that nobody had before, many
// or long, and then none.
func TestScorerBoundsWhatItKeeps(t *testing.T) {
	const each = 9_000
	for name, value := range map[string]string{"many": "", "long": strings.Repeat("x", 2_000)} {
		t.Run(name, func(t *testing.T) {
			w := Window{Now: 1}
			sc := NewScorer(oneFacet, w)
			for user := range 10 {
				sc.Reset(w)
				for i := range each {
					sc.AddEvent(oneEvent(fmt.Sprint(value, user, " ", i)))
				}
			}
			if n := len(sc.Profile().Affinities); n != each {
				t.Errorf("%d affinities, want %d", n, each)
			}
			if n := len(sc.tables[0].entries); n > maxKept+each {
				t.Errorf("%d values kept", n)
			}
			if n := sc.names.size; n > maxKeptBytes+each*2_020 {
				t.Errorf("%d bytes of values kept", n)
			}
			sc.Reset(w)
			if n := len(sc.Profile().Affinities); n != 0 {
				t.Errorf("a user without events has %d affinities", n)
			}
		})
	}
}

// TestUserNumberWrapsAround has the numbers of users go round.
func TestUserNumberWrapsAround(t *testing.T) {
	w := Window{Now: 1}
	sc := NewScorer(oneFacet, w)
	sc.AddEvent(oneEvent("first"))
	sc.user = math.MaxUint32
	sc.Reset(w)
	sc.AddEvent(oneEvent("second"))
	p := sc.Profile()
	if len(p.Affinities) != 1 || p.Affinities[0].Value != "second" || p.Affinities[0].Scores[0] != 1 {
		t.Errorf("got %+v", p.Affinities)
	}
}

func TestArenaCopies(t *testing.T) {
	var a arena
	var kept, want []string
	for i := range 3_000 {
		b := []byte(strings.Repeat(fmt.Sprint(i), i%40+1) + strings.Repeat("y", i/2_900*i))
		want = append(want, string(b))
		kept = append(kept, a.keep(b))
		clear(b)
	}
	for i := range kept {
		if kept[i] != want[i] {
			t.Fatalf("%d is %q, want %q", i, kept[i], want[i])
		}
	}
	if a.size != len(strings.Join(want, "")) {
		t.Errorf("counted %d bytes", a.size)
	}
}

// TestCollidingValuesAreDistinct has values whose hashes meet, as any may, and that
// differ only in their ends or lengths.
func TestCollidingValuesAreDistinct(t *testing.T) {
	for _, pair := range [][2]string{{"v", "v\x00"}, {"sixteen letters, a", "sixteen letters, b"}, {"sixteen letters.", "sixteen letters.."}} {
		sc := NewScorer(oneFacet, Window{Now: 1})
		a, b := []byte(pair[0]), []byte(pair[1])
		head := readWords(b, 0, len(b))
		first := sc.enter(0, hash(head, b), readWords(a, 0, len(a)), a)
		if got := sc.lookup(0, b, 0, len(b)); got == first {
			t.Errorf("%q found as %q", b, a)
		}
	}
}

// TestWordsStopAtTheEnd reads values with and without something after them.
func TestWordsStopAtTheEnd(t *testing.T) {
	b := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	for start := range b {
		for end := start; end <= len(b); end++ {
			var want [inWords]byte
			copy(want[:], b[start:end])
			w := words{binary.LittleEndian.Uint64(want[:]), binary.LittleEndian.Uint64(want[8:])}
			if got := readWords(b, start, end); got != w {
				t.Fatalf("%q: got %x, want %x", b[start:end], got, w)
			}
		}
	}
}
