package stack_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// everything returns requests by which an app uses every table, and then those of all routes.
func everything() (flow [][3]string) {
	old := time.Now().Add(-48 * time.Hour).UnixMilli()
	var imported strings.Builder
	var posted []string
	for i := range manyEvents {
		fmt.Fprintf(&imported, `{"eventType":"view","eventName":"Seen","index":"i","userToken":"big","objectIDs":["3"],"timestamp":%d}`+"\n", old+int64(i))
		posted = append(posted, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"live","objectIDs":["1"],"timestamp":%d}`, old+int64(i)))
	}
	product := func(id, color string) [3]string {
		return [3]string{"POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"` + id + `","color":"` + color + `","at":"2026-11-20"}}]}`}
	}
	flow = [][3]string{
		{"POST", "/1/strategies/personalization", seenStrategy}, product("1", "Red"), product("2", "Red"), product("3", "Red"),
		{"PUT", "/1/indexes/i/settings", `{"attributesForFaceting":["color"]}`},
		{"PUT", "/1/feeds/f", `{"index":"i","date":"at"}`},
		wait, {"POST", "/1/events/import", imported.String()}, wait,
	}
	for part := range slices.Chunk(posted, 100) {
		flow = append(flow, [3]string{"POST", "/1/events", `{"events":[` + strings.Join(part, ",") + `]}`}, wait)
	}
	signIn := [3]string{"POST", "/1/events", strings.Replace(seenBy("newcomer"), `"userToken"`, `"authenticatedUserToken":"ann","userToken"`, 1)}
	call := `{"type":"track","event":"Product Viewed","userId":"u","messageId":"m1","properties":{"product_id":"1"}}`
	flow = append(flow, [][3]string{
		{"POST", "/1/events", seenBy("u")}, wait, {"POST", "/1/events", strings.Replace(seenBy("u"), `"1"`, `"late"`, 1)}, wait, {"GET", "/1/explain/u", ""}, {"POST", "/1/events", seenBy("ann")}, {"POST", "/1/events", seenBy("bob")},
		{"POST", "/1/events", `{"events":[{"eventType":"view"}]}`},
		{"POST", "/v1/batch?index=i", `{"batch":[` + call + `]}`}, wait,
		{"POST", "/1/recomputes", `{"fold":true}`}, wait,
		{"POST", "/1/segments/refresh", ""}, wait, signIn, wait, {"POST", "/1/segments/query", `{"where":{"filter":"color:Red"},"limit":9}`},
		{"PUT", "/1/segments/red", `{"where":{"filter":"color:Red"}}`}, {"POST", "/1/segments/refresh", ""}, wait,
		{"POST", "/1/crowd", ""}, wait, product("late", "Blue"), {"POST", "/1/reenrich", ""}, wait,
		{"POST", "/1/backtests", ""}, wait, {"POST", "/1/audits", `{"segments":true}`}, wait,
		// These read the log: the profiles are of another strategy.
		newStrategy, {"POST", "/1/rank", `{"userToken":"big","index":"i","objectIDs":["1"]}`}, newStrategy, {"GET", "/1/boosts/live?engine=algolia", ""},
		newStrategy, {"GET", "/1/profiles/big", ""}, {"GET", "/1/explain/live", ""}, {"GET", "/1/profiles/live?segments=true", ""},
		{"GET", "/1/profiles/big?at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339)), ""},
		newStrategy, {"GET", "/1/export/big", ""}, {"GET", "/1/dump", ""}, {"POST", "/1/recomputes", `{"userToken":"big"}`},
		newStrategy, {"POST", "/1/strategies/personalization/preview", `{"strategy":` + seenStrategy + `}`},
		newStrategy, {"POST", "/1/segments/query", `{"where":{"filter":"color:Red"},"limit":9}`},
		newStrategy, {"GET", "/1/values?facet=color", ""}, {"GET", "/1/segments/histogram?facet=color&value=Red", ""}, wait,
		// Nobody remembers where they live.
		{"POST", "/1/rank", `{"userToken":"stranger","index":"i","objectIDs":["1"]}`}, {"GET", "/1/export/stranger", ""},
		{"POST", "/1/strategies/personalization/preview", `{"strategy":` + seenStrategy + `,"userTokens":["stranger"]}`},
		{"POST", "/1/segments/red/export", ""}, wait, {"DELETE", "/1/usertokens/bob", ""}, {"DELETE", "/1/usertokens/big", ""}, wait,
		{"POST", "/1/strategies/personalization", secondStrategy}, wait, {"DELETE", "/1/usertokens/ghost", ""},
		{"POST", "/1/events/import?receipts=kept", `{"exportedDeletion":{"userToken":"carl","deletedUntil":"2025-11-20T10:00:00.000Z","receivedUntil":"2025-11-20T10:00:00.000Z"}}`},
		{"POST", "/1/events/import?receipts=kept", `{"exportedLinks":{"userToken":"visitor","role":"anonymous","entries":[{"authenticatedUserToken":"ann","state":"live","since":"2025-11-20T10:00:00.000Z",` +
			`"from":"2025-11-20T10:00:00.000Z","receivedAt":"2025-11-20T10:00:00.000Z","strength":"strong","by":"event","evidence":"yPk6o_-AeS8"}]}}`},
	}...)
	for _, r := range routes {
		flow = append(flow, [3]string{r.method, r.path, r.body})
	}
	return append(flow, wait)
}

// createThin makes the app thin, whose users have regions of their own. They begin in that which is not the app's.
func createThin(t *testing.T, s *stack.Stack) {
	t.Helper()
	apps := s.Backends.Config
	must.Succeed(t, apps.CreateApp(t.Context(), config.App{ID: "thin", Region: "eu", Log: schema.Of(schema.Narrow),
		Identity: config.Identity{Mode: config.IdentityLink}}))
	must.Succeed(t, apps.PutKey(t.Context(), "thin", config.Key{Hash: auth.Hash("thinkey"), ACL: auth.All, Region: "us"}))
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		residency := config.Residency{Mode: mode, Regions: []string{"eu", "us"}, Rule: config.ByKey}
		_, err := apps.SetResidency(t.Context(), "thin", residency, 0)
		must.Succeed(t, err)
	}
	// The function that reads a row of a table first is taken for all that read one.
	wantStatusAs(t, s, http.StatusOK, "thin", "thinkey", "POST", "/1/events", seenBy("first"))
}

// useEverything makes the requests of everything for an app.
func useEverything(t *testing.T, s *stack.Stack, app string) {
	for i, r := range everything() {
		switch r {
		case wait:
			idle(t, s)
			continue
		case newStrategy: // no recompute begins
			_, _, err := s.Backends.CachedConfig.SetStrategy(t.Context(), app, strategy.Strategy{PersonalizationImpact: 7,
				EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: i + 1}},
				FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 9}}})
			must.Succeed(t, err)
			continue
		}
		code, answer := callAs(t, s, app, app+"key", r[0], r[1], r[2])
		if code >= 500 || code == http.StatusUnauthorized || code == http.StatusForbidden {
			t.Errorf("%s %s: %d %s", r[0], r[1], code, answer)
		}
	}
}

// manyEvents are enough for blocks of a history.
const manyEvents = 600

// These stand among requests for other things than one.
var (
	wait        [3]string                   // for the end of all that was begun
	newStrategy = [3]string{"new strategy"} // a change behind the back of the functions, so that no profile is of it
)
