package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// shoeShop starts an engine with the strategy shoes, and logs in with a key.
func shoeShop(t *testing.T, key string) (*stack.Stack, *strategist) {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, shoes())
	return s, strategistOf(t, s, key)
}

func shoes() strategy.Strategy {
	return strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 10}, {EventName: "Bought", EventType: event.Conversion, Score: 50}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "color", Score: 40}},
		PersonalizationImpact: 50,
		HalfLives:             strategy.InDays(30),
		Aliases:               map[string]map[string]string{"color": {"Rouge": "Red"}},
	}
}

// active returns the active strategy.
func active(t *testing.T, s *stack.Stack) (strategy.Strategy, int64) {
	t.Helper()
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	return app.Strategy, app.StrategyVersion
}

func send(t *testing.T, s *stack.Stack, path, body string) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, strings.NewReader(body))
	r.Header.Set("X-Algolia-Application-Id", functiontest.App)
	r.Header.Set("X-Algolia-API-Key", "all")
	answer, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s", path, answer.Status)
	}
}

// An app without a strategy gets one from the page.
func TestStrategyFromNothing(t *testing.T) {
	s := functiontest.Start(t)
	b := strategistOf(t, s, "recommendation")
	page := b.get("/console/strategy")
	page.shows(t, "No strategy is set", "No event has points yet.", "Events keep their worth for the whole retention.")
	page.lacks(t, "Backtest this draft")
	b.get("/console/strategy/versions").shows(t, "No strategy was set yet")

	form := page.form()
	form.Set("do", "add-event")
	form.Set("newType", "view")
	page = b.post("/console/strategy", form)
	page.shows(t, "Type the name of the event to add")
	form.Set("newEvent", "Seen")
	page = b.post("/console/strategy", form)
	page.shows(t, "View “Seen” counts 10; it did not count before")
	form = page.form()
	form.Set("do", "add-facet")
	form.Set("newFacet", "color")
	page = b.post("/console/strategy", form)

	review := b.post("/console/strategy/review", page.form())
	review.shows(t, "Note", "2 changes", "Facet color weighs 10; it did not count before", "Stored profiles are recomputed in the background")
	form = review.form()
	form.Set("note", strings.Repeat("n", 201))
	b.post("/console/strategy/publish", form).shows(t, "A note has at most 200 characters")
	form.Set("note", "why <b>not</b>")
	if answer := b.post("/console/strategy/publish", form); answer.To != "/console/strategy?done=strategy-published" {
		t.Fatalf("published: %d to %q\n%s", answer.Status, answer.To, answer.plain())
	}
	if got, version := active(t, s); got.EventScore("view", "Seen") != 10 || got.FacetScore("color") != 10 || version == 0 {
		t.Errorf("version %d is %+v", version, got)
	}
	b.get("/console/strategy/versions").shows(t, "why <b>not</b>")
}

// An app without a strategy begins with a suggestion, which nothing publishes but its person.
func TestStrategyFromSuggestion(t *testing.T) {
	s := functiontest.Start(t)
	b := strategistOf(t, s, "recommendation")
	form := b.get("/console/strategy").form()
	form.Set("do", "begin")
	b.post("/console/strategy", form).shows(t, "No strategy can be suggested: no view, click or conversion has been seen")

	objects := make([]string, 40)
	for i := range objects {
		objects[i] = fmt.Sprintf(`{"action":"addObject","body":{"objectID":"s%d","name":"Shoe <b>%d","brand":"b%d","price":%d.5}}`, i, i, i%4, 10+i)
	}
	send(t, s, "/1/indexes/shoes/batch", `{"requests":[`+strings.Join(objects, ",")+`]}`)
	send(t, s, "/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"ann","objectIDs":["s1"]}]}`)
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	page := b.post("/console/strategy", form)
	page.shows(t, "A suggestion to begin with", "40 objects of the catalog", "5. 1 event: a view says little", "which object it is",
		"affinity index bands shoes price=0,", "View “Seen” counts 5; it did not count before")
	if _, version := active(t, s); version != 0 {
		t.Errorf("version %d is active before anybody published", version)
	}
	review := b.post("/console/strategy/review", page.form())
	b.post("/console/strategy/publish", review.form())
	if got, _ := active(t, s); got.FacetScore("brand") != 50 || got.FacetScore("name") != 0 {
		t.Errorf("published %+v", got)
	}
	b.get("/console/strategy").lacks(t, "Start with a suggestion")
}

// A draft changes what the page shows, and keeps everything else.
func TestStrategyDraft(t *testing.T) {
	s, b := shoeShop(t, "recommendation")
	page := b.get("/console/strategy")
	page.shows(t, "A view is worth half after 30 days", "Rouge", "Version")
	form := page.form()
	form["eventScore"][0], form["facetSlide"][0] = "60", "5"
	form["halfLife"] = []string{"7", "12h"}
	form.Set("pairs.weightSlide", "30")
	changed := b.post("/console/strategy", form)
	changed.shows(t, "View “Seen”: 10 → 60", "Facet color: 40 → 5", "Half-lives: 30 days → 7 days, 12 hours", "Weight of pairs: the default → 30",
		"A view is worth half after 7 days", "+50", "−35")

	review := b.post("/console/strategy/review", changed.form())
	if answer := b.post("/console/strategy/publish", review.form()); answer.Status != http.StatusSeeOther {
		t.Fatalf("published: %d\n%s", answer.Status, answer.plain())
	}
	want := shoes()
	want.EventsScoring[0].Score, want.FacetsScoring[0].Score = 60, 5
	want.HalfLives = []strategy.HalfLife{strategy.Days(7), mustHalfLife(t, "12h")}
	weight := 30
	want.Ranking = &strategy.Ranking{Pairs: &strategy.PairsRanking{Weight: &weight}}
	if got, _ := active(t, s); !got.Equal(want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	b.get("/console/strategy?done=strategy-published").shows(t, "The strategy is published")

	form = b.get("/console/strategy").form()
	form.Set("impact", "70")
	b.post("/console/strategy/review", form).shows(t, "Impact: 50 → 70", "No profile is recomputed")
	form = b.get("/console/strategy").form()
	b.post("/console/strategy/review", form).shows(t, "No changes", "Nothing changes: it is the active strategy.")
}

func mustHalfLife(t *testing.T, text string) strategy.HalfLife {
	t.Helper()
	h, err := strategy.ParseHalfLife(text)
	must.Succeed(t, err)
	return h
}

// Keys that the console does not know stay in a draft.
func TestStrategyUnknownKeysStay(t *testing.T) {
	_, b := shoeShop(t, "recommendation")
	form := b.get("/console/strategy").form()
	form.Set("json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10,"extra":{"a":[1,2]}}],"facetsScoring":[],"personalizationImpact":5,"later":{"big":12345678901234567890}}`)
	page := b.post("/console/strategy", form)
	page.shows(t, `Unknown field "extra"`)
	form = page.form()
	form["eventScore"][0] = "11"
	var draft map[string]any
	text := b.post("/console/strategy", form).form().Get("json")
	if err := json.Unmarshal([]byte(text), &draft); err != nil || !strings.Contains(text, "12345678901234567890") || !strings.Contains(text, `"extra": {"a": [1, 2]}`) || !strings.Contains(text, `"score": 11`) {
		t.Errorf("the draft is %s (%v)", text, err)
	}
}

// The engine's messages stand at their fields.
func TestStrategyFaults(t *testing.T) {
	_, b := shoeShop(t, "recommendation")
	form := b.get("/console/strategy").form()
	form["eventScore"][0], form["halfLife"][0] = "500", "soon"
	page := b.post("/console/strategy", form)
	page.shows(t, "eventsScoring[0].score must be an integer from 0 to 100, got 500", `id="event0-f"`, `halfLives[0] must be a number of days`, "is no half-life")
	b.post("/console/strategy/review", form).shows(t, "The engine does not take this draft", "got 500")
	b.post("/console/strategy/publish", url.Values{"csrf": form["csrf"], "version": form["version"], "json": {`{"eventsScoring":1}`}}).shows(t, "eventsScoring must be a list")
	form = b.get("/console/strategy").form()
	form["halfLife"][0] = "2e"
	page = b.post("/console/strategy", form)
	page.shows(t, `halfLives[0] must be a time, got "2e": only ranking.session.halfLife counts events`)
	page.lacks(t, "0 days")
	form = b.get("/console/strategy").form()
	form.Set("json", `{"eventsScoring":[`)
	b.post("/console/strategy", form).shows(t, "the draft is not a JSON object", "not valid JSON", "Repair it below")
	b.live = true
	b.post("/console/strategy/preview", form).shows(t, "not valid JSON")
}

// What is too large or too deep is not parsed, and a page has no more sliders than the engine takes entries.
func TestStrategyDraftLimits(t *testing.T) {
	_, b := shoeShop(t, "recommendation")
	form := b.get("/console/strategy").form()
	deep := func(n int) string { return `{"later":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}` }
	form.Set("json", deep(21))
	b.post("/console/strategy", form).shows(t, "nested deeper than 20 levels", "Repair it below")
	b.post("/console/strategy/review", form).shows(t, "nested deeper than 20 levels")
	form.Set("json", strings.Replace(deep(20), `[]`, `["[[[[[[{\"[["]`, 1))
	b.post("/console/strategy", form).lacks(t, "nested deeper")
	form.Set("json", `{"x":"`+strings.Repeat("a", 900_000)+`"}`)
	b.post("/console/strategy/review", form).shows(t, "the draft has 900,008 bytes, and the engine takes 900,000")
	var entries []string
	for i := range 300 {
		entries = append(entries, fmt.Sprintf(`{"facetName":"facet%d","score":1}`, i))
	}
	form.Set("json", `{"eventsScoring":[],"facetsScoring":[`+strings.Join(entries, ",")+`],"personalizationImpact":1}`)
	page := b.post("/console/strategy", form)
	page.shows(t, "200 more are only in the JSON below", "facetsScoring must have at most 100 entries, got 300")
	if n := strings.Count(page.Text, `name="facetSlide"`); n != strategy.MaxEntries {
		t.Errorf("%d sliders", n)
	}
	form = page.form()
	form["facetScore"][0] = "2"
	if text := b.post("/console/strategy", form).form().Get("json"); !strings.Contains(text, "facet299") || !strings.Contains(text, `"score": 2`) {
		t.Errorf("entries without sliders are lost: %s", text)
	}
}

// The preview says what becomes of users.
func TestStrategyPreview(t *testing.T) {
	s := functiontest.Start(t)
	send(t, s, "/1/strategies/personalization", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10},{"eventName":"Bought","eventType":"conversion","score":50}],"facetsScoring":[{"facetName":"color","score":40}],"personalizationImpact":50}`)
	var lines []string
	for i := range 30 {
		user, now := fmt.Sprintf("user-%d", i), s.Backends.Now().UnixMilli()-60_000
		lines = append(lines, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":%q,"timestamp":%d,"index":"shoes","filters":["color:Red"]}`, user, now),
			fmt.Sprintf(`{"eventType":"conversion","eventName":"Bought","userToken":%q,"timestamp":%d,"index":"shoes","filters":["color:Blue"]}`, user, now+1))
	}
	send(t, s, "/1/events/import", strings.Join(lines, "\n"))
	b := strategistOf(t, s, "recommendation")
	form := b.get("/console/strategy").form()
	b.live = true
	b.post("/console/strategy/preview", form).shows(t, "Nothing would change")
	form["eventScore"][0] = "100"
	page := b.post("/console/strategy/preview", form)
	page.shows(t, "30 of 30 users get another favorite value; for 30 the first five change", "an order turned around", ", share of the profile", "Red", "↑", `hx-swap-oob="true"`, `href="/console/users/user-`, "users compared in")
	page.lacks(t, "<html", "How much each event")
	form.Set("json", strings.Replace(form.Get("json"), `"score": 50`, `"score": 1`, 1))
	b.post("/console/strategy/preview", form).shows(t, "This is of the JSON as you edited it", "30 of 30 users")
}

func TestStrategyPermissions(t *testing.T) {
	s, b := shoeShop(t, "usage")
	page := b.get("/console/strategy")
	if page.Status != http.StatusForbidden {
		t.Errorf("status %d", page.Status)
	}
	page.shows(t, "Not permitted", "lacks the permission")
	page.lacks(t, "Review and publish")
	csrf := page.form()["csrf"]
	for _, path := range []string{"", "/preview", "/review", "/publish", "/backtest", "/versions/1/restore"} {
		form := url.Values{"csrf": csrf, "index": {"shoes"}, "json": {`{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":1}`}}
		if answer := b.post("/console/strategy"+path, form); answer.Status != http.StatusForbidden {
			t.Errorf("POST %s: %d", path, answer.Status)
		}
	}
	reader := strategistOf(t, s, "recommendation")
	form := reader.get("/console/strategy").form()
	form.Set("index", "shoes")
	if answer := reader.post("/console/strategy/backtest", form); answer.Status != http.StatusForbidden {
		t.Errorf("a backtest without the permission admin: %d", answer.Status)
	}
	form.Del("csrf")
	if answer := reader.post("/console/strategy/publish", form); answer.Status != http.StatusForbidden {
		t.Errorf("a form of another session: %d", answer.Status)
	}
}

// Names and values that attackers write stay texts, and a form does not change them.
func TestStrategyHostile(t *testing.T) {
	s := functiontest.Start(t)
	names := []string{"<script>alert(1)</script>", "\u202egnp.exe", strings.Repeat("é", 250), `"'&<>` + "\n\r\t\x01", "a/b?c#d%e&f+g"}
	hostile := strategy.Strategy{PersonalizationImpact: 1, Aliases: map[string]map[string]string{}}
	for i, name := range names {
		hostile.EventsScoring = append(hostile.EventsScoring, strategy.EventScore{EventName: name, EventType: event.View, Score: i})
		hostile.FacetsScoring = append(hostile.FacetsScoring, strategy.FacetScore{FacetName: name, Score: i})
		hostile.Aliases[name] = map[string]string{name: "x" + name[:4]}
	}
	functiontest.SetStrategy(t, s, hostile)
	functiontest.SetStrategy(t, s, strategy.Strategy{PersonalizationImpact: 1})
	_, version := active(t, s)
	functiontest.SetStrategy(t, s, hostile)
	b := strategistOf(t, s, "all")
	page := b.get("/console/strategy")
	form := page.form()
	form["eventScore"][4] = "99"
	changed := b.post("/console/strategy", form)
	for _, v := range []strategyView{page, changed, b.get(fmt.Sprintf("/console/strategy/versions/%d", version)), b.post("/console/strategy/review", form)} {
		v.lacks(t, "<script>alert", "\u202e", "\x01", "\r")
	}
	changed.shows(t, "View “a/b?c#d%e&f+g”: 4 → 99")
	review := b.post("/console/strategy/review", changed.form())
	if answer := b.post("/console/strategy/publish", review.form()); answer.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", answer.Status, answer.plain())
	}
	hostile.EventsScoring[4].Score = 99
	if got, _ := active(t, s); !got.Equal(hostile) {
		t.Errorf("a form changed a name:\n%+v\n%+v", got, hostile)
	}
	form = b.get("/console/strategy").form()
	for _, name := range names {
		form.Set("do", "remove-alias "+url.QueryEscape(name)+"&"+url.QueryEscape(name))
		form = b.post("/console/strategy", form).form()
	}
	if strings.Contains(form.Get("json"), "aliases") {
		t.Errorf("aliases are left: %s", form.Get("json"))
	}
}

// A hundred events and facets stay small and can be found.
func TestStrategyMany(t *testing.T) {
	s := functiontest.Start(t)
	var many strategy.Strategy
	for i := range strategy.MaxEntries {
		many.EventsScoring = append(many.EventsScoring, strategy.EventScore{EventName: fmt.Sprintf("Event %d", i), EventType: event.View, Score: 1})
		many.FacetsScoring = append(many.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprintf("facet%d", i), Score: 1})
	}
	functiontest.SetStrategy(t, s, many)
	b := strategistOf(t, s, "recommendation")
	page := b.get("/console/strategy")
	page.shows(t, "Find an event", "Find a facet", "Event 99", "facet99")
	form := page.form()
	form.Set("do", "add-facet")
	form.Set("newFacet", "one more")
	b.post("/console/strategy", form).shows(t, "facetsScoring must have at most 100 entries, got 101")
	t.Logf("%d bytes", len(page.Text))
}

func TestStrategyBacktest(t *testing.T) {
	_, b := shoeShop(t, "all")
	form := b.get("/console/strategy").form()
	b.post("/console/strategy/backtest", form).shows(t, "Type the index")
	form.Set("index", "shoes")
	form["eventScore"][0] = "20"
	answer := b.post("/console/strategy/backtest", form)
	if !strings.HasPrefix(answer.To, "/console/strategy/backtests/") {
		t.Fatalf("%d to %q\n%s", answer.Status, answer.To, answer.plain())
	}
	b.get(answer.To).shows(t, "Backtest of a draft")
	b.get("/console/strategy/backtests/unknown").shows(t, "No backtest")
}
