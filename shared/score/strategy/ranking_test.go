package strategy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// anyHalfLife draws half-lives in every form.
func anyHalfLife(events bool) *rapid.Generator[strategy.HalfLife] {
	return rapid.Custom(func(t *rapid.T) strategy.HalfLife {
		forms := []string{"", "d", "h", "m"}
		if events {
			forms = append(forms, "e")
		}
		most := map[string]int{"": 3650, "d": 3650, "h": 3650 * 24, "m": 3650 * 24 * 60, "e": 500}
		unit := rapid.SampledFrom(forms).Draw(t, "unit")
		n := rapid.IntRange(1, most[unit]).Draw(t, "n")
		if unit == "e" {
			return strategy.Events(float64(n) / 10)
		}
		h, err := strategy.ParseHalfLife(fmt.Sprint(n, unit))
		must.Succeed(t, err)
		return h
	})
}

// anyRanking draws rankings with any of their keys absent.
func anyRanking(t *rapid.T) *strategy.Ranking {
	maybe := func() bool { return rapid.Bool().Draw(t, "given") }
	weight := func() *int {
		if !maybe() {
			return nil
		}
		n := rapid.IntRange(0, strategy.MaxWeight).Draw(t, "weight")
		return &n
	}
	halfLife := func(events bool) strategy.HalfLife {
		if !maybe() {
			return strategy.HalfLife{}
		}
		return anyHalfLife(events).Draw(t, "half-life")
	}
	if !maybe() {
		return nil
	}
	r := &strategy.Ranking{Contrast: rapid.SampledFrom([]strategy.Contrast{"", "none", "idf"}).Draw(t, "contrast")}
	if maybe() {
		r.Session = &strategy.SessionRanking{HalfLife: halfLife(true), Weight: weight()}
	}
	if maybe() {
		r.Popularity = &strategy.PopularityRanking{HalfLife: halfLife(false), Weight: weight()}
	}
	if maybe() {
		r.Pairs = &strategy.PairsRanking{Weight: weight()}
	}
	if maybe() {
		r.Sequence = &strategy.PairsRanking{Weight: weight()}
	}
	if maybe() {
		r.Neighbours = &strategy.PairsRanking{Weight: weight()}
	}
	if maybe() {
		attribute := rapid.OneOf(rapid.Just(""), rapid.StringN(1, 8, strategy.MaxName)).Draw(t, "attribute")
		r.Freshness = &strategy.FreshnessRanking{Attribute: attribute, HalfLife: halfLife(false), Weight: weight()}
	}
	return r
}

func TestAbsentRankingKeysHaveDefaults(t *testing.T) {
	defaults := strategy.DefaultRanking()
	if got := (strategy.Strategy{}).RankingOrDefault(); got != defaults {
		t.Errorf("no ranking: %+v, want the defaults", got)
	}
	decoded := func(ranking string) strategy.FullRanking {
		s, err := strategy.Decode([]byte(`{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0,"ranking":` + ranking + `}`))
		if err != nil {
			t.Fatalf("%s: %v", ranking, err)
		}
		return s.RankingOrDefault()
	}
	for ranking, change := range map[string]func(*strategy.FullRanking){
		`{}`:                                    func(*strategy.FullRanking) {},
		`null`:                                  func(*strategy.FullRanking) {},
		`{"session":{},"pairs":null}`:           func(*strategy.FullRanking) {},
		`{"contrast":"none"}`:                   func(r *strategy.FullRanking) { r.Contrast = strategy.ContrastNone },
		`{"session":{"weight":0}}`:              func(r *strategy.FullRanking) { r.Session.Weight = 0 },
		`{"session":{"halfLife":"0.5e"}}`:       func(r *strategy.FullRanking) { r.Session.HalfLife = strategy.Events(0.5) },
		`{"popularity":{"weight":7}}`:           func(r *strategy.FullRanking) { r.Popularity.Weight = 7 },
		`{"popularity":{"halfLife":3}}`:         func(r *strategy.FullRanking) { r.Popularity.HalfLife = strategy.Days(3) },
		`{"pairs":{"weight":0}}`:                func(r *strategy.FullRanking) { r.Pairs.Weight = 0 },
		`{"sequence":{"weight":500}}`:           func(r *strategy.FullRanking) { r.Sequence.Weight = 500 },
		`{"neighbours":{"weight":1}}`:           func(r *strategy.FullRanking) { r.Neighbours.Weight = 1 },
		`{"freshness":{"attribute":"date"}}`:    func(r *strategy.FullRanking) { r.Freshness.Attribute = "date" },
		`{"freshness":{"weight":100}}`:          func(r *strategy.FullRanking) { r.Freshness.Weight = 100 },
		`{"freshness":{"halfLife":"12h"}}`:      func(r *strategy.FullRanking) { r.Freshness.HalfLife = halfLife(t, "12h") },
		`{"session":{"halfLife":"45m"}}`:        func(r *strategy.FullRanking) { r.Session.HalfLife = halfLife(t, "45m") },
		`{"pairs":{"weight":3},"session":null}`: func(r *strategy.FullRanking) { r.Pairs.Weight = 3 },
	} {
		want := defaults
		change(&want)
		if got := decoded(ranking); got != want {
			t.Errorf("%s: %+v, want %+v", ranking, got, want)
		}
	}
}

func TestPlainRankingWeighsNothing(t *testing.T) {
	s := strategy.Strategy{Ranking: strategy.PlainRanking()}
	must.Succeed(t, s.Validate())
	r := s.RankingOrDefault()
	if r.Contrast != strategy.ContrastNone || r.Session.Weight != 0 || r.Popularity.Weight != 0 || r.Freshness.Weight != 0 || r.Links() != [3]int{} {
		t.Errorf("plain ranking = %+v", r)
	}
}

func TestFullRankingGivesEveryKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := strategy.Strategy{Ranking: anyRanking(t)}.RankingOrDefault()
		s := strategy.Strategy{Ranking: full.Ranking()}
		must.Succeed(t, s.Validate())
		if got := s.RankingOrDefault(); got != full {
			t.Fatalf("got %+v, want %+v", got, full)
		}
		var missing func(path string, v reflect.Value)
		missing = func(path string, v reflect.Value) {
			if v.IsZero() && v.Kind() != reflect.Int {
				t.Fatalf("%s is absent in the ranking of %+v", path, full)
			}
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			if v.Kind() == reflect.Struct && !strings.HasSuffix(path, "HalfLife") {
				for i := range v.NumField() {
					missing(path+"."+v.Type().Field(i).Name, v.Field(i))
				}
			}
		}
		missing("ranking", reflect.ValueOf(s.Ranking))
	})
}
