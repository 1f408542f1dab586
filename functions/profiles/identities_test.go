package profiles_test

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// bought is an event of a token, under which known has signed in unless it is "".
func bought(token, known, value string) string {
	return `{"events":[{"eventType":"conversion","eventName":"Bought","index":"i","userToken":"` + token +
		`","authenticatedUserToken":"` + known + `","filters":["color:` + value + `"]}]}`
}

func setIdentity(t *testing.T, s *stack.Stack, to config.Identity) {
	t.Helper()
	_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), functiontest.App, to, 0)
	must.Succeed(t, err)
}

func TestIdentities(t *testing.T) {
	s := functiontest.Start(t)
	_, _, err := s.Backends.Config.SetStrategy(t.Context(), functiontest.App, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: "conversion", Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 3}},
	})
	must.Succeed(t, err)
	h, in := profiles.New(s.Backends.ForProfiles()), ingest.New(s.Backends.ForIngest())
	const link = "/1/identities/link"
	body := func(token, known string) string {
		return `{"userToken":"` + token + `","authenticatedUserToken":"` + known + `","reason":"asked"}`
	}
	functiontest.Check(t, h,
		functiontest.Ask("admin", "POST", link, body("a", "ann"), 409, "affinity app identity APP --mode collect"),
		functiontest.Ask("recommendation", "POST", link, body("a", "ann"), 403, ""),
		functiontest.Ask("search", "GET", "/1/identities/ann", "", 403, ""),
		functiontest.Ask("deleteObject", "DELETE", "/1/identities/a/links/ann", "", 403, ""),
		functiontest.Ask("admin", "GET", "/1/identities/ann", "", 200, `{"userToken":"ann","role":"none","links":[]}`),
	)
	setIdentity(t, s, config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour})
	setIdentity(t, s, config.Identity{Mode: config.IdentityLink, Lookback: time.Hour})
	send := func(key, body string) {
		t.Helper()
		functiontest.Do(t, in, key, "POST", "/1/events", body)
		must.Succeed(t, s.Idle(t.Context()))
	}
	has := func(user, value string, want bool) {
		t.Helper()
		if _, answer := functiontest.Call(h, "recommendation", "GET", "/1/profiles/"+user, ""); strings.Contains(answer, value) != want {
			t.Errorf("%s has %s: %t, want %t: %s", user, value, !want, want, answer)
		}
	}
	send("search", bought("a", "", "Red"))
	send("search", bought("a", "ann", "Green")) // a key of a web page
	has("ann", "Red", false)
	functiontest.Check(t, h, functiontest.Ask("admin", "GET", "/1/identities/ann", "", 200, `"role":"none"`),
		functiontest.Ask("admin", "GET", "/1/identities/a", "", 200, `"role":"none"`))
	send("all", bought("a", "ann", "Blue"))
	for _, value := range []string{"Red", "Green", "Blue"} {
		has("ann", value, true)
		has("a", value, true)
	}
	functiontest.Check(t, h,
		functiontest.Ask("admin", "GET", "/1/identities/ann", "", 200, `"role":"known","links":[{"userToken":"a","authenticatedUserToken":"ann"`),
		functiontest.Ask("admin", "GET", "/1/identities/a", "", 200, `"state":"open","strength":"strong","events":3,"by":"event","event":"`),
		functiontest.Ask("admin", "POST", link, body("ann", "bob"), 409, "the userToken has been named as an authenticatedUserToken"),
		functiontest.Ask("admin", "POST", link, body("b", "a"), 409, "the authenticatedUserToken has been linked as an anonymous token"),
		functiontest.Ask("admin", "POST", link, body("a", "a"), 422, "are equal"),
		functiontest.Ask("admin", "POST", link, body("undefined", "ann"), 422, "stands for no user"),
		functiontest.Ask("admin", "POST", link, body("-1", "ann"), 422, "stands for no user"),
		functiontest.Ask("admin", "POST", link, body("a b", "ann"), 422, "must be there"),
		functiontest.Ask("admin", "POST", link, `{"userToken":"a"}`, 422, "must be there"),
		functiontest.Ask("admin", "POST", link, `{"token":"a"}`, 422, "Unknown key"),
		functiontest.Ask("admin", "POST", link, `[]`, 400, "Bad Request"),
		functiontest.Ask("admin", "POST", link, strings.Replace(body("a", "ann"), "asked", strings.Repeat("x", 201), 1), 422, "200 bytes"),
		functiontest.Ask("admin", "DELETE", "/1/identities/a/links/bob", "", 404, "The tokens are not linked"),
		functiontest.Ask("admin", "DELETE", "/1/identities/a/links/ann", "", 200, `{"unlinkedUntil":"`),
		functiontest.Ask("admin", "DELETE", "/1/identities/a/links/ann", "", 200, `{"unlinkedUntil":"`), // again
		functiontest.Ask("admin", "GET", "/1/identities/a", "", 200, `"state":"unlinked"`),
	)
	has("ann", "Red", false)
	has("a", "Red", true)
	functiontest.Check(t, h, functiontest.Ask("admin", "POST", link, body("c", "ann"), 200, `"reason":"asked"`))
	send("search", bought("c", "", "Black"))
	has("ann", "Black", true)
}
