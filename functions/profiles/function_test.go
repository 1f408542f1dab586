package profiles_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// An explanation is as of the instant of the stored profile, if that is ahead of
// the clock and its scoring is the active one.
func TestExplanationAfterRanking(t *testing.T) {
	s := functiontest.Start(t)
	b, ctx := s.Backends, t.Context()
	set := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 10}},
	}
	activate := func() { functiontest.SetStrategy(t, s, set) }
	activate()
	ahead := b.Now().Add(4 * time.Minute).Truncate(time.Millisecond)
	row := store.User{Ticket: 1}
	stored := affinity.Profile{StrategyVersion: 1, Anchor: ahead.UnixMilli(), Known: true, Until: math.MaxInt64}
	write := store.ProfileWrite{User: "ann", Row: row, Version: 1, Value: stored.AppendBinary(nil), Summary: stored.AppendBinary(nil)}
	must.Succeed(t, b.Store.Users.WriteProfiles(ctx, functiontest.App, []store.ProfileWrite{write}))
	explain := func(asStored bool) {
		t.Helper()
		status, answer := functiontest.Call(profiles.New(b.ForProfiles()), "recommendation", "GET", "/1/explain/ann", "")
		if asOf := `"asOf":"` + event.FormatTime(ahead.UnixMilli()); status != http.StatusOK || strings.Contains(answer, asOf) != asStored {
			t.Errorf("explanation: %d %s; as of the stored profile: want %t", status, answer, asStored)
		}
	}
	explain(true)
	set.PersonalizationImpact, set.Ranking = 7, strategy.PlainRanking()
	activate()
	explain(true)
	set.FacetsScoring = []strategy.FacetScore{{FacetName: "color", Score: 11}}
	activate()
	explain(false)
}

func TestProfiles(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 10}, {FacetName: "size", Score: 1}},
	})
	const line = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","timestamp":1500000000000,"filters":["color:Red","size:L"]}`
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
	const r = "recommendation"
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()),
		functiontest.Ask("", "GET", "/1/profiles/ann", "", 401, "Invalid credentials"),
		functiontest.Ask("search", "GET", "/1/profiles/ann", "", 403, "Method not allowed with this API key"),
		functiontest.Ask(r, "PUT", "/1/profiles/ann", "", 405, "Method Not Allowed"),
		functiontest.Ask(r, "GET", "/1/profile/ann", "", 404, "Path not supported"),
		functiontest.Ask(r, "GET", "/1/profiles/bob", "", 404, `No profile: user token \"bob\" has no event within the retention`),
		functiontest.Ask(r, "GET", "/1/profiles/b%20b", "", 422, "UserToken must contain only"),
		functiontest.Ask(r, "GET", "/1/profiles/ann?limit=0", "", 422, "limit must be a positive integer"),
		functiontest.Ask(r, "GET", "/1/profiles/ann?halfLife=7", "", 422, "halfLife must be one of the strategy's halfLives: it has none"),
		functiontest.Ask(r, "GET", "/1/profiles/ann?halfLife=0", "", 422, "halfLife must be an integer from 1 to 3650, got 0"),
		functiontest.Ask(r, "GET", "/1/profiles/ann?halfLife=x", "", 422, `halfLife must be a number of days or a text such as 30d, 12h or 45m, got \"x\"`),
		functiontest.Ask(r, "GET", "/1/profiles/ann?limit=1", "", 200, `"total":2,"affinities":[{"facet":"color","operator":":","value":"Red","score":30}]}`),
		functiontest.Ask(r, "POST", "/1/profiles/batch", `{`, 400, "Bad Request: want"),
		functiontest.Ask(r, "POST", "/1/profiles/batch", `{"userTokens":[]}`, 422, "userTokens must hold 1 to 1000 tokens"),
		functiontest.Ask(r, "POST", "/1/profiles/batch", `{"userTokens":["ann","bob","ann"]}`, 200, `"notFound":["bob"]`),
		functiontest.Ask(r, "GET", "/1/profiles/personalization/ann", "", 200, `{"userToken":"ann","lastEventAt":"2017-07-14T02:40:00.000Z","scores":{"color":{"Red":20},`),
		functiontest.Ask(r, "GET", "/1/explain/ann?facet=color", "", 422, "facet and value must"),
		functiontest.Ask(r, "GET", "/1/explain/ann?facet=color&value=Red", "", 200, `"eventScore":3,"facetScore":10,"weight":30,"count":1,`),
		functiontest.Ask(r, "GET", "/1/explain/bob", "", 200, `"known":false`),
		functiontest.Ask(r, "DELETE", "/1/usertokens/ann", "", 403, ""),
		functiontest.Ask("deleteObject", "DELETE", "/1/usertokens/ann", "", 204, ""),
		functiontest.Ask(r, "DELETE", "/1/profiles/ann", "", 200, `{"userToken":"ann","deletedUntil":"`),
		functiontest.Ask(r, "GET", "/1/profiles/ann", "", 404, "No profile"),
	)
}

// A batch answers in the order of the request, and its answer is bounded.
func TestBatch(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 10}},
	})
	var lines strings.Builder
	for _, user := range []string{"u1", "u2", "u4", "u5"} {
		fmt.Fprintf(&lines, `{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"timestamp":1500000000000,"filters":["color:Red"]}`+"\n", user)
	}
	b := s.Backends.ForProfiles()
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", lines.String())
	read := func(h http.Handler) (users []string, answer api.Profiles) {
		t.Helper()
		const tokens = `{"userTokens":["u5","u0","u1","u2","u3","u4","u1"]}`
		answer = functiontest.Answer[api.Profiles](t, h, "recommendation", "POST", "/1/profiles/batch", tokens)
		for _, p := range answer.Profiles {
			users = append(users, p.UserToken)
			if len(p.Affinities) != 1 || p.Affinities[0].Score != 30 {
				t.Errorf("%+v, want one affinity of 30", p)
			}
		}
		return users, answer
	}
	users, answer := read(profiles.NewBounded(b, 10_000))
	if !slices.Equal(users, []string{"u5", "u1", "u2", "u4"}) || !slices.Equal(answer.NotFound, []string{"u0", "u3"}) {
		t.Errorf("profiles of %v, none of %v; want the order of the request", users, answer.NotFound)
	}
	functiontest.Check(t, profiles.NewBounded(b, 400),
		functiontest.Ask("recommendation", "POST", "/1/profiles/batch", `{"userTokens":["u1"]}`, 200, "u1"),
		functiontest.Ask("recommendation", "POST", "/1/profiles/batch", `{"userTokens":["u1","u2","u4","u5"]}`, 422,
			"The answer has more than 400 bytes: send fewer userTokens in a request, or a lower limit"),
	)
}

// A batch lists a faulty user, and answers the others, in whichever group of reads the
// user is.
func TestFaultyUserOfABatch(t *testing.T) {
	s := functiontest.Start(t)
	b := s.Backends.ForProfiles()
	const users = 230 // three groups
	var lines, tokens, known strings.Builder
	for i := range users {
		fmt.Fprintf(&lines, `{"eventType":"view","eventName":"Seen","index":"i","userToken":"u%03d","timestamp":1500000000000,"filters":["color:Red"]}`+"\n", i)
		fmt.Fprintf(&tokens, `"u%03d",`, i)
	}
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", lines.String())
	for _, user := range []string{"u150", "u229"} {
		newer := []byte{250, 1, 2} // a manifest of a newer version
		if swapped, err := b.Store.Users.SwapManifest(t.Context(), functiontest.App, user, [2][]byte{}, newer); err != nil || !swapped {
			t.Fatalf("%v, %v", swapped, err)
		}
	}
	body := `{"userTokens":[` + tokens.String() + `"nobody"]}`
	answer := functiontest.Answer[api.Profiles](t, profiles.New(b), "recommendation", "POST", "/1/profiles/batch", body)
	for _, p := range answer.Profiles {
		known.WriteString(p.UserToken)
	}
	if !slices.Equal(answer.Faulty, []string{"u150", "u229"}) || !slices.Equal(answer.NotFound, []string{"nobody"}) ||
		len(answer.Profiles) != users-2 || strings.Contains(known.String(), "u150") {
		t.Errorf("faulty %v, none of %v, %d profiles", answer.Faulty, answer.NotFound, len(answer.Profiles))
	}
}
