package view

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// The answer is byte for byte what package json makes of the documented type.
func TestAppendedIsEncoded(t *testing.T) {
	texts := []string{"", "red", "b\"l\\ue", "a<b>&c", "\x00\x1f\x7f\t", "grün", "日本", "\u2028", "\xff\xfe", "\ufffd", strings.Repeat("x", 300)}
	scores := []float64{0, 1, 0.1, 1e-6, 9.99e-7, 5e-324, 1e20, 1e21, math.MaxFloat64, 123456.789, 1.0 / 3}
	var halfLives []strategy.HalfLife
	for _, text := range []string{"30", "12h", "7", "45m"} {
		h, err := strategy.ParseHalfLife(text)
		must.Succeed(t, err)
		halfLives = append(halfLives, h)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		r := profile.Result{Stored: rnd.IntN(2) == 0, App: config.App{StrategyVersion: rnd.Int64N(3), ScoringVersion: rnd.Int64N(3)}}
		r.LastEventAt, r.Anchor, r.Total = rnd.Int64N(4e12), rnd.Int64N(4e12), rnd.IntN(2000)
		r.HalfLives = halfLives[:rnd.IntN(len(halfLives)+1)]
		for range rnd.IntN(5) {
			a := affinity.Affinity{Facet: texts[rnd.IntN(len(texts))], Value: texts[rnd.IntN(len(texts))]}
			for range max(1, len(r.HalfLives)) {
				a.Scores = append(a.Scores, scores[rnd.IntN(len(scores))])
			}
			r.Affinities = append(r.Affinities, a)
		}
		var by strategy.HalfLife
		if n := len(r.HalfLives); n > 0 {
			by = r.HalfLives[rnd.IntN(n)]
		}
		user, limit := texts[rnd.IntN(len(texts))], 1+rnd.IntN(5)
		got, err := Append([]byte("x"), user, r, limit, by)
		must.Succeed(t, err)
		want, err := json.Marshal(view(user, r, limit, by))
		must.Succeed(t, err)
		if string(got) != "x"+string(want) {
			t.Fatalf("got  %s\nwant x%s", got, want)
		}
	}
}

// view is the answer for a profile that is sorted already.
func view(user string, r profile.Result, limit int, by strategy.HalfLife) api.Profile {
	v := api.Profile{
		UserToken: user, LastEventAt: api.AtMillis(r.LastEventAt), AsOf: api.AtMillis(r.Anchor), StrategyVersion: r.App.StrategyVersion,
		Source: api.SourceComputed, Total: r.Total, Truncated: r.Truncated(), Affinities: []api.Affinity{},
	}
	if r.Stored {
		v.Source = api.SourceStored
	}
	if r.App.ScoringVersion != r.App.StrategyVersion {
		v.ScoringVersion = r.App.ScoringVersion
	}
	at := max(0, slices.IndexFunc(r.HalfLives, by.SameAs))
	for _, a := range r.Affinities[:min(limit, len(r.Affinities))] {
		one := api.Affinity{Facet: a.Facet, Operator: event.Operator, Value: a.Value, Score: a.Scores[at]}
		for i, h := range r.HalfLives {
			if one.Scores == nil {
				one.Scores = map[string]float64{}
			}
			one.Scores[h.String()] = a.Scores[i]
		}
		v.Affinities = append(v.Affinities, one)
	}
	return v
}
