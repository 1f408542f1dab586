package console

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

func TestInWords(t *testing.T) {
	affinity := func(facet, value string, score float64) api.Affinity {
		return api.Affinity{Facet: facet, Value: value, Score: score}
	}
	for _, test := range []struct {
		name string
		of   []api.Affinity
		want words
	}{
		{"nothing", nil, words{}},
		{"one value", []api.Affinity{affinity("brand", "Acme", 1)}, words{Mostly: []string{"Acme"}}},
		{"two values", []api.Affinity{affinity("brand", "A", 4), affinity("brand", "B", 3), affinity("brand", "C", 3), affinity("brand", "D", 2)},
			words{Mostly: []string{"A", "B"}}},
		{"no preference", []api.Affinity{affinity("brand", "A", 1), affinity("brand", "B", 1), affinity("brand", "C", 1), affinity("brand", "D", 1), affinity("brand", "E", 1)}, words{}},
		{"other facets", []api.Affinity{affinity("brand", "A", 9), affinity("color", "Blue", 2), affinity("color", "Red", 1), affinity("tag", "x", 1), affinity("tag", "y", 1),
			affinity("tag", "z", 1), affinity("tag", "q", 1)}, words{Mostly: []string{"A"}, Likes: []string{"Blue"}}},
	} {
		if got := inWords(byFacet("/u", api.Profile{Affinities: test.of}, "", "")); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestShellArg(t *testing.T) {
	for text, want := range map[string]string{
		"ann": "ann", "a b": "'a b'", "it's": `'it'\''s'`, "a\u202eb": `$'a\u202eb'`, "\x07'": `$'\u0007\''`, "": "''",
	} {
		if got := shellArg(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := userArg("-rf"); got != "-- -rf" {
		t.Error(got)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]string{"7": "7 days", "1": "1 day", "12h": "12 hours", "48h": "2 days", "45m": "45 minutes", "": ""} {
		if got := span(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReadable(t *testing.T) {
	got, err := readable([]byte("{\"a\":\"\u202e\U000e0001é\"}"))
	if want := "{\n  \"a\": \"\\u202e\\udb40\\udc01é\"\n}"; err != nil || got != want {
		t.Errorf("%q %v", got, err)
	}
}

// A chart covers at least two weeks and has at most 90 bars, in which nothing is lost.
func TestChart(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	if newChart(nil, now, nil, score) != nil {
		t.Error("a chart of nothing")
	}
	c := newChart([]point{{now.Add(-time.Hour), "view", 2}, {now.Add(time.Hour), "click", 1}, {now.Add(20 * time.Hour), "click", 1}}, now, []string{"7", "12h", "?"}, score)
	if c.Step != 1 || len(c.Bars) != 3 || len(c.Curves) != 2 || c.Most != "3" || c.From.Format("2 Jan") != "14 Nov" || c.To.Format("2 Jan") != "27 Nov" {
		t.Errorf("%+v", c)
	}
	for _, b := range c.Bars {
		if strings.Contains(b.X+b.Y+b.W+b.High, "-") || strings.Contains(b.X, "NaN") {
			t.Errorf("%+v", b)
		}
	}
	years := newChart([]point{{now.AddDate(-5, 0, 0), "view", 1}, {now, "conversion", 1}}, now, nil, score)
	if years.Step != 21 || len(years.Bars) != 2 || years.Bars[0].X == years.Bars[1].X {
		t.Errorf("%+v", years)
	}
}

// A damaged profile is that of the user who has it.
func TestCompareWithADamagedProfile(t *testing.T) {
	for _, damaged := range []string{"ann", "bob"} {
		h := engineOf(t, func(*http.Request) (int, any) {
			other := map[string]string{"ann": "bob", "bob": "ann"}[damaged]
			return http.StatusOK, api.Profiles{Profiles: []api.Profile{{UserToken: other}}, Faulty: []string{damaged}}
		})
		cookie, _ := h.login(testKey)
		w := h.do("GET", "/console/users/ann/compare?with=bob", "", as(cookie))
		if page := w.Body.String(); w.Code != http.StatusInternalServerError || !strings.Contains(page, "The profile of "+damaged+" cannot be read") || !strings.Contains(page, "damaged") || strings.Contains(page, "has no profile") {
			t.Errorf("%s: %d: %s", damaged, w.Code, page)
		}
	}
}
