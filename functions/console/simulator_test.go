package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// simIDs is a page of the shop with the maker Zeta last.
const simIDs = "acme-red\nacme-blue\nzeta-red\nzeta-blue\n"

func TestSimulatorWithoutData(t *testing.T) {
	s := newSimSite(t)
	page := s.get(http.StatusOK)
	s.inOrder(page, "<h1>Simulator</h1>", "Nobody has an event that counts yet", "No objects to order", "affinity import --objects")
	s.lacks(page, "sim-boost")

	s.lacks(s.page("/console/object"), "problem")
	s.inOrder(s.page("/console/object?id=%3Ci%3E&index=products"), "&lt;i&gt;", "has no statistics")
	s.inOrder(s.page("/console/object?id=a"), "problem", "index must have 1 to")
	s.inOrder(s.as("settings").page("/console/object?id=a&index=products"), "This key cannot recommend objects")

	page = s.get(http.StatusOK, "user", "ann", "index", "products", "ids", "a\nb")
	s.inOrder(page, "The engine knows no events of", "ann", "holds none of these objects", "affinity catalog import --index products objects.ndjson.gz",
		"affinity crowd build --index products", "This person has no profile")
}

func TestSimulatorOrders(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "zeta-blue", "zeta-blue", "zeta-red")
	page := s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "impact", "100")
	s.inOrder(page, "Another object comes first.", "Today", "Red Shoe", "Acme", "49.5", "Blue Shoe", "Red Boot", "Blue Boot",
		"For this person", "Blue Boot", "▲", "3<span class=\"hidden\"> places up", "likes <bdi>brand:Zeta</bdi>", "Score 1.", "Red Boot", "▼", "places down")
	s.inOrder(page, "affinity rank --user ann --index products --explain acme-red acme-blue zeta-red zeta-blue")
	s.inOrder(page, "/1/rank")
	s.shows(page, `<a href="`+s.stack.URL+`/docs/boosts">`) // at the API: a console of its own host has no reference

	page = s.get(http.StatusOK, "user", "", "index", "products", "ids", simIDs)
	s.inOrder(page, "A new person", "nothing moves", "For a new person", "Red Shoe", "Blue Shoe", "Red Boot", "Blue Boot")

	s.inOrder(s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "impact", "0"), "At impact 0 there is nothing to add")

	page = s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "seen", "exclude")
	s.inOrder(page, "For this person", "2 left out: the person has seen them.")
	page = s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "diversity", "strong")
	s.inOrder(page, "diversity&#34;:{&#34;lambda&#34;:0.5}")
}

// The first visit shows a user and what people looked at, and the buttons choose others.
func TestSimulatorChooses(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "zeta-blue", "zeta-red", "acme-red")
	s.views("bob", "acme-blue")
	page := s.get(http.StatusOK)
	s.inOrder(page, `value="ann"`, `value="products"`, "acme-blue", "For this person", "Boot")
	page = s.post(false, "user", "ann", "index", "products", "ids", simIDs, "pick", "new")
	s.inOrder(page, `name="user" type="text" value=""`, "acme-red", "A new person")
	page = s.post(false, "user", "", "index", "products", "ids", simIDs, "pick", "random")
	s.inOrder(page, "acme-red", "For this person")
	page = s.post(false, "user", "bob", "index", "products", "ids", simIDs, "from", "person", "fill", "1")
	s.inOrder(page, ">\nacme-blue\n</textarea>")
	page = s.post(false, "user", "nobody", "index", "products", "ids", simIDs, "from", "person", "fill", "1")
	s.inOrder(page, "acme-red", "the list stays as it was")
	page = s.post(false, "user", "bob", "index", "products", "ids", simIDs, "from", "value", "with", "brand:Zeta", "fill", "1")
	s.inOrder(page, ">\nzeta-blue\nzeta-red\n</textarea>", `value="value" selected`, `name="with" value="brand:Zeta"`, "For this person")
	page = s.post(false, "user", "bob", "index", "products", "ids", simIDs, "from", "value", "with", "brand:None", "fill", "1")
	s.inOrder(page, "acme-red", "No object of the index has this value")
	page = s.post(false, "user", "bob", "index", "products", "ids", simIDs, "from", "value", "with", "Zeta", "fill", "1")
	s.inOrder(page, "acme-red", "The objects cannot be listed: filter must be")
	page = s.post(false, "user", "bob", "index", "products", "ids", simIDs, "from", "latest:news", "fill", "1")
	s.inOrder(page, "acme-red", "The feed cannot be read")
}

// htmx gets the result alone, and the engine keeps to the chosen search engine.
func TestSimulatorFragment(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "zeta-blue")
	live := s.post(true, "user", "ann", "index", "products", "ids", simIDs, "impact", "80", "engine", "algolia", "show", "solr")
	s.inOrder(live, `id="sim-said"`, `hx-swap-oob="true"`, "sim-columns", `name="engine" value="solr"`, "rqq")
	s.lacks(live, "<html", "<nav", "<form", "sim-form")
	for engine, key := range map[string]string{
		"algolia": "optionalFilters", "elasticsearch": "function_score", "opensearch": "function_score", "typesense": "sort_by", "postgres": "expression",
		"minisearch": "impact",
	} {
		s.inOrder(s.post(true, "user", "ann", "index", "products", "ids", simIDs, "engine", engine), "/docs/guides/engines/"+engine, "&#34;"+key)
	}
	// Without statistics the engine does not know which values a catalog holds.
	s.inOrder(s.post(true, "user", "ann", "index", "products", "ids", simIDs, "engine", "prompt"), "Nothing of the profile can be said", "left out of the query, and why", "brand:Zeta")
}

func TestSimulatorComparesVersions(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "zeta-blue", "zeta-blue")
	s.must(s.engine.Strategies().SetJSON(t.Context(), []byte(strings.Replace(simStrategy, `"halfLives":[7,30]`, `"halfLives":[3]`, 1)), client.SetOptions{}))
	page := s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "version", "1", "halfLife", "3")
	s.inOrder(page, `<option value="1" selected>Version 1 of`, "Today", "For this person", "With version 1", "Arrows compare with the active strategy")
	page = s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "version", "77")
	s.inOrder(page, `role="alert"`)
	s.lacks(page, "sim-columns")
}

func TestSimulatorPermissions(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "zeta-blue")
	s.enter("admin")
	s.inOrder(s.get(http.StatusOK), "This key cannot order objects")
	s.enter("recommendation")
	page := s.get(http.StatusOK)
	s.inOrder(page, "A list of users needs a key with the permission admin", "No objects to order")
	s.lacks(page, "At random", "What people looked at")
	page = s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs)
	s.inOrder(page, "to read names, the key needs the permission addObject", "For this person", "zeta-blue", "likes")
	if answer, _ := s.send("POST", "/console/simulator", url.Values{"csrf": {"wrong"}, "ids": {"a"}}); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another session: %s", answer.Status)
	}
}

func TestSimulatorRefusals(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	page := s.get(http.StatusOK, "user", "a/b?c#d%e <x>", "index", "products", "ids", simIDs)
	s.inOrder(page, `role="alert"`, "A user token has 1 to 129 letters")
	s.lacks(page, "<x>")
	page = s.get(http.StatusOK, "user", "ann", "index", "", "ids", simIDs)
	s.inOrder(page, `role="alert"`, "The index must have 1 to")
	page = s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs, "impact", "1e9", "seen", "?", "engine", "vespa", "version", "-3", "halfLife", "9z")
	s.inOrder(page, "For this person")
}

func TestSimulatorOfManyObjects(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "zeta-blue")
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprintf("object-%04d", i)
	}
	ids[999] = "zeta-blue"
	page := s.post(false, "user", "ann", "index", "products", "ids", strings.Join(ids, "\r\n"), "impact", "90")
	s.inOrder(page, "Today", "and 980 more", "For this person", "Blue Boot", "999<span", "and 980 more", "- &lt; ids.txt")
	s.lacks(page, "Link to this comparison")
	if strings.Count(page, `<li class="sim-card">`) != 40 {
		t.Error("not 20 cards in each column")
	}
	if t.Logf("%d bytes", len(page)); len(page) > 80<<10 { // what it loads has 20 KB
		t.Errorf("the page has %d bytes, which are too many for a first paint", len(page))
	}
}

// What attackers write stays text: markup, directions, controls, quotes and long values.
func TestSimulatorOfHostileData(t *testing.T) {
	t.Parallel()
	s := newSimSite(t)
	s.shop()
	hostile := []string{
		"<script>alert(1)</script>", "a\u202eb", `"quoted' & "`, "tab\tbell\a", "[1]", strings.Repeat("x", 400), "e\U000e0041tag", "'; rm -rf /",
	}
	for i, text := range hostile {
		s.object(text, map[string]any{"name": text + strings.Repeat("y", 4<<10), "brand": text, "color": "Red", "price": []any{map[string]any{"value": text}}})
		s.views(fmt.Sprint("user-", i), text)
	}
	list, err := json.Marshal(hostile)
	s.must(err)
	for _, engine := range []string{"algolia", "postgres", "minisearch", "prompt"} {
		page := s.get(http.StatusOK, "user", "user-1", "index", "products", "ids", string(list), "engine", engine)
		s.inOrder(page, "For this person", `\u202e`)
		s.lacks(page, "<script>alert", "\u202e", "\a", "\U000e0041", strings.Repeat("y", 1100))
	}
	// The list that the form shows gives the same objects again.
	page := s.get(http.StatusOK, "user", "user-0", "index", "products", "ids", string(list))
	_, text, _ := strings.Cut(page, "<textarea")
	_, text, _ = strings.Cut(text, ">\n")
	text, _, _ = strings.Cut(text, "</textarea>")
	again := s.get(http.StatusOK, "user", "user-0", "index", "products", "ids", strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&", "&#43;", "+").Replace(text))
	if cut := func(p string) string {
		_, p, _ = strings.Cut(p, "<textarea")
		p, _, _ = strings.Cut(p, "</textarea>")
		return p
	}; cut(page) != cut(again) {
		t.Errorf("the list reads back as another one:\n%s\n%s", cut(page), cut(again))
	}
}

func TestSimulatorFillsFromFeeds(t *testing.T) {
	t.Parallel()
	s := newSimSite(t)
	s.shop()
	s.object("old", map[string]any{"name": "Old", "brand": "Acme", "at": "2026-01-01T00:00:00Z"})
	s.object("newer", map[string]any{"name": "Newer", "brand": "Acme", "at": "2026-02-01T00:00:00Z"})
	_, err := s.engine.Feeds().Set(t.Context(), "news", api.FeedRequest{Index: "products", Date: "at"})
	s.must(err)
	s.must(s.stack.Idle(t.Context()))
	page := ""
	for range 150 { // an empty feed is read again after some seconds
		page = s.post(false, "user", "ann", "index", "", "ids", "x", "from", "latest:news", "fill", "1")
		if strings.Contains(page, "newer") {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.inOrder(page, `value="products"`, ">\nnewer\nold\n</textarea>", "Feed news, the newest first", "Newer", "Old")
}

// A draft that nobody has published ranks beside the active strategy, and goes back to the page of
// the strategy as it came.
func TestSimulatorComparesTheDraft(t *testing.T) {
	s := newSimSite(t)
	s.shop()
	s.views("ann", "acme-red", "zeta-red", "zeta-red")
	page := s.get(http.StatusOK, "user", "ann", "index", "products", "ids", simIDs)
	s.lacks(page, "The draft</option>", "Back to the draft")
	s.inOrder(page, "open the draft here")

	// From the page of the strategy: its sliders make the draft, and the page chooses the rest.
	_, strategyPage := s.send("GET", "/console/strategy", nil)
	hash := regexp.MustCompile(`name="hash" value="([^"]+)"`).FindStringSubmatch(strategyPage)[1]
	_, text, _ := strings.Cut(strategyPage, `<textarea id="json"`)
	_, text, _ = strings.Cut(text, ">")
	text, _, _ = strings.Cut(text, "</textarea>")
	page = s.post(false, "json", html.UnescapeString(text), "hash", hash, "version", "1",
		"facet", "brand", "facetScore", "0", "facetSlide", "60", "impact", "100", "impactSlide", "50", "index", "another", "halfLife", "9")
	s.inOrder(page, "now and with your draft", `name="began" value="1"`, `value="draft" selected>The draft`, "Back to the draft", `name="version" value="1"`,
		"Today", "For this person", "Strategy version 1", "With the draft", "your draft. Its impact is 100.", "--draft draft.json", "draft&#34;")
	s.inOrder(page, `{&#34;facetName&#34;: &#34;brand&#34;, &#34;score&#34;: 0}`)
	s.lacks(page, "Link to this comparison")

	// Ann likes red and the maker Zeta; the draft knows no makers.
	draft := `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50,
		"unknown\u202e":1}`
	fields := []string{"user", "ann", "index", "products", "ids", "acme-blue\nzeta-blue\nacme-red", "began", "1", "json", draft}
	page = s.post(false, append(fields, "version", "draft")...)
	s.inOrder(page, `role="alert"`, "The engine does not take the draft: Unknown field")
	s.lacks(page, "\u202e", "sim-columns")
	fields[len(fields)-1] = strings.Replace(draft, `,
		"unknown\u202e":1`, "", 1)
	live := s.post(true, append(fields, "version", "draft", "impact", "100")...)
	_, drafted, _ := strings.Cut(live, "With the draft")
	s.inOrder(drafted, "Red Shoe", "Blue Shoe", "Blue Boot")
	_, now, _ := strings.Cut(live, "For this person")
	now, _, _ = strings.Cut(now, "With the draft")
	s.inOrder(now, "Red Shoe", "Blue Boot", "Blue Shoe")
	page = s.post(false, append(fields, "version", "")...)
	s.inOrder(page, `value="draft">The draft`, "Back to the draft")
	s.lacks(page, "With the draft")

	form := simValues(fields)
	form = url.Values{"json": form["json"], "version": {"1"}}
	_, strategyPage = s.person.post("/console/strategy", form)
	s.inOrder(strategyPage, "What it would change", "brand")
	s.lacks(strategyPage, "after this draft began")
	if version, err := s.engine.Strategies().Versions(t.Context()); err != nil || len(version.Versions) != 1 {
		t.Errorf("drafts were stored: %+v, %v", version, err)
	}
}
