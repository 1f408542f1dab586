package console

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// engineOf is a console whose API answers as a test says: a status, and what is written as JSON.
func engineOf(t *testing.T, answer func(r *http.Request) (int, any)) *tested {
	t.Helper()
	h := newTest(t)
	h.Handler = New(Options{Log: slog.New(slog.DiscardHandler), Auth: h.auth, Secret: h.secret, Ended: h, Now: time.Now, Links: h.links, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(r)
		_ = httpapi.WriteJSON(w, status, body)
	})})
	return h
}

const askedPath = "/console/segments/query?facet=brand&value=Acme"

// An engine that is busy or that fails has a page that says so, and keeps what a person typed.
func TestSegmentsOfABusyEngine(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
		h := engineOf(t, func(*http.Request) (int, any) {
			return status, api.Error{Status: status, Message: "Not now <b>"}
		})
		cookie, csrf := h.login(testKey)
		if w := h.do("GET", "/console/segments", "", as(cookie)); w.Code != status || !strings.Contains(w.Body.String(), "Not now &lt;b&gt;") {
			t.Errorf("%d: the list is answered %d: %s", status, w.Code, w.Body)
		}
		page := h.do("GET", askedPath, "", as(cookie)).Body.String()
		for _, want := range []string{"Not now &lt;b&gt;", "Ask again", `value="Acme"`} {
			if !strings.Contains(page, want) {
				t.Errorf("%d: the page lacks %q", status, want)
			}
		}
		form := url.Values{"csrf": {csrf}, "match": {"all"}, "side": {"with"}, "facet": {"brand"}, "value": {"Acme"}, "above": {"3"}, "hash": {jsonHash("")}, "name": {"fans"}}
		if w := h.do("POST", "/console/segments/query", form.Encode(), as(cookie), header("Hx-Request", "true")); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Ask again") {
			t.Errorf("%d: the answer for htmx is %d: %s", status, w.Code, w.Body)
		}
		if w := h.do("POST", "/console/segments/query/save", form.Encode(), as(cookie)); w.Code != status {
			t.Errorf("%d: save is answered %d", status, w.Code)
		}
	}
}

// A page stays small, however many segments, values and filters there are.
func TestSegmentsOfManyAndLong(t *testing.T) {
	t.Parallel()
	race.Skip(t, "it sends one request at a time")
	long := strings.Repeat("\u202e", 600)
	filter := api.SegmentCondition{Filter: "brand:" + long, Above: 1.5}
	where := api.SegmentCondition{And: []api.SegmentCondition{filter, filter, filter, filter, filter, filter, filter, filter}}
	h := engineOf(t, func(r *http.Request) (int, any) {
		switch r.URL.Path {
		case "/1/segments":
			list := api.Segments{Lists: &api.SegmentLists{Users: 1_000_000, BuiltAt: api.At(time.Now())}, Builds: []api.SegmentBuild{}}
			for i := range 1000 {
				s := api.Segment{Name: fmt.Sprintf("%s-%04d", strings.Repeat("n", 59), i), Where: filter}
				if i < 50 || i > 900 {
					s.Where = where
				}
				for d := range 30 {
					s.Sizes = append(s.Sizes, api.SegmentSize{Day: "2026-11-23", Users: api.UserCount{N: int64(d * 1000)}})
				}
				list.Segments = append(list.Segments, s)
			}
			return http.StatusOK, list
		case "/1/values":
			values := api.Values{Facet: "brand", Total: 100_000, AsOf: api.At(time.Now())}
			for i := range 1000 {
				values.Values = append(values.Values, api.Value{Value: fmt.Sprint(i, long), Users: api.UserCount{N: 9}}, api.Value{Value: strings.Repeat("v", 190) + fmt.Sprint(i)})
			}
			return http.StatusOK, values
		case "/1/strategies/personalization":
			var facets []string
			for i := range 15 {
				facets = append(facets, fmt.Sprintf(`{"facetName":%q,"score":5}`, strings.Repeat("f", 400)+fmt.Sprint(i)))
			}
			return http.StatusOK, json.RawMessage(`{"eventsScoring":[],"facetsScoring":[` + strings.Join(facets, ",") + `],"personalizationImpact":0}`)
		case "/1/segments/query":
			page := api.SegmentPage{Total: api.UserCount{N: 1_000_000}, AsOf: api.At(time.Now())}
			for range 1000 {
				page.Users = append(page.Users, api.SegmentUser{UserToken: strings.Repeat("u", 129), Score: 1e300})
			}
			return http.StatusOK, page
		case "/1/segments/histogram":
			bars := api.SegmentHistogram{Users: api.UserCount{N: 1_000_000}, Quantiles: &api.SegmentQuantiles{P10: 1, P50: 2, P90: 3, P99: 1e300}, AsOf: api.At(time.Now())}
			for i := range 24 {
				bars.Buckets = append(bars.Buckets, api.SegmentBucket{From: float64(i), To: float64(i + 1), Users: int64(i)})
			}
			return http.StatusOK, bars
		}
		return http.StatusNotFound, api.Error{Status: http.StatusNotFound, Message: "no " + r.URL.Path}
	})
	cookie, _ := h.login(testKey)
	query := "/console/segments/query?" + url.Values{"where": {jsonText(where)}}.Encode()
	for path, want := range map[string]string{
		"/console/segments": "1,000 segments in all", "/console/segments?after=" + strings.Repeat("n", 59) + "-0949": "-0999", "/console/segments/values?facet=brand": "more values", query: "1,000,000",
	} {
		w := h.do("GET", path, "", as(cookie))
		page := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(page, want) || strings.Contains(page, "\u202e") {
			t.Errorf("%.60s: %d, and the page lacks %q: %.2000s", path, w.Code, want, page)
		}
		if t.Logf("%.60s: %d bytes", path, len(page)); len(page) > 100<<10 {
			t.Errorf("%.60s has %d bytes", path, len(page))
		}
	}
}

// The page of a build asks for news until the build ends, and is then loaded whole.
func TestSegmentsFollowABuild(t *testing.T) {
	state := api.JobRunning
	h := engineOf(t, func(r *http.Request) (int, any) {
		if r.URL.Path == "/1/segments" {
			return http.StatusOK, api.Segments{Segments: []api.Segment{}, Builds: []api.SegmentBuild{{ID: "manual-1", State: state, PlannedUsers: 100, VisitedUsers: 40, Trigger: "manual", Error: "no <disk>"}}}
		}
		return http.StatusServiceUnavailable, api.Error{Status: http.StatusServiceUnavailable, Message: "not built"}
	})
	cookie, _ := h.login(testKey)
	ask := func(with ...func(*http.Request)) *httptest.ResponseRecorder {
		return h.do("GET", "/console/segments", "", append(with, as(cookie))...)
	}
	htmx := header("Hx-Request", "true")
	if page := ask().Body.String(); !strings.Contains(page, `hx-trigger="every 2s"`) || !strings.Contains(page, "40 of 100 users") {
		t.Errorf("a build that runs: %s", page)
	}
	if page := ask(htmx).Body.String(); strings.Contains(page, "<html") || !strings.Contains(page, `id="seg-lists" hx-get`) {
		t.Errorf("for htmx: %s", page)
	}
	state = api.JobFailed
	if w := ask(htmx); w.Header().Get("Hx-Redirect") != "/console/segments" {
		t.Errorf("at its end: %d %v", w.Code, w.Header())
	}
	if page := ask().Body.String(); !strings.Contains(page, "The last build failed: no &lt;disk&gt;") || strings.Contains(page, "hx-trigger") {
		t.Errorf("a build that failed: %s", page)
	}
}

// An export of more users than the console sends is left to the command.
func TestSegmentExportOfMany(t *testing.T) {
	users := int64(maxFile + 1)
	until := api.At(time.Now().Add(time.Hour))
	h := engineOf(t, func(r *http.Request) (int, any) {
		return http.StatusOK, api.SegmentExport{ID: "export-1", Segment: "fans", State: api.JobDone, Users: &users, AsOf: &until, KeptUntil: &until}
	})
	cookie, _ := h.login(testKey)
	const path = "/console/segments/fans/exports/export-1"
	if page := h.do("GET", path, "", as(cookie)).Body.String(); !strings.Contains(page, "files of at most 50,000 users") || strings.Contains(page, path+"/file") {
		t.Errorf("the page offers a file that it does not send: %s", page)
	}
	if w := h.do("GET", path+"/file", "", as(cookie)); w.Code != http.StatusConflict {
		t.Errorf("the file: %d", w.Code)
	}
	users = 2 // more than the lines of the answer
	if w := h.do("GET", path+"/file", "", as(cookie)); w.Code != http.StatusInternalServerError || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("a file that is cut off: %d %v", w.Code, w.Header())
	}
}

func TestSegmentRowsSayTheCondition(t *testing.T) {
	filter := func(text string) api.SegmentCondition { return api.SegmentCondition{Filter: text} }
	not := func(c api.SegmentCondition) api.SegmentCondition { return api.SegmentCondition{Not: &c} }
	and := func(all ...api.SegmentCondition) api.SegmentCondition { return api.SegmentCondition{And: all} }
	or := func(all ...api.SegmentCondition) api.SegmentCondition { return api.SegmentCondition{Or: all} }
	a, b, c := filter("f:a"), filter("f:b"), filter("f:c")
	for name, test := range map[string]struct {
		where       api.SegmentCondition
		rows        int // 0: fields cannot show it
		words, args string
	}{
		"one":              {a, 1, "f: a", "--where f:a"},
		"all":              {and(a, b), 2, "f: a and f: b", "--where f:a --where f:b"},
		"any":              {or(a, b), 2, "f: a or f: b", "condition.json"},
		"any but":          {and(or(a, b), not(c)), 3, "(f: a or f: b), but not f: c", "condition.json"},
		"but two":          {and(a, not(b), not(c)), 3, "f: a, but not f: b and not f: c", "--where f:a --without f:b --without f:c"},
		"any and one":      {and(or(a, b), c), 0, "(f: a or f: b) and f: c", "condition.json"},
		"two levels":       {or(and(a, b), c), 0, "(f: a and f: b) or f: c", "condition.json"},
		"percent":          {filter("f:50 %25 off"), 1, "f: 50 % off", "--where 'f:50 %25 off'"},
		"a sign":           {filter("f:a > 2"), 1, "f: a > 2", "condition.json"},
		"a limit":          {api.SegmentCondition{Filter: "f:a", Above: 2.5}, 1, "f: a above 2.5", "--where 'f:a > 2.5'"},
		"only without":     {not(a), 1, "not f: a", "condition.json"},
		"invisible":        {filter("f:\u202e"), 1, `f: \u202e`, "condition.json"},
		"what is no value": {filter("f"), 0, "f", "--where f"},
	} {
		form := formOf(test.where)
		if got := len(form.Rows); got != test.rows || form.Shown != (test.rows > 0) {
			t.Errorf("%s: %d rows, shown %v", name, got, form.Shown)
		}
		if form.Shown {
			if form.write(); jsonText(form.where) != jsonText(test.where) {
				t.Errorf("%s: the rows say %s", name, form.JSON)
			}
		}
		var words strings.Builder
		for _, part := range conditionWords(test.where) {
			words.WriteString(part.Text)
		}
		if words.String() != test.words {
			t.Errorf("%s: %q, want %q", name, &words, test.words)
		}
		if got := segmentArgs(test.where); got != test.args {
			t.Errorf("%s: %s, want %s", name, got, test.args)
		}
	}
	// None of several is said as so many rows.
	form := formOf(and(a, not(or(b, c))))
	if form.write(); len(form.Rows) != 3 || jsonText(form.where) != jsonText(and(a, not(b), not(c))) {
		t.Errorf("none of several: %s", form.JSON)
	}
}

func TestSegmentHistogram(t *testing.T) {
	got := api.SegmentHistogram{
		Users: api.UserCount{N: 30}, Quantiles: &api.SegmentQuantiles{P10: 1, P50: 12.3456, P90: 30, P99: 40},
		Buckets: []api.SegmentBucket{{From: 10, To: 20, Users: 20}, {From: 20, To: 50, Users: 10}},
	}
	h := newHistogram(askedFilter{above: 20, row: 2}, got)
	if len(h.Bars) != 2 || h.Bars[0].Class != "out" || h.Bars[1].Class != "in" || h.Limit != "500.0" || h.Bars[0].High != "100.0" || h.Bars[1].High != "50.0" {
		t.Errorf("a limit between bars: %+v", h)
	}
	if h.Lines[0].More != 30 || h.Lines[1].More != 10 || len(h.Picks) != 2 || h.Picks[0].Value != "12.3" || h.First != "10" || h.Last != "50" {
		t.Errorf("the table: %+v", h)
	}
	for x, want := range map[float64]float64{12.3999: 12.3, 450: 450, 0.0012399: 0.00123, 87799: 87700, 0: 0} {
		if got := rounded(x); got != want {
			t.Errorf("%v is rounded to %v, want %v", x, got, want)
		}
	}
	if h = newHistogram(askedFilter{above: 15}, got); len(h.Bars) != 3 || h.Bars[0].Class != "out" || h.Bars[1].Class != "in" || h.Bars[1].Y != h.Bars[0].Y {
		t.Errorf("a limit within a bar: %+v", h.Bars)
	}
	if h = newHistogram(askedFilter{above: 100}, got); len(h.Bars) != 2 || h.Bars[1].Class != "out" || h.Limit != "1000.0" {
		t.Errorf("a limit above all: %+v", h)
	}
	if h = newHistogram(askedFilter{}, api.SegmentHistogram{Users: api.UserCount{Fewer: true}}); len(h.Bars) != 0 || !h.Users.Fewer {
		t.Errorf("a hidden histogram: %+v", h)
	}
}

// Half-lives are those of the strategy, and one that it no longer has can still be seen.
func TestSegmentHalfLives(t *testing.T) {
	var bodies []string
	h := engineOf(t, func(r *http.Request) (int, any) {
		if r.URL.Path == "/1/strategies/personalization" {
			return http.StatusOK, json.RawMessage(`{"eventsScoring":[],"facetsScoring":[{"facetName":"brand","score":5},{"facetName":"off","score":0}],"personalizationImpact":0,"halfLives":[7,"12h"]}`)
		}
		if r.URL.Path == "/1/segments/query" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			bodies = append(bodies, string(body))
			return http.StatusOK, api.SegmentPage{Total: api.UserCount{Fewer: true}, AsOf: api.At(time.Now())}
		}
		return http.StatusNotFound, api.Error{Status: http.StatusNotFound, Message: "none"}
	})
	cookie, csrf := h.login(auth.Recommendation)
	page := h.do("GET", "/console/segments/query?where="+url.QueryEscape(`{"filter":"brand:Acme","halfLife":30,"above":2}`), "", as(cookie)).Body.String()
	for _, want := range []string{`<option value="">7 days, the first</option>`, `<option value="12h">12 hours</option>`, `<option value="30" selected>30 days</option>`, `<datalist id="facets"><option value="brand"></option></datalist>`,
		"fewer than 20</strong>", "(half-life 30 days)", "--where &#39;brand:Acme &gt; 2 @30&#39;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	form := url.Values{"csrf": {csrf}, "match": {"all"}, "side": {"with"}, "facet": {"brand"}, "value": {"50 % off"}, "halfLife": {"12h"}, "hash": {jsonHash("")}}
	h.do("POST", "/console/segments/query", form.Encode(), as(cookie), header("Hx-Request", "true"))
	want := []string{`{"where":{"filter":"brand:Acme","halfLife":30,"above":2},"limit":0}`, `{"where":{"filter":"brand:50 %25 off","halfLife":"12h"},"limit":0}`}
	if !slices.Equal(bodies, want) {
		t.Errorf("the engine was asked %q, want %q", bodies, want)
	}
}

// Without a permission of segments the page makes no request.
func TestSegmentsWithoutThePermission(t *testing.T) {
	asked := 0
	h := engineOf(t, func(*http.Request) (int, any) { asked++; return http.StatusOK, struct{}{} })
	cookie, csrf := h.login(auth.ProfilesRead)
	for _, path := range []string{"/console/segments", askedPath, "/console/segments/fans"} {
		if w := h.do("GET", path, "", as(cookie)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "This key cannot count users") {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	h.do("POST", "/console/segments/query", url.Values{"csrf": {csrf}}.Encode(), as(cookie), header("Hx-Request", "true"))
	if asked > 0 {
		t.Errorf("%d requests", asked)
	}
}
