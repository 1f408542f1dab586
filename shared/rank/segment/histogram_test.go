package segment_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/segment"
)

// A histogram over parts and single scores equals what all scores, sorted, say.
func TestHistogram(t *testing.T) {
	for _, texts := range [][]string{nil, {"30", "12h"}, {"7d"}} {
		w := generate(rand.New(rand.NewPCG(9, 9)), halfLives(t, texts...), 4_000, 5)
		p := segment.NewPacker(w.scoring(), 0)
		parts := []packed{pack(t, p, w, w.users[:2_500], false, t0), pack(t, p, w, w.users[2_500:], false, t0+3*minute), {}}
		at := t0 + 12*day + 12_345
		profiles := w.at(at)
		for n := range max(1, len(texts)) {
			where := `{"filter":"brand:v1"}`
			if len(texts) > 0 {
				where = withHalfLife(where, texts[n])
			}
			q := compile(t, where, w.halfLives)
			h := segment.NewHistogram(q.Terms[0], at)
			out := &segment.Set{}
			var scores []float64
			for i, part := range parts[:2] {
				for ordinal, user := range part.users {
					score, ok := q.Holds(profiles[user])
					if ok {
						scores = append(scores, score)
					}
					if i == 0 && ordinal%10 == 0 {
						out.Add(uint16(ordinal))
						if ok {
							h.AddScore(score)
						}
					}
				}
				if err := h.AddPart(part.Part, part.read(t, q.Terms[0], segment.NoOrder), out); err != nil {
					t.Fatal(err)
				}
				out = nil
			}
			compareHistogram(t, h.Summary(), scores)
		}
	}
}

func compareHistogram(t *testing.T, s segment.Summary, scores []float64) {
	t.Helper()
	slices.Sort(scores)
	sum := 0.0
	for _, score := range scores {
		sum += score
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-10*want {
			t.Errorf("%s %v, want %v", what, got, want)
		}
	}
	at := func(share int) float64 { return scores[(len(scores)*share+99)/100-1] }
	if s.Users != len(scores) || s.Users == 0 {
		t.Fatalf("%d users, want %d", s.Users, len(scores))
	}
	near("mean", s.Mean, sum/float64(len(scores)))
	near("p10", s.P10, at(10))
	near("p50", s.P50, at(50))
	near("p90", s.P90, at(90))
	near("p99", s.P99, at(99))
	users := 0
	for i, b := range s.Buckets {
		want := 0
		for _, score := range scores {
			if score >= b.From*(1-1e-11) && score < b.To*(1-1e-11) {
				want++
			}
		}
		if b.Users != want || i > 0 && b.From != s.Buckets[i-1].To {
			t.Errorf("bucket %v to %v: %d users, want %d", b.From, b.To, b.Users, want)
		}
		users += b.Users
	}
	if users != len(scores) {
		t.Errorf("the buckets have %d users, want %d", users, len(scores))
	}
}

func TestEmptyHistogram(t *testing.T) {
	if s := segment.NewHistogram(segment.Term{}, t0).Summary(); s.Users != 0 || len(s.Buckets) != 0 {
		t.Errorf("%+v", s)
	}
}
