package clients

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/algolia/algoliasearch-client-go/v3/algolia/insights"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/opt"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/personalization"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/region"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/search"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

var rewrite = flag.Bool("rewrite", false, "write what the JavaScript clients print to testdata")

func start(t *testing.T, origins ...string) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Origins: origins, Apps: []stack.App{{ID: "demo", Key: "demokey"}, {ID: "tight", Key: "tightkey"}}, RetentionDays: 90})
	if err != nil {
		t.Fatal(err)
	}
	// Two events per second, one of them by the slow lane.
	if err := s.Backends.CachedConfig.SetLimits(t.Context(), "tight", limit.Numbers{EventsPerSecond: 1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestJavaScriptClients needs Node and npm's registry.
func TestJavaScriptClients(t *testing.T) {
	must.Start(t, must.Clients)
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "clients.mjs", "segment.mjs", "both.mjs", "bothtest.mjs", "widgets.mjs", "segmentpage.mjs", "rudderpage.mjs", "pagetest.mjs", "signintest.mjs", "wordpress.mjs"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "both.mjs" { // in Node, the package has no requests of browsers
			text = bytes.Replace(text, []byte("'search-insights'"), []byte("'./node_modules/search-insights/dist/search-insights-browser.mjs'"), 1)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("the JavaScript clients cannot be installed, so they are not tested: %v\n%s", err, out)
	}
	t.Run("Algolia", func(t *testing.T) { prints(t, dir, "clients.mjs", start(t).URL, "testdata/clients.txt") })
	t.Run("Algolia and Affinity", func(t *testing.T) { prints(t, dir, "bothtest.mjs", start(t).URL, "testdata/both.txt") })
	t.Run("InstantSearch and Autocomplete", func(t *testing.T) { prints(t, dir, "widgets.mjs", start(t).URL, "testdata/widgets.txt") })
	t.Run("Segment", func(t *testing.T) {
		s := start(t)
		c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey", Retry: client.NoRetry})
		if err != nil {
			t.Fatal(err)
		}
		prints(t, dir, "segment.mjs", s.URL, "testdata/segment.txt")
		if err := s.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A call that was sent twice counts once, and two that differ in their messageId twice; those without a product are counted.
		for user, want := range map[string]int{"segment": 3, "segment-anonymous": 1} {
			if e, err := c.Profiles().Explain(t.Context(), user, api.ExplainQuery{}); err != nil || e.Events.Accepted != want {
				t.Errorf("events of %s: %+v, %v; want %d", user, e.Events, err, want)
			}
		}
		refused, err := c.Events().Refused(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{"Ignored: identify call": 1, "Ignored: page call": 1, track.ErrType.Error(): 1}
		if diff := cmp.Diff(want, refused.Counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	})
	t.Run("WordPress", func(t *testing.T) { testWordPress(t, dir) })
	t.Run("pages", func(t *testing.T) { testPages(t, dir) })
	t.Run("sign-ins", func(t *testing.T) { testSignIns(t, dir) })
}

// The documentation shows the modules that the tests run.
func TestModulesAreShown(t *testing.T) {
	for name, page := range map[string]string{"both.mjs": "../../functions/docs/guides/algolia.md", "segmentpage.mjs": "../../functions/docs/reference/segment-sdks.md", "rudderpage.mjs": "../../functions/docs/reference/segment-sdks.md"} {
		module, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, append([]byte("```js\n"), module...)) {
			t.Errorf("%s does not show %s as it is", page, name)
		}
	}
}

// prints runs a script of dir against an engine and compares what it prints.
func prints(t *testing.T, dir, script, url, golden string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "node", script, url)
	run.Dir, run.Stderr = dir, os.Stderr
	got, err := run.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s", script, err, got)
	}
	same(t, golden, string(got))
}

// same compares what clients did with a file.
func same(t *testing.T, golden, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

// plainHTTP sends the Go client's requests, which are made for https, to a local
// engine.
type plainHTTP struct{}

func (plainHTTP) Request(r *http.Request) (*http.Response, error) {
	r.URL.Scheme = "http"
	return http.DefaultClient.Do(r)
}

func TestGoClient(t *testing.T) {
	s := start(t)
	hosts := []string{s.URL[len("http://"):]}

	p := personalization.NewClientWithConfig(personalization.Configuration{
		AppID: "demo", APIKey: "demokey", Region: region.US, Hosts: hosts, Requester: plainHTTP{}})
	want := personalization.Strategy{
		EventsScoring:         []personalization.EventsScoring{{EventName: "Seen", EventType: "view", Score: 10}},
		FacetsScoring:         []personalization.FacetsScoring{{FacetName: "color", Score: 5}},
		PersonalizationImpact: opt.PersonalizationImpact(30),
	}
	if _, err := p.SetPersonalizationStrategy(want); err != nil {
		t.Fatal(err)
	}
	got, err := p.GetPersonalizationStrategy()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.EventsScoring, got.EventsScoring); diff != "" {
		t.Errorf("strategy (-set +got):\n%s", diff)
	}

	c := search.NewClientWithConfig(search.Configuration{AppID: "demo", APIKey: "demokey", Hosts: hosts, Requester: plainHTTP{}})
	saved, err := c.InitIndex("products").SaveObjects([]map[string]any{{"objectID": "1", "color": "Red"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := saved.Wait(); err != nil {
		t.Fatal(err)
	}

	i := insights.NewClientWithConfig(insights.Configuration{AppID: "demo", APIKey: "demokey", Hosts: hosts, Requester: plainHTTP{}})
	res, err := i.SendEvents([]insights.Event{{EventType: "view", EventName: "Seen", Index: "products", UserToken: "go",
		Timestamp: time.Now().Add(-time.Hour), ObjectIDs: []string{"1"}}})
	if err != nil || res.Status != http.StatusOK || res.Message != "OK" {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := i.SendEvent(insights.Event{EventType: "view", EventName: "Seen", Index: "products", UserToken: "a b", ObjectIDs: []string{"1"}}); err == nil {
		t.Error("a malformed token was accepted")
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	app, err := s.Backends.Config.App(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	profile, err := s.Backends.Profiles.Read(t.Context(), app, "go", 0)
	if err != nil || len(profile.Affinities) != 1 || profile.Affinities[0].Scores[0] != 50 {
		t.Errorf("%+v, %v; want color:Red with 50", profile, err)
	}
}

// Over its limit, an app's events take the slow lane and then are refused. Go's client
// returns a 429 as an error and does not try again. Every event that was accepted
// is in a profile, also those of a beacon, whose sender sees no answer.
func TestGoClientAtTheLimit(t *testing.T) {
	s := start(t)
	scores := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}}}
	if _, _, err := s.Backends.CachedConfig.SetStrategy(t.Context(), "tight", scores); err != nil {
		t.Fatal(err)
	}
	client := insights.NewClientWithConfig(insights.Configuration{AppID: "tight", APIKey: "tightkey", Hosts: []string{s.URL[len("http://"):]}, Requester: plainHTTP{}})
	accepted := 0
	for {
		_, err := client.SendEvent(insights.Event{EventType: "view", EventName: "Seen", Index: "products", UserToken: "go", Filters: []string{"color:Red"}})
		if err != nil {
			if !strings.Contains(err.Error(), "429") || !strings.Contains(err.Error(), "The app's limit is 1 events per second") {
				t.Fatalf("after %d events: %v", accepted, err)
			}
			break
		}
		accepted++
	}
	for range 3 { // a beacon: the page goes away, and the answer is for nobody
		answer, err := http.Post(s.URL+"/1/events?X-Algolia-Application-Id=tight&X-Algolia-API-Key=tightkey", "text/plain;charset=UTF-8",
			strings.NewReader(`{"events":[{"eventType":"view","eventName":"Seen","index":"products","userToken":"go","filters":["color:Red"]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode == http.StatusOK {
			accepted++
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	app, err := s.Backends.Config.App(t.Context(), "tight")
	if err != nil {
		t.Fatal(err)
	}
	profile, err := s.Backends.Profiles.Read(t.Context(), app, "go", 0)
	if err != nil || len(profile.Affinities) != 1 || profile.Affinities[0].Scores[0] != float64(accepted) {
		t.Errorf("%+v, %v; want color:Red with %d", profile, err, accepted)
	}
}
