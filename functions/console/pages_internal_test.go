package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// A step of a slider reads no record again, and half a minute later records are read again.
func TestStepsReadNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTest(t)
		c, csrf := h.login(testKey)
		step := func(impact string) (read int) {
			h.asked = nil
			form := url.Values{"csrf": {csrf}, "user": {"ann"}, "index": {"products"}, "ids": {"a\nb"}, "impact": {impact}}
			if w := h.do("POST", "/console/simulator", form.Encode(), as(c), header("Hx-Request", "true")); w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, r := range h.asked {
				if strings.HasPrefix(r.URL.Path, "/1/indexes/") {
					read++
				}
			}
			return read
		}
		for i, want := range []int{2, 0, 0, 2} {
			if i == 3 {
				time.Sleep(productLife)
			}
			if got := step("50"); got != want {
				t.Errorf("step %d reads %d records, want %d", i, got, want)
			}
		}
	})
}

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

// A page shows pictures over TLS and those that a record holds, and lets only the page with pictures of other
// hosts load them.
func TestPictures(t *testing.T) {
	small := "data:image/svg+xml,%3Csvg%3E%3C/svg%3E"
	for text, want := range map[string]string{
		"https://cdn.shop.example/1.png?w=80": "https://cdn.shop.example/1.png?w=80", small: small, "data:image/png;base64,AAAA": "data:image/png;base64,AAAA",
		"http://cdn.shop.example/1.png": "", "javascript:alert(1)": "", "data:text/html,x": "", "//cdn.shop.example/1.png": "", "https://": "", "1.png": "",
		"https://user:secret@cdn.shop.example/": "", small + strings.Repeat("a", maxImage): "", "": "",
	} {
		record, err := json.Marshal(map[string]any{"name": "Shoe", "image": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := productOf("1", record).Image; string(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	h := newTest(t)
	c, _ := h.login(testKey)
	for path, want := range map[string]bool{"/": false, "/console/simulator?ids=a": true, "/console/users": false} {
		if got := strings.Contains(h.do("GET", path, "", as(c)).Header().Get("Content-Security-Policy"), "img-src 'self' data: https:;"); got != want {
			t.Errorf("%s may load pictures of other hosts: %v, want %v", path, got, want)
		}
	}
}

// A reason that all cards have explains no place.
func TestReasonsByDifference(t *testing.T) {
	popular, likes := simReason{"popular with many", "", 1}, simReason{"likes", "brand:Acme", 2}
	cards := []simCard{{Reasons: []simReason{likes, popular}}, {Reasons: []simReason{popular}}, {Reasons: []simReason{popular, {"new", "", 1}}}}
	byDifference(cards)
	if got := []int{len(cards[0].Reasons), len(cards[1].Reasons), len(cards[2].Reasons)}; !reflect.DeepEqual(got, []int{1, 0, 1}) || cards[0].Reasons[0] != likes {
		t.Errorf("reasons %+v", cards)
	}
	one := []simCard{{Reasons: []simReason{likes, popular, likes, likes}}}
	if byDifference(one); len(one[0].Reasons) != maxReasons {
		t.Errorf("a card alone has %d reasons", len(one[0].Reasons))
	}
}

// The worth of a strategy is its gain over the best list for everybody, within a category if a report has one.
func TestLastLift(t *testing.T) {
	results := []api.BacktestResult{{Name: "popularity"}, {Name: "pairs"}, {Name: "plain:version 2"}, {Name: "version 2"}}
	gain := func(ratio, low, high float64) []api.BacktestGain {
		return []api.BacktestGain{{Name: "plain:version 2", Over: "popularity", Ratio: 9, Low: 1, High: 1}, {Name: "version 2", Over: "popularity-recent", Ratio: ratio, Low: low, High: high}}
	}
	for _, test := range []struct {
		of   *api.Backtest
		want *lift
	}{
		{&api.Backtest{Cases: 9, Results: results, Gains: gain(2.5, 0.1, 0.3)},
			&lift{Percent: "+150 %", Good: true, Over: "the best sellers of late", Among: "in the whole catalog", Says: "more than chance", Cases: 9}},
		{&api.Backtest{Cases: 9, Results: results, Gains: gain(1.05, 0.1, 0.3), Within: &api.BacktestWithin{Facet: "category", Cases: 8, Results: results, Gains: gain(1.1, -0.1, 0.3)}},
			&lift{Percent: "+10 %", Over: "the best sellers of late", Among: "within category", Says: "may be chance", Cases: 8}},
		{&api.Backtest{Cases: 9, Results: results, Gains: gain(0.5, -0.3, -0.1)},
			&lift{Percent: "−50 %", Over: "the best sellers of late", Among: "in the whole catalog", Says: "worse, and not by chance", Cases: 9}},
		{&api.Backtest{Cases: 9, Results: results[:3], Gains: gain(2, 1, 1)}, nil},
		{&api.Backtest{Cases: 9, Results: results, Gains: gain(0, 1, 1)}, nil}, // the list was worth nothing
		{nil, nil},
	} {
		if got := lastLift(api.BacktestJob{Backtest: test.of}); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v, want %+v", got, test.want)
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

// A list of jobs that cannot be read is not an empty one: the page says so and asks again, and what
// it showed before stays.
func TestJobsThatCannotBeListed(t *testing.T) {
	for _, path := range []string{"/1/recomputes", "/1/crowd", "/1/reenrich", "/1/segments", "/1/backtests"} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError} {
			var fails atomic.Bool
			h := engineOf(t, func(r *http.Request) (int, any) {
				if fails.Load() && r.URL.Path == path {
					return status, api.Error{Status: status, Message: "Not now <b>"}
				}
				return http.StatusOK, struct{}{}
			})
			cookie, _ := h.login(testKey)
			live := header("Hx-Request", "true")
			page := h.do("GET", "/console/jobs", "", as(cookie)).Body.String()
			if strings.Contains(page, "cannot be listed") || strings.Contains(page, "hx-trigger") || !strings.Contains(page, "No job is running.") {
				t.Errorf("%s: nothing fails, and the page is %s", path, page)
			}
			fails.Store(true)
			if w := h.do("GET", "/console/jobs", "", as(cookie), live); w.Code != http.StatusNoContent {
				t.Errorf("%s fails with %d: the poll is answered %d: %s", path, status, w.Code, w.Body)
			}
			w := h.do("GET", "/console/jobs", "", as(cookie))
			if page := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(page, "Some jobs cannot be listed: Not now &lt;b&gt;.") || !strings.Contains(page, `hx-trigger="every 2s"`) ||
				strings.Contains(page, "No job ") {
				t.Errorf("%s fails with %d: the page is answered %d: %s", path, status, w.Code, page)
			}
			overview := h.do("GET", "/", "", as(cookie)).Body.String()
			if shown := strings.Contains(overview, "Some jobs cannot be listed: Not now &lt;b&gt;."); shown != (path == "/1/recomputes" || path == "/1/crowd") || shown && strings.Contains(overview, ">None.<") {
				t.Errorf("%s fails with %d: the overview is %s", path, status, overview)
			}
			fails.Store(false)
			if w := h.do("GET", "/console/jobs", "", as(cookie), live); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "hx-trigger") {
				t.Errorf("%s answers again: the poll is answered %d: %s", path, w.Code, w.Body)
			}
		}
	}
}

// What the keyboard reaches in the list has an id that stays when the list is replaced, by which
// htmx keeps the focus there.
func TestJobsKeepTheFocus(t *testing.T) {
	started := api.Time{Time: time.Now().Add(-time.Minute)}
	state := api.JobRunning
	h := engineOf(t, func(r *http.Request) (int, any) {
		switch r.URL.Path {
		case "/1/recomputes":
			return http.StatusOK, api.Recomputes{Recomputes: []api.Recompute{{ID: "1", State: api.JobRunning, StartedAt: started}}}
		case "/1/backtests":
			return http.StatusOK, api.Backtests{Backtests: []api.BacktestSummary{{ID: "1", State: state, StartedAt: started}}}
		case "/1/crowd":
			return http.StatusOK, api.Crowd{Builds: []api.CrowdBuild{{ID: "1", State: api.JobDone, StartedAt: started, FinishedAt: &started}}}
		}
		return http.StatusOK, struct{}{}
	})
	cookie, _ := h.login(testKey)
	reached := func() map[string]bool {
		t.Helper()
		list := h.do("GET", "/console/jobs", "", as(cookie), header("Hx-Request", "true")).Body.String()
		ids := map[string]bool{}
		for _, tag := range regexp.MustCompile(`<(?:a|button|summary|select|textarea)\b[^>]*>|<[^>]* tabindex="0"[^>]*>`).FindAllString(list, -1) {
			id := regexp.MustCompile(` id="([^"]+)"`).FindStringSubmatch(tag)
			if id == nil || ids[id[1]] {
				t.Errorf("%s has no id of its own, in %s", tag, list)
				continue
			}
			ids[id[1]] = true
		}
		return ids
	}
	running := reached()
	state = api.JobDone
	ended := reached()
	for _, id := range []string{"job-backtest-1", "cancel-recompute-1", "ended"} {
		if !running[id] || !ended[id] {
			t.Errorf("no %s among %v, then %v", id, running, ended)
		}
	}
}

// Jobs that the key may not see are no failure.
func TestJobsOfAnotherPermission(t *testing.T) {
	h := engineOf(t, func(r *http.Request) (int, any) {
		if r.URL.Path == "/1/crowd" {
			return http.StatusOK, struct{}{}
		}
		return http.StatusForbidden, api.Error{Status: http.StatusForbidden, Message: "No permission"}
	})
	cookie, _ := h.login(testKey)
	if page := h.do("GET", "/console/jobs", "", as(cookie)).Body.String(); strings.Contains(page, "cannot be listed") || strings.Contains(page, "hx-trigger") || !strings.Contains(page, "may not see all jobs") {
		t.Error(page)
	}
}

// The requests of an import are few, whatever its file holds.
func TestImportMakesFewRequests(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		requests int
		says     string
	}{
		"bad lines":             {strings.Repeat("x\n", 1_000_000), 1, "0 lines accepted, 2,000 refused"},
		"blank lines":           {strings.Repeat("\n", 8_000_000), 100, "a page sends no more than 200,000 lines. The first 200,000 lines were read"},
		"bad lines here, there": {strings.Repeat("x\n"+strings.Repeat("\n", 9), 100_000), 5, "0 lines accepted, 1,000 refused"},
		"fewer bad lines":       {strings.Repeat("x\n", 999) + strings.Repeat("\n", 10_000), 6, "0 lines accepted, 999 refused"},
	} {
		h := newTest(t)
		c, csrf := h.login(testKey)
		requests := 0
		h.Handler = New(Options{Log: slog.New(slog.DiscardHandler), Auth: h.auth, Secret: h.secret, Ended: h, Now: time.Now, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			body, err := httpapi.ReadBody(w, r, api.MaxImportBody)
			if err != nil {
				t.Error(err)
			}
			answer := api.ImportAnswer{Refused: []api.RefusedLine{}}
			for i, line := range bytes.Split(body, []byte("\n")) {
				if len(line) > 0 {
					answer.Refused = append(answer.Refused, api.RefusedLine{Line: i + 1, Message: "bad"})
				}
			}
			_ = httpapi.WriteJSON(w, http.StatusOK, answer)
		})})
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		_ = form.WriteField("csrf", csrf)
		file, _ := form.CreateFormFile("file", "events.ndjson")
		_, _ = fmt.Fprint(file, test.text)
		_ = form.Close()
		w := h.do("POST", "/console/data/import", body.String(), as(c), header("Content-Type", form.FormDataContentType()))
		page := w.Body.String()
		if w.Code != http.StatusOK || requests != test.requests || !strings.Contains(page, test.says) {
			t.Errorf("%s: %d after %d requests, want %d and %q: %s", name, w.Code, requests, test.requests, test.says, page)
		}
		if n := strings.Count(page, `<td class="n">`); n > shownLines {
			t.Errorf("%s: %d refused lines are shown", name, n)
		}
		if early := strings.Contains(page, "ended early"); early != (name != "fewer bad lines") {
			t.Errorf("%s: ended early: %t", name, early)
		}
	}
}
