package strategies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestStrategies(t *testing.T) {
	s := functiontest.Start(t)
	const (
		key  = "recommendation"
		path = "/1/strategies/personalization"
		body = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3}],"facetsScoring":[{"facetName":"color","score":10}],"personalizationImpact":50}`
	)
	functiontest.Check(t, strategies.New(s.Backends.ForStrategies()),
		functiontest.Ask("", "GET", path, "", 401, "Invalid credentials"),
		functiontest.Ask("search", "POST", path, body, 403, "Method not allowed with this API key"),
		functiontest.Ask(key, "DELETE", path, "", 405, "Method Not Allowed"),
		functiontest.Ask(key, "GET", "/1/strategies", "", 404, "Path not supported"),
		functiontest.Ask(key, "GET", path, "", 200, `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`),
		functiontest.Ask(key, "POST", path, `{`, 400, "the strategy is not valid JSON"),
		functiontest.Ask(key, "POST", path, `{"eventScoring":[]}`, 422, `Unknown field \"eventScoring\"`),
		functiontest.Ask(key, "POST", path, strings.Repeat(" ", api.MaxStrategyBody+1), 413, "Request Entity Too Large"),
		functiontest.Ask(key, "POST", path, body, 200, `{"status":200,"message":"Strategy was successfully updated."}`),
		functiontest.Ask(key, "GET", path, "", 200, body),
		functiontest.Ask(key, "POST", path+"/preview", `{`, 400, "Bad Request"),
		functiontest.Ask(key, "POST", path+"/preview", `{"sample":1}`, 422, "strategy is required"),
		functiontest.Ask(key, "POST", path+"/preview", `{"strategy":`+body+`,"sample":1001}`, 422, "sample must be an integer from 1 to 1000"),
		functiontest.Ask(key, "POST", path+"/preview", `{"strategy":`+body+`,"userTokens":[]}`, 422, "userTokens must hold 1 to 1000 tokens"),
		functiontest.Ask(key, "POST", path+"/preview", `{"strategy":`+body+`,"userTokens":["a b"]}`, 422, "userTokens holds a malformed token"),
		functiontest.Ask(key, "POST", path+"/preview", `{"strategy":`+body+`,"userTokens":["ann"]}`, 200,
			`{"sampled":1,"known":0,"changed":0,"unchanged":0,"strategyVersion":1,"values":{"changed":0,"topFiveChanged":0,"topChanged":0},"objects":null,"scale":null,"cost":{"events":0,"blocks":0,"took":`),
	)
	other := strings.Replace(body, `"score":3`, `"score":4`, 1)
	functiontest.Check(t, strategies.New(s.Backends.ForStrategies()),
		functiontest.Ask(key, "POST", path+"?ifVersion=0", other, 409, `{"status":409,"message":"Version 1 is active, not 0: look at it and send the strategy again"}`),
		functiontest.Ask(key, "POST", path+"?ifVersion=2", other, 409, "Version 1 is active, not 2"),
		functiontest.Ask(key, "POST", path+"?ifVersion=", other, 422, "ifVersion must be an integer of at least 0"),
		functiontest.Ask(key, "POST", path+"?ifVersion=-1", other, 422, "ifVersion must be"),
		functiontest.Ask(key, "POST", path+"?ifVersion=x", other, 422, "ifVersion must be"),
		functiontest.Ask(key, "GET", path, "", 200, body),
		functiontest.Ask(key, "POST", path+"?ifVersion=1", body, 200, "updated"),
		functiontest.Ask(key, "POST", path+"?ifVersion=0", body, 200, "updated"), // a retry
		functiontest.Ask(key, "GET", path+"/versions", "", 200, `{"versions":[{"version":1,`),
	)
	// Another impact or ranking starts no recompute.
	const ranked = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3}],"facetsScoring":[{"facetName":"color","score":10}],"personalizationImpact":60,"ranking":{"contrast":"none","session":{"halfLife":"2e"}}}`
	functiontest.Check(t, strategies.New(s.Backends.ForStrategies()),
		functiontest.Ask(key, "POST", path, ranked, 200, "updated"),
		functiontest.Ask(key, "POST", path, ranked, 200, "updated"),
		functiontest.Ask(key, "GET", path, "", 200, ranked),
	)
	functiontest.Check(t, strategies.New(s.Backends.ForStrategies()),
		functiontest.Ask("search", "GET", path+"/versions", "", 403, ""),
		functiontest.Ask(key, "GET", path+"/versions", "", 200, `{"versions":[{"version":2,"scoringVersion":1,"setAt":"2`),
		functiontest.Ask(key, "GET", path+"/versions", "", 200, `,"active":true},{"version":1,"scoringVersion":1,"setAt":"2`),
		functiontest.Ask(key, "GET", path+"/versions?limit=3", "", 422, `Unknown query option \"limit\"`),
		functiontest.Ask(key, "GET", path+"/versions?X-Algolia-Agent=x", "", 200, `"versions"`),
		functiontest.Ask(key, "GET", path+"?version=1", "", 200, body),
		functiontest.Ask(key, "GET", path+"?version=2&x=y", "", 200, ranked),
		functiontest.Ask(key, "GET", path+"?version=3", "", 404, "No strategy: version 3 never existed or is no longer kept"),
		functiontest.Ask(key, "GET", path+"?version=0", "", 422, "version must be a positive integer"),
		functiontest.Ask(key, "GET", path+"?version=x", "", 422, "version must be a positive integer"),
		functiontest.Ask("search", "POST", path+"/restore", `{"version":1}`, 403, ""),
		functiontest.Ask(key, "POST", path+"/restore", `{`, 400, "Bad Request"),
		functiontest.Ask(key, "POST", path+"/restore", ``, 400, "Bad Request"),
		functiontest.Ask(key, "POST", path+"/restore", `null`, 422, "The body must be"),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":1,"x":2}`, 422, "The body must be"),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":"1"}`, 422, "The body must be"),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":1.5}`, 422, "The body must be"),
		functiontest.Ask(key, "POST", path+"/restore", `{}`, 422, "version must be a positive integer"),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":3}`, 404, "No strategy: version 3"),
		functiontest.Ask(key, "POST", path+"/restore?now=1", `{"version":1}`, 422, "Unknown query option"),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":1,"ifVersion":1}`, 409, "Version 2 is active, not 1: look at it"),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":1,"ifVersion":-1}`, 422, "ifVersion must be"),
		functiontest.Ask(key, "GET", path, "", 200, ranked),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":1,"ifVersion":2}`, 200, "updated"), // other ranking, the same scoring
		functiontest.Ask(key, "GET", path, "", 200, body),
		functiontest.Ask(key, "POST", path+"/restore", `{"version":1}`, 200, "updated"),
		functiontest.Ask(key, "GET", path+"/versions", "", 200, `{"versions":[{"version":3,"scoringVersion":1,`),
	)
	jobs, err := s.Backends.Recompute.List(t.Context(), functiontest.App, 10)
	if err != nil || len(jobs) != 1 || jobs[0].ID != "strategy-1" {
		t.Errorf("recomputes %+v, %v: want that of version 1", jobs, err)
	}
}

// The recompute of a scoring starts with a later request if the one that set the
// scoring failed before it. A change of the impact starts nothing else.
func TestRecomputeOfScoringStarts(t *testing.T) {
	s := functiontest.Start(t)
	const path = "/1/strategies/personalization"
	body := func(score, impact int) string {
		return fmt.Sprintf(`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":%d}],"facetsScoring":[],"personalizationImpact":%d}`, score, impact)
	}
	// set is a request that ends before it starts a recompute.
	set := func(score, impact int) {
		t.Helper()
		wanted, err := strategy.Decode([]byte(body(score, impact)))
		if err == nil {
			_, _, err = s.Backends.CachedConfig.SetStrategy(t.Context(), functiontest.App, wanted)
		}
		must.Succeed(t, err)
	}
	ask := func(score, impact int, want ...string) {
		t.Helper()
		functiontest.Check(t, strategies.New(s.Backends.ForStrategies()),
			functiontest.Ask("recommendation", "POST", path, body(score, impact), 200, "updated"))
		jobs, err := s.Backends.Recompute.List(t.Context(), functiontest.App, 10)
		var got []string
		for _, j := range jobs {
			got = append(got, j.ID)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("recomputes %q, %v: want %q", got, err, want)
		}
	}
	set(1, 1)
	ask(1, 1, "strategy-1") // a retry
	set(2, 1)               // version 2
	set(2, 2)               // another client's request
	ask(2, 2, "strategy-1", "strategy-2")
	ask(2, 3, "strategy-1", "strategy-2")
	set(3, 3) // version 5
	ask(3, 4, "strategy-1", "strategy-2", "strategy-5")
	ask(3, 4, "strategy-1", "strategy-2", "strategy-5")
	// The document of the job of a scoring that was set long ago may have expired.
	set(4, 4) // version 7
	s.Backends.Base.Now = func() time.Time { return time.Now().Add(job.Kept) }
	ask(4, 5, "strategy-1", "strategy-2", "strategy-5")
}
