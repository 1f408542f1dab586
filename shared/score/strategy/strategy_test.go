package strategy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// valid draws strategies within all limits, with awkward names.
func valid(t *rapid.T) strategy.Strategy {
	name := rapid.StringN(1, 8, strategy.MaxName)
	score := rapid.IntRange(0, strategy.MaxScore)
	s := strategy.Strategy{PersonalizationImpact: rapid.IntRange(0, strategy.MaxImpact).Draw(t, "impact")}
	for _, n := range rapid.SliceOfNDistinct(name, 0, 5, rapid.ID).Draw(t, "events") {
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{
			EventName: n,
			EventType: rapid.SampledFrom([]event.Type{event.View, event.Click, event.Conversion}).Draw(t, "type"),
			Score:     score.Draw(t, "points"),
		})
	}
	for _, n := range rapid.SliceOfNDistinct(name, 0, 5, rapid.ID).Draw(t, "facets") {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: n, Score: score.Draw(t, "weight")})
	}
	s.HalfLives = rapid.SliceOfNDistinct(anyHalfLife(false), 0, strategy.MaxHalfLives, strategy.HalfLife.Millis).Draw(t, "half-lives")
	// "from" and "to" differ by their first letter, so no chain can arise.
	from := rapid.Map(name, func(n string) string { return "<" + n })
	to := rapid.Map(name, func(n string) string { return ">" + n })
	s.Aliases = rapid.MapOfN(name, rapid.MapOfN(from, to, 0, 3), 0, 3).Draw(t, "aliases")
	for facet, pairs := range s.Aliases {
		for from, to := range pairs {
			if len(from) > strategy.MaxName || len(to) > strategy.MaxName {
				delete(s.Aliases[facet], from)
			}
		}
	}
	if rapid.Bool().Draw(t, "ignores") {
		s.IgnoredValues = rapid.SliceOfN(name, 0, 3).Draw(t, "ignored")
	}
	s.AllowedValues = rapid.MapOfN(name, rapid.Map(rapid.SliceOfN(name, 0, 3), func(values []string) strategy.ValueSet {
		return strategy.SetOf(values...)
	}), 0, 3).Draw(t, "allowed")
	s.Ranking = anyRanking(t)
	s.Placements = map[string]*strategy.Ranking{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"home", "cart", "é \"n"}), 0, 2, rapid.ID).Draw(t, "placements") {
		r := anyRanking(t)
		if r == nil {
			r = &strategy.Ranking{}
		}
		if r.Popularity != nil {
			r.Popularity.HalfLife = strategy.HalfLife{}
		}
		s.Placements[name] = r
	}
	return s
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := valid(t)
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("marshal: %v", err)
		}
		got, err := strategy.Decode(b)
		if err != nil {
			t.Fatalf("decode %s: %v", b, err)
		}
		if !got.Equal(s) || !s.Equal(got) {
			t.Fatalf("set %+v\ngot %+v", s, got)
		}
		again, err := json.Marshal(got)
		if err != nil || string(again) != string(b) {
			t.Fatalf("bytes differ (%v):\n%s\n%s", err, b, again)
		}
	})
}

func TestMarshalZero(t *testing.T) {
	b, err := json.Marshal(strategy.Strategy{})
	if want := `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v; want %s", b, err, want)
	}
}

func TestEqual(t *testing.T) {
	base := func() strategy.Strategy {
		return strategy.Strategy{
			EventsScoring:         []strategy.EventScore{{EventName: "a", EventType: event.View, Score: 1}, {EventName: "b", EventType: event.View, Score: 1}},
			FacetsScoring:         []strategy.FacetScore{{FacetName: "color", Score: 1}, {FacetName: "brand", Score: 1}},
			PersonalizationImpact: 5,
			HalfLives:             strategy.InDays(30, 180),
			Aliases:               map[string]map[string]string{"color": {"Rouge": "Red"}},
			AllowedValues:         map[string]strategy.ValueSet{"tags": strategy.SetOf("a", "b")},
		}
	}
	tests := map[string]struct {
		change func(s *strategy.Strategy)
		equal  bool
	}{
		"nothing":              {func(*strategy.Strategy) {}, true},
		"an empty alias facet": {func(s *strategy.Strategy) { s.Aliases["brand"] = nil }, true},
		"event score":          {func(s *strategy.Strategy) { s.EventsScoring[1].Score = 2 }, false},
		"event type":           {func(s *strategy.Strategy) { s.EventsScoring[1].EventType = event.Click }, false},
		"event order": {func(s *strategy.Strategy) {
			s.EventsScoring[0], s.EventsScoring[1] = s.EventsScoring[1], s.EventsScoring[0]
		}, false},
		"facet order": {func(s *strategy.Strategy) {
			s.FacetsScoring[0], s.FacetsScoring[1] = s.FacetsScoring[1], s.FacetsScoring[0]
		}, false},
		"facet score":                     {func(s *strategy.Strategy) { s.FacetsScoring[0].Score = 2 }, false},
		"impact":                          {func(s *strategy.Strategy) { s.PersonalizationImpact = 6 }, false},
		"half-life order":                 {func(s *strategy.Strategy) { s.HalfLives = strategy.InDays(180, 30) }, false},
		"no half-lives":                   {func(s *strategy.Strategy) { s.HalfLives = nil }, false},
		"alias target":                    {func(s *strategy.Strategy) { s.Aliases["color"]["Rouge"] = "red" }, false},
		"empty ranking":                   {func(s *strategy.Strategy) { s.Ranking = &strategy.Ranking{Session: &strategy.SessionRanking{}} }, true},
		"a placement":                     {func(s *strategy.Strategy) { s.Placements = map[string]*strategy.Ranking{"home": {}} }, false},
		"no placements":                   {func(s *strategy.Strategy) { s.Placements = map[string]*strategy.Ranking{} }, true},
		"an empty list of allowed values": {func(s *strategy.Strategy) { s.AllowedValues["brand"] = nil }, true},
		"an allowed value more":           {func(s *strategy.Strategy) { s.AllowedValues["tags"]["c"] = struct{}{} }, false},
		"no allowed values":               {func(s *strategy.Strategy) { s.AllowedValues = nil }, false},
		"nothing is ignored":              {func(s *strategy.Strategy) { s.IgnoredValues = []string{} }, false},
		"a value is ignored":              {func(s *strategy.Strategy) { s.IgnoredValues = []string{"N/A"} }, false},
		"alias added":                     {func(s *strategy.Strategy) { s.Aliases["brand"] = map[string]string{"a": "b"} }, false},
	}
	for name, ranking := range map[string]strategy.Ranking{
		"a weight":   {Pairs: &strategy.PairsRanking{Weight: new(int)}},
		"a contrast": {Contrast: strategy.ContrastNone},
		"its text":   {Popularity: &strategy.PopularityRanking{HalfLife: halfLife(t, "30d")}},
	} {
		change := func(s *strategy.Strategy) { s.Ranking = &ranking }
		tests["ranking: "+name] = struct {
			change func(s *strategy.Strategy)
			equal  bool
		}{change, false}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := base()
			test.change(&changed)
			if got := base().Equal(changed); got != test.equal {
				t.Errorf("got %v, want %v", got, test.equal)
			}
			if got := changed.Equal(base()); got != test.equal {
				t.Errorf("the other way round: got %v, want %v", got, test.equal)
			}
		})
	}
	empty := strategy.Strategy{EventsScoring: []strategy.EventScore{}, HalfLives: strategy.InDays(), Aliases: map[string]map[string]string{"a": {}}}
	if !empty.Equal(strategy.Strategy{}) {
		t.Error("empty lists differ from nil ones")
	}
}

func TestLookups(t *testing.T) {
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: event.Conversion, Score: 50}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 7}},
		Aliases:       map[string]map[string]string{"color": {"Rouge": "Red"}},
	}
	for name, test := range map[string]struct{ got, want any }{
		"event":               {s.EventScore(event.Conversion, "Bought"), 50},
		"event of other type": {s.EventScore(event.View, "Bought"), 0},
		"event of other name": {s.EventScore(event.Conversion, "bought"), 0},
		"facet":               {s.FacetScore("color"), 7},
		"facet not named":     {s.FacetScore("brand"), 0},
		"alias":               {s.Alias("color", "Rouge"), "Red"},
		"no alias":            {s.Alias("color", "Red"), "Red"},
		"alias of other":      {s.Alias("brand", "Rouge"), "Rouge"},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}

func TestValidateRefusesInvalidUTF8(t *testing.T) {
	s := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "caf\xe9"}}}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "facetsScoring[0].facetName must be valid UTF-8") {
		t.Errorf("got %v", err)
	}
}
