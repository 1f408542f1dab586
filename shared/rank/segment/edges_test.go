package segment_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/segment"
)

// edges draws a score on an edge between buckets, beside one, or at the ends of what a
// score can be.
func edges(t *rapid.T) float64 {
	edge := rapid.SampledFrom([]float64{1, 2, 5}).Draw(t, "digit") * math.Pow10(rapid.IntRange(-12, 12).Draw(t, "power"))
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return math.Nextafter(edge, 0)
	case 1:
		return math.Nextafter(edge, math.Inf(1))
	case 2:
		return edge * (1 + rapid.Float64Range(-1e-10, 1e-10).Draw(t, "off"))
	case 3:
		return rapid.SampledFrom([]float64{2 * segment.Least, 1e-249, 1e200, math.MaxFloat64}).Draw(t, "extreme")
	}
	return edge
}

// A histogram counts every user in one bucket, and has at most 24 buckets, also where
// scores lie on the edges of buckets, at any instant before or after that of the scores.
func TestEachUserIsInOneBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := segment.Decay{}
		if !rapid.Bool().Draw(t, "plain") {
			d, _ = decays(t)
		}
		at := rapid.Int64Range(0, 3*t0).Draw(t, "at")
		h := segment.NewHistogram(segment.Term{Decay: d}, at)
		users := 0
		for range rapid.IntRange(1, 20).Draw(t, "users") {
			score := edges(t)
			// A user of an event ahead of the clock has the score as of later, and others
			// as of earlier.
			ahead := rapid.SampledFrom([]int64{0, 0, 1, 1_000, 2_000, 5 * minute, -1, -day}).Draw(t, "ahead")
			if score = d.Score(d.Order(score, at+ahead), at); score > segment.Least {
				users++
			}
			h.AddScore(score)
		}
		s := h.Summary()
		if s.Users != users {
			t.Fatalf("%d users, want %d", s.Users, users)
		}
		checkBuckets(t, s)
	})
}

// checkBuckets checks what holds for the buckets of any histogram.
func checkBuckets(t *rapid.T, s segment.Summary) {
	counted := 0
	for i, b := range s.Buckets {
		counted += b.Users
		if !(b.From < b.To) || i > 0 && b.From != s.Buckets[i-1].To {
			t.Fatalf("bucket %d is from %v to %v, after %+v", i, b.From, b.To, s.Buckets[max(i-1, 0)])
		}
	}
	if counted != s.Users || len(s.Buckets) > 24 {
		t.Fatalf("%d users in %d buckets, want %d in at most 24", counted, len(s.Buckets), s.Users)
	}
	if n := len(s.Buckets); n > 0 && (s.Buckets[n-1].Users == 0 || s.Buckets[0].Users == 0) {
		t.Fatalf("the first or the last bucket is empty: %+v", s.Buckets)
	}
}

// A score on an edge is in the bucket that begins there, under every half-life.
func TestScoreOnAnEdgeBeginsItsBucket(t *testing.T) {
	for _, text := range []string{"30", "12h", "7d", "1h", "365"} {
		d := segment.DecayOf(halfLives(t, text)[0])
		for power := -3; power < 10; power++ {
			for _, digit := range []float64{1, 2, 5} {
				for ms := range int64(200) {
					score, at := digit*math.Pow10(power), t0+ms*12_347
					h := segment.NewHistogram(segment.Term{Decay: d}, at)
					h.AddScore(score)
					if b := h.Summary().Buckets; len(b) != 1 || b[0].Users != 1 || b[0].From != score {
						t.Fatalf("half-life %s, score %v at %d: %+v", text, score, at, b)
					}
				}
			}
		}
	}
}
