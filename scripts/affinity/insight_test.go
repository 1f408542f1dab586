package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// fixedAnswer starts a server that gives one answer to every request.
func fixedAnswer(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintln(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestInsightCommands explains, previews and audits on a real engine.
func TestInsightCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	seen := `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[{"facetName":"color","score":3}],"personalizationImpact":50}`
	affinity(t, seen, "strategy", "set", "-", "--url", s.URL).wants(t, cli.ExitOK)
	event := func(user, name, filter string) map[string]any {
		return map[string]any{"eventType": "view", "eventName": name, "index": "i", "userToken": user, "filters": []string{filter},
			"timestamp": time.Now().Add(-time.Hour).UnixMilli()}
	}
	events := []any{event("ann", "Seen", "color:Red"), event("ann", "Seen", "color:Blue"), event("bob", "Product Seen", "color:Red"), event("bob", "Seen", "size:L")}
	if _, err := post(t.Context(), s, "/1/events", map[string]any{"events": events}); err != nil {
		t.Fatal(err)
	}
	must(t, s.Idle(t.Context()))

	affinity(t, "", "explain", "bob", "--url", s.URL).wants(t, cli.ExitOK,
		"bob  strategy version 1  retention 90 days", `- 1 of 2 events is of types and names that the strategy does not score: view "Product Seen" (1)`,
		"2 events from ", "2 not scored by the strategy")
	affinity(t, "", "explain", "ann", "--facet", "color", "--value", "Red", "--url", s.URL).wants(t, cli.ExitOK,
		"2 counted", "color:Red scores 30", "contribution", `view "Seen"`, "30      1      1      30\n")
	r := affinity(t, "", "explain", "ann", "--json", "--url", s.URL)
	r.wants(t, cli.ExitOK)
	var x api.Explanation
	if err := json.Unmarshal([]byte(r.out), &x); err != nil || x.Events.Counted != 2 {
		t.Errorf("--json printed %q (%v)", r.out, err)
	}

	more := `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1},{"eventName":"Product Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":3}]}`
	affinity(t, more, "strategy", "preview", "-", "--url", s.URL).wants(t, cli.ExitOK,
		"the order of values would change for 1 of 2 users (2 users sampled; compared with version 1, which is active)\n",
		"  among the first five for 1, at the first place for 1; shares of values would change for 1\n",
		"rank correlation: 0.500 on average", "color, mean share of the profile:\n", "  Red   25.0 % ->  75.0 %  +50.0 points  1 user\n",
		"bob  rank correlation 0.000\n    before  nothing\n    after   color:Red\n", " of 2 users in ", "a recompute of all 2 users and 4 events takes less than a second of CPU, for less than 0.0001 US dollars: an estimate; `affinity plan` has the rest\n")
	half := strings.Replace(more, `"score":3}]`, `"score":1}]`, 1)
	affinity(t, half, "strategy", "preview", "-", "--url", s.URL).wants(t, cli.ExitOK, "would change for 1 of 2 users")
	r = affinity(t, more, "strategy", "preview", "-", "--sample", "1", "--json", "--url", s.URL)
	r.wants(t, cli.ExitOK, `"sampled":1`)
	affinity(t, `{"eventsScoring":1}`, "strategy", "preview", "-", "--url", s.URL).wants(t, cli.ExitFailed, "preview the strategy", "422 eventsScoring must be a list")

	affinity(t, "", "audit", "--sample", "50", "--url", s.URL).
		wants(t, cli.ExitOK, "no differences: 2 users compared with 4 events, 2 with their stored profiles too\n")
}

// A preview says whom its sample leaves out.
func TestPreviewOfAStretch(t *testing.T) {
	t.Parallel()
	answer := func(from string) string {
		return `{"sampled":100,"known":90,"changed":80,"unchanged":10,"strategyVersion":1,"values":{"changed":70,"topFiveChanged":20,"topChanged":9},` +
			`"objects":{"index":"shoes","compared":20,"changed":60,"topFiveChanged":30,"topChanged":11},"scale":1e-65,"cost":{"events":900,"blocks":90,"took":250,"recompute":{"users":1000000,"events":9000000,"cpuSeconds":15.2,"usd":0.00036}},` +
			`"rankCorrelation":null,"facets":[],"examples":[],"chosenFrom":` + from + `}`
	}
	const text = `{"eventsScoring":[],"facetsScoring":[]}`
	stretch := fixedAnswer(t, 200, answer(`{"users":50000,"all":false,"first":"m\u001b7","last":"c2"}`))
	affinity(t, text, "strategy", "preview", "-", "--url", stretch).wants(t, cli.ExitOK, "the order of values would change for 70 of 90 users (100 users sampled; compared with version 1, which is active)\n"+
		"sampled from 50000 users only, a stretch that begins at a random place: from m\uFFFD7 to c2; no other user was looked at\n"+
		"  among the first five for 20, at the first place for 9; shares of values would change for 80\n"+
		"the order of the same 20 objects of shoes would change for 60 users: among the first five for 30, at the first place for 11\n"+
		"scores would fall to 1.00e-65 of what they are: the events are too old for the half-life, and count next to nothing\n"+
		"\nread 900 events and 90 blocks of 100 users in 0.2 s\na recompute of 1000000 such users and 9000000 events takes about 15 s of CPU, for 0.0004 US dollars: an estimate; `affinity plan` has the rest\n")
	if r := affinity(t, text, "strategy", "preview", "-", "--url", fixedAnswer(t, 200, answer(`{"users":500,"all":true}`))); strings.Contains(r.out, "only") {
		t.Errorf("a sample of all users: %s", r.out)
	}
}

func TestExplainManyEvents(t *testing.T) {
	t.Parallel()
	engine := fixedAnswer(t, 200, `{"userToken":"u","asOf":"2026-11-20T12:00:00.000Z","known":true,"strategyVersion":2,"retentionDays":0,
		"events":{"accepted":12,"counted":11,"ahead":1},"firstEventAt":"2026-01-01T00:00:00.000Z","lastEventAt":"2026-11-20T13:00:00.000Z","reasons":["a\u001bb"],
		"facet":"color","value":"Red","score":45.5,"contributions":[{"events":10,"from":"2026-01-01T00:00:00.000Z","to":"2026-02-01T00:00:00.000Z","contribution":15.5},
		{"time":"2026-11-01T00:00:00.000Z","type":"view","name":"Seen","index":"products","objectIDs":["1","2"],"values":["Rouge"],"weight":30,"count":2,"decay":0.5,"contribution":30}]}`)
	affinity(t, "", "explain", "u", "--facet", "color", "--value", "Red", "--url", engine).wants(t, cli.ExitOK,
		"no retention limit", "- a\uFFFDb\n", "12 events from 2026-01-01T00:00:00Z", "1 later than now", "color:Red scores 45.5",
		"10 events until 2026-02-01T00:00:00Z", "products: 1, 2 (Rouge)", "0.5    30\n")
}

func TestAuditWithDifferencesFails(t *testing.T) {
	t.Parallel()
	engine := fixedAnswer(t, 200, `{"sampled":50,"compared":40,"stored":30,"events":400,"byScorer":0,"differing":2,"omitted":3,"differences":[
		{"userToken":"ann","which":"stored","what":"score","facet":"color","value":"Red","halfLife":30,"want":35,"got":30.25},
		{"userToken":"bob","which":"computed","what":"known","want":true,"got":false},
		{"userToken":"bob","which":"history","what":"missing","value":"block 3,0"}]}`)
	r := affinity(t, "", "audit", "--url", engine)
	r.wants(t, cli.ExitFailed, "the profiles of 2 users do not match the log: 40 of 50 users compared before the time was up, with 400 events")
	want := "ann: stored score color:Red (half-life 30): want 35, got 30.25\nbob: computed known: want true, got false\n" +
		"bob: history missing block 3,0: want nothing, got nothing\nand 3 more differences\n"
	if r.out != want {
		t.Errorf("printed\n%s\nwant\n%s", r.out, want)
	}
}

func TestSegmentsAuditWithDifferencesFails(t *testing.T) {
	t.Parallel()
	engine := fixedAnswer(t, 200, `{"sampled":50,"compared":50,"stored":0,"events":0,"byScorer":0,"differing":2,"differences":[],
		"segments":{"planned":24,"conditions":20,"judged":1000,"omitted":1,"differences":[
		{"where":{"filter":"color:Red","above":3},"userToken":"ann","what":"score","want":35,"got":30.25},
		{"where":{"filter":"color:Red","above":0},"userToken":"bob","what":"missing"},
		{"where":{"filter":"color:Red","above":0},"what":"total","want":3,"got":4}]}}`)
	r := affinity(t, "", "audit", "--segments", "--url", engine)
	r.wants(t, cli.ExitFailed, "4 differences between segments and profiles: 20 of 24 conditions before the time was up over a sample of 50 users, 1000 profiles judged")
	want := `ann: score of {"filter":"color:Red","above":3}: want 35, got 30.25` + "\n" +
		`bob: missing of {"filter":"color:Red","above":0}` + "\n" +
		`all users: total of {"filter":"color:Red","above":0}: want 3, got 4` + "\nand 1 more difference\n"
	if r.out != want {
		t.Errorf("printed\n%s\nwant\n%s", r.out, want)
	}
	clean := fixedAnswer(t, 200, `{"sampled":5,"compared":5,"differing":0,"differences":[],"segments":{"planned":5,"conditions":5,"judged":25,"differences":[]}}`)
	affinity(t, "", "audit", "--segments", "--url", clean).wants(t, cli.ExitOK, "no differences: 5 conditions over a sample of 5 users, 25 profiles judged")
	without := fixedAnswer(t, 200, `{"sampled":5,"compared":5,"differing":0,"differences":[]}`)
	affinity(t, "", "audit", "--segments", "--url", without).wants(t, cli.ExitFailed, "the answer says nothing of segments")
}

func TestInsightUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"audit", "--sample", "0"}, {"audit", "--sample", "10001"}, {"audit", "u"}, {"explain"}, {"explain", ""},
		{"explain", "u", "--facet", "f"}, {"explain", "u", "--value", "v"}, {"explain", "u", "--facet", "f", "--value", "v", "--limit", "0"},
		{"strategy", "preview"}, {"strategy", "preview", "f", "--sample", "1001"},
	} {
		affinity(t, "", args...).wants(t, cli.ExitUsage)
	}
	engine := fixedAnswer(t, 200, "no JSON")
	affinity(t, "", "audit", "--url", engine).wants(t, cli.ExitFailed, "not what an Affinity engine sends")
	affinity(t, "", "explain", "u", "--url", engine).wants(t, cli.ExitFailed, "not what an Affinity engine sends")
	affinity(t, "{}", "strategy", "preview", "-", "--url", engine).wants(t, cli.ExitFailed, "not what an Affinity engine sends")
	refusing := fixedAnswer(t, 403, `{"status":403,"message":"Method not allowed with this API key"}`)
	affinity(t, "", "audit", "--url", refusing).wants(t, cli.ExitFailed, "give --key a key that has the permission for this")
}
