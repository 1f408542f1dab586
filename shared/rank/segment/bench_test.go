package segment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// crowd returns stored profiles of some 78 affinities, 20 to 200, with 28,000 values of 6 facets:
// the first value of a facet is held by nearly all users, the 300th by a thirtieth.
func crowd(users int, halfLives []strategy.HalfLife) [][]byte {
	r := rand.New(rand.NewPCG(4, 4))
	zipf := rand.NewZipf(r, 1.05, 8, 4_700)
	all := make([][]byte, users)
	for i := range all {
		p := affinity.Profile{
			StrategyVersion: 3, RetentionDays: 90, Known: true, HalfLives: halfLives,
			Anchor: t0 - r.Int64N(30*day), Until: t0 + r.Int64N(90*day),
		}
		n := int(20 * math.Pow(10, r.Float64()))
		seen := map[event.Filter]bool{}
		for len(seen) < n {
			f := event.Filter{Facet: fmt.Sprintf("facet.%d", r.IntN(6)), Value: fmt.Sprintf("value %d", zipf.Uint64())}
			if seen[f] {
				continue
			}
			seen[f] = true
			a := affinity.Affinity{Facet: f.Facet, Value: f.Value}
			for range max(1, len(halfLives)) {
				a.Scores = append(a.Scores, math.Exp(r.NormFloat64()*1.5+3))
			}
			p.Affinities = append(p.Affinities, a)
		}
		p.Total = n
		all[i] = p.AppendBinary(nil)
	}
	return all
}

// BenchmarkPack packs parts at their bounds: bytes of stored profiles to rows. It reports the time of
// an affinity and the bytes that its postings take.
func BenchmarkPack(b *testing.B) {
	for _, texts := range [][]string{{"30"}, {"30", "180", "360"}} {
		b.Run(fmt.Sprint(len(texts), " half-lives"), func(b *testing.B) {
			h := halfLives(b, texts...)
			profiles := crowd(5_000, h)
			p := segment.NewPacker(segment.Scoring{Version: 3, RetentionDays: 90, HalfLives: h}, 0)
			affinities, users, size := 0, 0, 0
			for b.Loop() {
				p.Begin(1, false, t0)
				for i := 0; !p.Full(); i++ {
					must.Succeed(b, p.Add(fmt.Sprintf("user-%08d", i), profiles[i%len(profiles)]))
				}
				part, err := p.Finish(t0, func(row segment.Row) error {
					for _, c := range row.Cells {
						size += len(c.Value) + len(c.Column)
					}
					return nil
				})
				must.Succeed(b, err)
				affinities, users = affinities+part.Affinities, users+part.Users
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(affinities), "ns/affinity")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(users)/1e3, "us/user")
			b.ReportMetric(float64(size)/float64(affinities), "bytes/affinity")
		})
	}
}

// holders packs parts in which so many users hold one filter, with scores around exp(3).
func holders(tb testing.TB, n int) []packed {
	p := segment.NewPacker(segment.Scoring{Version: 3, RetentionDays: 90, HalfLives: halfLives(tb, "30")}, 0)
	r := rand.New(rand.NewPCG(5, 5))
	var parts []packed
	for from := 0; from < n; from += segment.MaxUsers {
		p.Begin(segment.PartID(from), false, t0)
		for i := from; i < min(n, from+segment.MaxUsers); i++ {
			profile := affinity.Profile{StrategyVersion: 3, RetentionDays: 90, Known: true, HalfLives: halfLives(tb, "30"), Anchor: t0, Until: math.MaxInt64, Total: 1}
			profile.Affinities = []affinity.Affinity{{Facet: "brand", Value: "v0", Scores: []float64{math.Exp(r.NormFloat64()*1.5 + 3)}}}
			must.Succeed(tb, p.Add(fmt.Sprintf("user-%08d", i), profile.AppendBinary(nil)))
		}
		parts = append(parts, finish(tb, p, t0))
	}
	return parts
}

// thresholds are scores that all, half and a tenth of the holders are above.
var thresholds = []struct {
	name  string
	above float64
}{{"0", 0}, {"median", math.Exp(3)}, {"p90", math.Exp(3 + 1.5*1.2816)}}

// BenchmarkPage scans lists in memory for a page of 100 users with its exact total.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{1_000, 30_000, 130_000, 500_000} {
		parts := holders(b, n)
		for _, threshold := range thresholds {
			b.Run(fmt.Sprintf("%d holders above %s", n, threshold.name), func(b *testing.B) {
				q := compile(b, fmt.Sprintf(`{"filter":"brand:v0","above":%v}`, threshold.above), halfLives(b, "30"))
				cells := make([][]segment.Cell, len(parts))
				size := 0
				for i, p := range parts {
					cells[i] = p.read(b, q.Terms[0], q.Lists(0, t0+day))
					for _, c := range cells[i] {
						size += len(c.Value)
					}
				}
				for b.Loop() {
					hits := make([][]segment.Hit, len(parts))
					described := make([]segment.Part, len(parts))
					for i, p := range parts {
						f, err := q.Scan(segment.Input{Part: p.Part, Lists: [][]segment.Cell{cells[i]}}, t0+day, 100)
						must.Succeed(b, err)
						hits[i], described[i] = f.Hits, p.Part
					}
					segment.Candidates(described, hits, nil, 100)
				}
				b.ReportMetric(float64(size)/1e3, "kB")
			})
		}
	}
}

// BenchmarkHistogram counts the scores of 100,000 holders.
func BenchmarkHistogram(b *testing.B) {
	parts := holders(b, 100_000)
	q := compile(b, `{"filter":"brand:v0"}`, halfLives(b, "30"))
	for b.Loop() {
		h := segment.NewHistogram(q.Terms[0], t0+day)
		for _, p := range parts {
			must.Succeed(b, h.AddPart(p.Part, p.read(b, q.Terms[0], segment.NoOrder), nil))
		}
		if s := h.Summary(); s.Users != 100_000 {
			b.Fatalf("%d users", s.Users)
		}
	}
}
