package differ

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The model must not share a fault with the engine.
func TestModelImportsNothingOfTheEngine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		host, _, _ := strings.Cut(name, "/")
		if strings.Contains(host, ".") && !strings.HasSuffix(name, "/scripts/bench/differ") {
			t.Errorf("the campaign imports %s: it may import the standard library alone", name)
		}
	}
}

func hours(n int64) int64 { return n * hour }

func scoring(halfLives ...halfLife) rules {
	return rules{retention: 7 * day, strategy: strategy{
		Events: []eventScore{{"Seen", "view", 10}}, Facets: []facetScore{{"color", 3}, {"brand", 1}}, HalfLives: halfLives,
		Aliases: map[string]map[string]string{"color": {"red": "Red"}},
	}}
}

func seen(at int64, counts map[filter]int) *event {
	return &event{Type: "view", Name: "Seen", Time: at, counts: counts}
}

func TestProfileIsTheFormula(t *testing.T) {
	r := scoring(halfLife{"12h", float64(hours(12))}, halfLife{"1", float64(day)})
	red, lower := filter{"color", "Red"}, filter{"color", "red"}
	now := 100 * day
	p := r.profile([]*event{
		seen(now-hours(24), map[filter]int{red: 1, lower: 1}), // 2 x 10 x 3, a quarter and a half of it
		seen(now, map[filter]int{lower: 1}),
		seen(now-7*day, map[filter]int{red: 5}), // has just left the window
		{Type: "click", Name: "Seen", Time: now, counts: map[filter]int{red: 1}},
	}, now)
	if got, want := p.scores[red], []float64{45, 60}; !slices.Equal(got, want) || len(p.scores) != 1 {
		t.Errorf("scores %v, want %v", p.scores, want)
	}
	// The newest event is ahead: the profile is as of then.
	p = r.profile([]*event{seen(now+minute, map[filter]int{red: 1})}, now)
	if p.at != now+minute || p.scores[red][0] != 30 {
		t.Errorf("as of %d: %v, want %d and 30", p.at, p.scores, now+minute)
	}
}

func TestAboveIsExactWithoutDecay(t *testing.T) {
	sums, decayed := scoring(), scoring(halfLife{"1", float64(day)})
	for _, c := range []struct {
		r                *rules
		score, threshold float64
		want             truth
	}{
		{&sums, 100, 100, no}, {&sums, 100, 99, yes}, {&sums, 0, 0, no}, {&sums, 1, 0, yes},
		{&decayed, 100, 100, either}, {&decayed, 100 + 1e-6, 100, yes}, {&decayed, 100 - 1e-6, 100, no}, {&decayed, 0, 0, no},
	} {
		if got := c.r.above(c.score, c.threshold); got != c.want {
			t.Errorf("%v above %v: %v, want %v", c.score, c.threshold, got, c.want)
		}
	}
}

func TestDeletionCoversTimesAndReceipts(t *testing.T) {
	m := model{rules: scoring(), users: map[string]*user{}}
	u := m.user("ann")
	m.accept(u, event{Type: "view", Name: "Seen", Time: 1000, Filters: []filter{{"color", "Red"}}})
	u.delete(501) // received before: gone, though its time is later
	if len(u.all()) != 0 {
		t.Errorf("%d events count after the deletion", len(u.all()))
	}
	for _, at := range []int64{500, 501, 1000, 1000} {
		m.accept(u, event{Type: "view", Name: "Seen", Time: at, Filters: []filter{{"color", "Red"}}})
	}
	if len(u.all()) != 2 {
		t.Errorf("%d events count, want those of 501 and 1000", len(u.all()))
	}
}

func TestBandsOfRecords(t *testing.T) {
	i := index{facets: []string{"price"}, bands: map[string][]float64{"price": {0, 19.99}}}
	for value, want := range map[any]string{-0.5: "<0", 0.0: "0-19.99", "19.99": "19.99+", "1e1": "0-19.99", "ask us": "", "": "", 20.0: "19.99+"} {
		if got := i.text("price", value); got != want {
			t.Errorf("band of %v: %q, want %q", value, got, want)
		}
	}
}
