package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// A draft never replaces a version that its author has not seen.
func TestStrategyRace(t *testing.T) {
	s, b := shoeShop(t, "recommendation")
	form := b.get("/console/strategy").form()
	form["eventScore"][0] = "60"
	review := b.post("/console/strategy/review", form)
	other := shoes()
	other.FacetsScoring[0].Score = 77
	functiontest.SetStrategy(t, s, other)
	_, version := active(t, s)

	page := b.post("/console/strategy", form)
	page.shows(t, "after this draft began with version")
	asked := b.post("/console/strategy/publish", review.form())
	asked.shows(t, fmt.Sprintf("Version %d was published", version), "Nothing was published so far", "Facet color: 77 → 40", "View “Seen”: 10 → 60")
	if got, now := active(t, s); now != version || !got.Equal(other) {
		t.Fatalf("version %d replaced version %d", now, version)
	}
	if answer := b.post("/console/strategy/publish", asked.form()); answer.Status != http.StatusSeeOther {
		t.Errorf("asked again and agreed: %d\n%s", answer.Status, answer.plain())
	}
	if got, now := active(t, s); now != version+1 || got.FacetScore("color") != 40 {
		t.Errorf("version %d is %+v", now, got)
	}
}

// A form that is sent twice publishes once, and the second answer does not deny it. So does another
// person's draft of the same strategy.
func TestStrategyPublishedTwice(t *testing.T) {
	s, b := shoeShop(t, "recommendation")
	draft := b.get("/console/strategy").form()
	draft["eventScore"][0] = "60"
	form := b.post("/console/strategy/review", draft).form()
	if answer := b.post("/console/strategy/publish", form); answer.To != "/console/strategy?done=strategy-published" {
		t.Fatalf("%d to %q", answer.Status, answer.To)
	}
	_, version := active(t, s)
	for _, note := range []string{"", strings.Repeat("x", 201)} { // a note that nothing needs is no fault
		form.Set("note", note)
		again := b.post("/console/strategy/publish", form)
		if again.To != "/console/strategy?done=strategy-is" {
			t.Fatalf("sent again: %d to %q: %s", again.Status, again.To, again.plain())
		}
		b.get(again.To).shows(t, "This draft is published: it is the active strategy.")
	}
	review := b.post("/console/strategy/review", draft)
	review.shows(t, fmt.Sprintf("Version %d, which was published", version), "is this draft.", "No changes")
	review.lacks(t, "Nothing was published", "If you publish")

	first := fmt.Sprintf("/console/strategy/versions/%d", version-1)
	form = b.get(first).form()
	for _, want := range []string{"strategy-restored", "strategy-same-version"} {
		if answer := b.post(first+"/restore", form); answer.To != "/console/strategy/versions?done="+want {
			t.Errorf("restored: %d to %q, want %s", answer.Status, answer.To, want)
		}
	}
	if got, now := active(t, s); now != version+1 || !got.Equal(shoes()) {
		t.Errorf("version %d is %+v", now, got)
	}
}

// Names that match nothing are accepted. The preview and the page before the publication name them.
func TestStrategyOfNamesThatMatchNothing(t *testing.T) {
	s, b := shoeShop(t, "recommendation")
	page := b.get("/console/strategy")
	page.shows(t, "Ignored in every facet: “not-set”, “(not set)”", "the default")
	form, wanted := page.form(), shoes()
	wanted.FacetsScoring = append(wanted.FacetsScoring, strategy.FacetScore{FacetName: "a:b", Score: 1})
	wanted.IgnoredValues = []string{"N/A"}
	wanted.AllowedValues = map[string]strategy.ValueSet{"color": strategy.SetOf("Red", "Blue", "Green", "Black", "White", "Grey")}
	text, err := json.Marshal(wanted)
	must.Succeed(t, err)
	form.Set("json", string(text))
	warning := `facetsScoring[` + fmt.Sprint(len(wanted.FacetsScoring)-1) + `].facetName "a:b" has a colon`
	b.post("/console/strategy", form).shows(t, "may match nothing", warning)
	review := b.post("/console/strategy/review", form)
	review.shows(t, warning, "Ignored values: the default → “N/A”",
		"Facet color scores no values but “Black”, “Blue”, “Green”, “Grey”, “Red” and 1 more")
	if answer := b.post("/console/strategy/publish", review.form()); answer.To != "/console/strategy?done=strategy-published" {
		t.Fatalf("%d to %q", answer.Status, answer.To)
	}
	if got, _ := active(t, s); !got.Equal(wanted) {
		t.Errorf("published %+v", got)
	}
	b.get("/console/strategy").shows(t, "Ignored in every facet: “N/A”", "Facet color scores no values but “Black”")
	// The sliders keep what they do not show.
	form = b.get("/console/strategy").form()
	form["eventScore"][0] = "61"
	b.post("/console/strategy/publish", b.post("/console/strategy/review", form).form())
	if got, _ := active(t, s); got.EventsScoring[0].Score != 61 || len(got.AllowedValues["color"]) != 6 || len(got.IgnoredValues) != 1 {
		t.Errorf("published %+v", got)
	}
}

// The largest strategies have texts that a form needs three bytes for each byte of.
func TestStrategyOfManyAliases(t *testing.T) {
	race.Skip(t, "it sends one request at a time")
	s, b := shoeShop(t, "recommendation")
	large, same := shoes(), strings.Repeat("ж", 90)
	pairs := map[string]string{}
	for i := range 2_200 {
		pairs[fmt.Sprintf("%s %d", same, i)] = "синий"
	}
	large.Aliases = map[string]map[string]string{"color": pairs}
	text, err := json.Marshal(large)
	must.Succeed(t, err)
	form := url.Values{"csrf": b.get("/console/strategy").form()["csrf"], "version": b.get("/console/strategy").form()["version"], "json": {string(text)}}
	if len(text) < 400_000 || len(form.Encode()) < 1<<20 {
		t.Fatalf("the strategy has %d bytes, the form %d", len(text), len(form.Encode()))
	}
	for _, path := range []string{"/console/strategy", "/console/strategy/preview", "/console/simulator"} {
		if page := b.post(path, form); page.Status != http.StatusOK {
			t.Fatalf("%s: %d: %s", path, page.Status, page.plain()[:min(500, len(page.plain()))])
		}
	}
	review := b.post("/console/strategy/review", form)
	if answer := b.post("/console/strategy/publish", review.form()); answer.To != "/console/strategy?done=strategy-published" {
		t.Fatalf("%d to %q", answer.Status, answer.To)
	}
	if got, _ := active(t, s); !got.Equal(large) {
		t.Errorf("%d aliases are published", len(got.Aliases["color"]))
	}
	form.Set("json", strings.Repeat("x", 5<<20))
	b.post("/console/strategy/review", form).shows(t, "larger than 4 MiB")
	b.post("/console/jobs/start", form).shows(t, "larger than 1 MiB")
}

// A form that does not say which version its author saw publishes nothing.
func TestStrategyVersionIsNeeded(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, shoes())
	_, version := active(t, s)
	b := strategistOf(t, s, "recommendation")
	form := b.get("/console/strategy").form()
	form["eventScore"][0] = "60"
	review := b.post("/console/strategy/review", form).form()
	review.Set("active", "x")
	for _, bad := range []string{"", "x", "-1", "1.5", "99999999999999999999"} {
		form.Set("version", bad)
		review.Set("version", bad)
		for path, form := range map[string]url.Values{
			"": form, "/review": form, "/publish": review, fmt.Sprintf("/versions/%d/restore", version): review,
		} {
			if answer := b.post("/console/strategy"+path, form); answer.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s with the version %q: %d\n%s", path, bad, answer.Status, answer.plain())
			}
		}
	}
	review.Del("version")
	if answer := b.post("/console/strategy/publish", review); answer.Status != http.StatusUnprocessableEntity {
		t.Errorf("without a version: %d", answer.Status)
	}
	if got, now := active(t, s); now != version || !got.Equal(shoes()) {
		t.Errorf("version %d is %+v", now, got)
	}
}

// Of persons who publish at once, after the same version, one does, and the others see their drafts again.
func TestStrategyAtOnce(t *testing.T) {
	s := functiontest.Start(t)
	b := strategistOf(t, s, "recommendation")
	_, before := active(t, s)
	const persons = 8
	answers := make(chan strategyView, persons)
	page := b.get("/console/strategy").form()
	for i := range persons {
		form := url.Values{"csrf": page["csrf"], "version": page["version"], "note": {fmt.Sprintf("note %d", i)},
			"json": {fmt.Sprintf(`{"eventsScoring":[],"facetsScoring":[{"facetName":"color","score":%d}],"personalizationImpact":1}`, i+1)}}
		go func() { answers <- b.post("/console/strategy/publish", form) }()
	}
	published := 0
	for range persons {
		if answer := <-answers; answer.Status == http.StatusSeeOther {
			published++
		} else {
			answer.shows(t, "after your draft began", "Nothing was published so far", "note ", "Replace version")
		}
	}
	versions, err := s.Backends.Config.StrategyVersions(t.Context(), functiontest.App)
	if _, now := active(t, s); err != nil || published != 1 || len(versions) != 1 || now <= before {
		t.Errorf("%d published, %d versions, error %v", published, len(versions), err)
	}
}

func TestStrategyHistory(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, shoes())
	_, first := active(t, s)
	other := shoes()
	other.FacetsScoring[0].Score, other.HalfLives = 77, nil
	functiontest.SetStrategy(t, s, other)
	b := strategistOf(t, s, "recommendation")
	b.get("/console/strategy/versions").shows(t, fmt.Sprintf("Version %d active", first+1), fmt.Sprintf("Compare version %d with the active one", first))
	path := fmt.Sprintf("/console/strategy/versions/%d", first)
	page := b.get(path)
	page.shows(t, "Facet color: 77 → 40", "Half-lives: none → 30 days", "recomputed in the background", `"scoringChange": true`, "Edit it first")
	b.get(fmt.Sprintf("/console/strategy?from=%d", first)).shows(t, fmt.Sprintf("This draft is version %d", first), "−37")

	form := page.form()
	stale := url.Values{"csrf": form["csrf"], "active": {fmt.Sprint(first)}}
	b.post(path+"/restore", stale).shows(t, "Nothing was restored")
	if answer := b.post(path+"/restore", form); answer.To != "/console/strategy/versions?done=strategy-restored" {
		t.Fatalf("restored: %d to %q", answer.Status, answer.To)
	}
	if got, now := active(t, s); now != first+2 || !got.Equal(shoes()) {
		t.Errorf("version %d is %+v", now, got)
	}
	for _, unknown := range []string{"/console/strategy/versions/0", "/console/strategy/versions/x", "/console/strategy/versions/987654", "/console/strategy?from=987654"} {
		if page := b.get(unknown); page.Status != http.StatusNotFound {
			t.Errorf("%s: %d", unknown, page.Status)
		}
	}
}
