package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// An app without segments is shown what to do first, step by step.
func TestSegmentsBeginWithLists(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(20)
	p := s.login(key)
	s.shows(p.page("/console/segments"), "Segments are off for this app", "affinity app segments shop on")
	s.shows(p.page("/console/segments/query?facet=brand&value=Stridewell"), "Segments are off for this app", "affinity app segments shop on")
	s.must(s.stack.Backends.Config.SetSegments(t.Context(), "shop", true))
	s.eventually(func() bool { return strings.Contains(p.page("/console/segments"), "Build the lists") })
	reader := s.as(auth.Recommendation)
	page := reader.page("/console/segments")
	s.shows(page, "No lists of users are built yet", "affinity segment refresh")
	s.lacks(page, "/console/segments/refresh")
	s.shows(reader.page("/console/segments/query?facet=brand&value=Stridewell"), "are not built yet", "Ask again")
	p.leads("/console/segments/refresh", url.Values{}, "/console/segments?done=segments-refresh")
	s.built()
	page = p.page("/console/segments")
	s.shows(page, "in the lists, built", "Build now", "No segment is saved", "What users like", "/console/segments/query?facet=brand&amp;value=Stridewell")
	s.lacks(page, "hx-trigger")
	s.lacks(reader.page("/console/segments"), "Build now")
}

// The page counts what the engine counts, draws the scores, and names users to keys that may know them.
func TestSegmentsAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(150)
	s.pack()
	p := s.login(key)
	limit := 1
	want, err := s.engine.Segments().Query(t.Context(), api.SegmentQuery{Where: stridewell, Limit: &limit})
	s.must(err)
	if want.Total.N < 2 {
		t.Fatalf("the shop has %d such users: too few for a test", want.Total.N)
	}
	page := p.page("/console/segments/query?where=" + url.QueryEscape(`{"and":[{"filter":"brand:Stridewell","above":1000},{"not":{"filter":"color:Red","above":5000}}]}`))
	s.shows(page, fmt.Sprintf(`<strong class="figure">%d</strong>`, want.Total.N), `brand: Stridewell</bdi> above 1,000, but not <bdi class="text seg-term">color: Red`,
		"Counted exactly", `role="img" aria-label="Histogram of the scores of brand:Stridewell over`, `class="limit"`, "Top tenth", "This or more",
		"/console/users/"+want.Users[0].UserToken, "affinity segment query --where &#39;brand:Stridewell &gt; 1000&#39; --without &#39;color:Red &gt; 5000&#39;", "/1/segments/query", `value="Stridewell" list="offers0"`,
		`<option value="Littlebee">`, `type="range" id="slide0"`)
	reader := s.as(auth.Recommendation).page("/console/segments/query?facet=brand&value=Stridewell")
	s.shows(reader, "To see who they are needs a key with the permission", "affinity segment query --count --where brand:Stridewell")
	s.lacks(reader, "/console/users/runner")
	s.shows(p.page("/console/segments/query?facet=brand&value=Nothing"), `<strong class="figure">0</strong>`, "No user scores this value")
	s.shows(p.page("/console/segments/values?facet=color"), "6 values that users score above 0", "facet=color&amp;value=Blue")
}

// Without JavaScript each button makes a page: rows come and go, a limit comes from the histogram, and
// the JSON follows the fields. While a person types, htmx gets the answer alone.
func TestSegmentsForm(t *testing.T) {
	t.Parallel()
	p := packed(t)
	s := p.site
	form := fields(p.page("/console/segments/query"))
	live := p.ask(row(form, 0, "brand", "Stridewell", "50"))
	s.shows(live, "users like", `id="range0" hx-swap-oob="true"`, `id="offers0" hx-swap-oob="true"`, `id="seg-json" hx-swap-oob="true"`, "brand:Stridewell", "&#34;above&#34;: 50", `id="seg-said"`)
	s.lacks(live, "<form")
	form.Set("of", mark(live))
	s.lacks(p.ask(form), `id="range0"`, `id="offers0"`) // a slider that a person holds stays
	live = p.ask(row(form, 0, "brand", "Ember & Oak", "50"))
	form.Set("of", mark(live))
	form.Set("value", "Stridewell")
	live = p.ask(form)
	s.shows(live, `id="range0"`)
	s.lacks(live, `id="offers0"`)
	form.Set("do", "without")
	_, page := p.post("/console/segments/query", form)
	form = fields(page)
	if len(form["side"]) != 2 || form["side"][1] != "without" {
		t.Fatalf("sides %q", form["side"])
	}
	s.shows(p.ask(row(form, 1, "color", "", "")), "A row that lacks a facet or a value does not count")
	row(form, 1, "color", "Red", "").Set("do", "above 0 2.5")
	_, page = p.post("/console/segments/query", form)
	s.shows(page, `name="above" min="0" step="any" value="2.5"`, "&#34;above&#34;: 2.5", "color:Red")
	form = fields(page)
	form.Set("do", "remove 1")
	_, page = p.post("/console/segments/query", form)
	s.lacks(page, "&#34;not&#34;")
	s.shows(page, "Nobody is left out.")
	form = fields(page)
	for _, above := range []string{"-1", "x", "NaN", "Inf"} {
		s.shows(p.ask(row(form, 0, "brand", "Stridewell", above)), "Type a score of 0 or more: brand: Stridewell")
	}
	s.shows(p.ask(row(form, 0, "bra:nd", "x", "")), "The name of a facet has no colon")
	form = fields(p.page("/console/segments/query"))
	form.Set("side", "without")
	s.shows(p.ask(row(form, 0, "color", "Red", "")), "Add a value that users like.")
}

// The JSON is the condition: an expert writes what fields cannot show, and a fault is said beside it.
func TestSegmentsOfJSON(t *testing.T) {
	t.Parallel()
	p := packed(t)
	s := p.site
	form := fields(p.page("/console/segments/query"))
	form.Set("json", `{"where":`+nestedSegment+`}`)
	live := p.ask(form)
	s.shows(live, "or (<bdi", "users like")
	s.lacks(live, `id="seg-json"`) // which a person types into
	form.Set("do", "json")
	_, page := p.post("/console/segments/query", form)
	s.shows(page, "This condition has more levels than fields can show", "affinity segment query condition.json", "brand:Stridewell")
	s.lacks(page, `name="match"`)
	again := fields(page)
	s.shows(p.ask(again), "or (<bdi")
	again.Set("json", `{"or":[{"filter":"brand:Stridewell"},{"filter":"color:Blue","above":3}]}`)
	_, page = p.post("/console/segments/query", again)
	s.shows(page, `value="any" checked`, `value="Blue"`, `value="3"`)
	for text, why := range map[string]string{
		`{`: "This is no condition", `{"filtre":"a:b"}`: "unknown field", `{}`: "must have exactly one of filter, and, or, not", `{"filter":"a"}`: "is no filter",
		`{"filter":"a:b","halfLife":999}`: "halfLife", `{"not":{"filter":"a:b"}}`: "Add a value that users like", `{"or":[{"filter":"a:b"},{"not":{"filter":"a:c"}}]}`: "must be bounded",
		strings.Repeat("[", 30): "nested deeper", `{"filter":"a:b"} {}`: "more than one JSON object",
	} {
		again.Set("json", text)
		s.shows(p.ask(again), why)
		_, page = p.post("/console/segments/query", again)
		s.shows(page, why)
	}
}

// A person saves, changes and deletes a segment, and is refused beside the field.
func TestSegmentsAreSaved(t *testing.T) {
	t.Parallel()
	p := packed(t)
	s := p.site
	const save = "/console/segments/query/save"
	form := row(fields(p.page("/console/segments/query")), 0, "brand", "Stridewell", "50 ")
	for name, why := range map[string]string{
		"": "Type a name", "a b": "The name of a segment has 1 to 64 of", "query": "cannot be named query", "<script>alert(1)</script>": "The name of a segment", "\u202egnp": "The name of a segment",
	} {
		form.Set("name", name)
		page := p.sent(http.StatusUnprocessableEntity, save, form)
		s.shows(page, why, `aria-invalid="true"`, `value="Stridewell"`)
		s.lacks(page, raw...)
	}
	form.Set("name", "fans")
	p.leads(save, form, "/console/segments/fans?done=segment-saved")
	if got, err := s.engine.Segments().Get(t.Context(), "fans"); err != nil || got.Where.Filter != "brand:Stridewell" || got.Where.Above != 50 {
		t.Errorf("saved %+v, %v", got, err)
	}
	page := p.sent(http.StatusConflict, save, form)
	s.shows(page, "Another segment has this name", `href="/console/segments/fans">Open it`)
	page = p.page("/console/segments/fans")
	s.shows(page, "fans", "/console/segments/fans/exports", "affinity segment save fans --replace")
	form = fields(page)
	p.leads(save, form, "/console/segments/fans?done=segment-same")
	// Another person changes it. The first attempt to save says so, and the next one replaces it.
	_, err := s.engine.Segments().Save(t.Context(), "fans", api.SegmentCondition{Filter: "color:Blue"}, false)
	s.must(err)
	row(form, 0, "brand", "Stridewell", "70")
	page = p.sent(http.StatusConflict, save, form)
	s.shows(page, "Another person has changed this segment", "color: Blue", `value="70"`)
	p.leads(save, fields(page), "/console/segments/fans?done=segment-saved")
	s.built()
	s.shows(p.page("/console/segments"), `href="/console/segments/fans"`, "brand: Stridewell</bdi> above 70")
	s.shows(p.page("/console/segments/fans/delete"), "Delete the segment", "affinity segment delete fans", "-X DELETE")
	p.leads("/console/segments/fans/delete", url.Values{}, "/console/segments?done=segment-deleted")
	p.get(http.StatusNotFound, "/console/segments/fans")
	// The form of a segment that another person has deleted saves it again.
	p.leads(save, form, "/console/segments/fans?done=segment-saved")
}

// An export is followed to its file, by a key that may name users.
func TestSegmentsAreExported(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(60)
	s.pack()
	s.save()
	p := s.login(key)
	answer, body := p.post("/console/segments/stridewell-not-red/exports", nil)
	path, _, _ := strings.Cut(answer.Header.Get("Location"), "?")
	if !strings.HasPrefix(path, "/console/segments/stridewell-not-red/exports/") {
		t.Fatalf("%s: %s", answer.Status, body)
	}
	var page string
	s.eventually(func() bool { s.idle(); page = p.page(path); return !strings.Contains(page, "hx-trigger") })
	limit := 100
	want, err := s.engine.Segments().Query(t.Context(), api.SegmentQuery{Where: stridewell, Limit: &limit})
	s.must(err)
	s.shows(page, "The file is ready", fmt.Sprintf(`<span class="figure">%d</span>`, want.Total.N), path+"/file", "affinity segment export stridewell-not-red --out stridewell-not-red.ndjson", "/1/segments/export/")
	answer, body = p.send("GET", path+"/file", nil)
	if got := strings.Count(body, "\n"); int64(got) != want.Total.N || !strings.Contains(body, `"userToken":"`+want.Users[0].UserToken+`"`) || !strings.Contains(answer.Header.Get("Content-Disposition"), `attachment; filename="stridewell-not-red.ndjson"`) {
		t.Errorf("%d lines of %d, %v: %s", got, want.Total.N, answer.Header, body)
	}
	s.shows(p.page("/console/segments/stridewell-not-red"), path, "Export of ")
	for _, other := range []string{"/console/segments/blue/exports/" + path[strings.LastIndex(path, "/")+1:], "/console/segments/blue/exports/none"} {
		p.get(http.StatusNotFound, other)
	}
	reader := s.as(auth.Recommendation)
	s.shows(reader.page("/console/segments/blue"), "To export the users needs a key with the permission")
	s.lacks(reader.page("/console/segments/blue"), "/console/segments/blue/exports")
	for _, refused := range []string{path, path + "/file"} {
		reader.get(http.StatusForbidden, refused)
	}
	reader.sent(http.StatusForbidden, "/console/segments/blue/exports", nil)
	none := s.as(auth.ProfilesRead)
	s.shows(none.page("/console/segments"), "This key cannot count users")
	s.shows(none.page("/console/segments/query"), "This key cannot count users")
	s.shows(none.page("/console/segments/blue"), "This key cannot count users")
}

// What attackers write stays text, and can be part of a condition.
func TestSegmentsOfHostileData(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fillHostile()
	s.pack()
	p := s.login(key)
	for _, path := range []string{"/console/segments", "/console/segments/values?facet=brand"} {
		s.lacks(p.page(path), raw...)
	}
	for i, text := range hostile {
		path := "/console/segments/query?" + url.Values{"facet": {"brand"}, "value": {text}}.Encode()
		page := p.page(path)
		s.lacks(page, raw[:len(raw)-1]...)                                                               // a form gives people back what they asked for
		if i != len(hostile)-1 && !strings.Contains(text, "\u0000") && strings.TrimSpace(text) == text { // which events cannot hold
			s.shows(page, `<strong class="figure">1</strong>`)
		}
		s.lacks(p.page("/console/segments/query?"+url.Values{"where": {text}}.Encode()), raw[:2]...)
		s.lacks(p.page("/console/segments/values?facet="+url.QueryEscape("x"+text)), raw[:2]...)
		answer, page := p.send("GET", "/console/segments/"+url.PathEscape(text), nil)
		if s.lacks(page, raw...); answer.StatusCode == http.StatusOK {
			t.Errorf("the segment %q: %s", text, answer.Status)
		}
		form := fields(page)
		row(form, 0, text, text, text)
		form.Set("match", text)
		s.lacks(p.ask(withToken(form, p)), raw[:2]...)
	}
}

// mark is what a slider says of the filter that it was made for.
func mark(page string) string {
	_, rest, _ := strings.Cut(page, `name="of" value="`)
	of, _, _ := strings.Cut(rest, `"`)
	return of
}

// withToken makes a form of rows without a condition before them.
func withToken(form url.Values, p *person) url.Values {
	form.Set("csrf", p.csrf())
	form.Set("match", "all")
	form.Set("hash", "e3b0c44298fc1c14") // of no JSON
	return form
}
