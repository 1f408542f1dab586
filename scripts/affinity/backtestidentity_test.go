package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/api"
)

// devices are the events of users who stay with a brand on two devices, and sign in on the second of them and later on
// the first. The last two views on each device are cases.
func devices(t *testing.T) string {
	t.Helper()
	lines := []string{"userToken,authenticatedUserToken,eventName,eventType,objectIDs,timestamp"}
	for user := range 12 {
		for n := range 8 {
			known := ""
			if n == 2 || n == 5 {
				known = fmt.Sprint("u", user)
			}
			lines = append(lines, fmt.Sprintf("u%d-%d,%s,Viewed,view,o%02d,%d", user, n%2, known, (user+2*n)%20, 1_700_000_000_000+n*60_000+user))
		}
	}
	return file(t, "devices.csv", append(lines, "tablet,undefined,Viewed,view,o01,1700000000000", "u1-0,u2,Viewed,view,o01,1700000410000")...)
}

func TestBacktestIdentity(t *testing.T) {
	f := newShopFiles(t)
	judge := []string{"backtest", "--objects", f.objects, "--strategy", f.strategy, "--identity"}
	affinity(t, "", append(judge, f.events)...).wants(t, 0, "no event has both tokens: nothing to link")
	affinity(t, "", append(judge, devices(t))...).wants(t, 0, "26 events of a userToken with another authenticatedUserToken",
		"they link 24 tokens to 12 users", "1 link closed by the sign-in of another user",
		"1 event refused as value, such as tablet with undefined", "cases with another history", "in the whole catalog, all ",
		"linked:"+f.strategy+": ", "linked:plain:"+f.strategy)
	r := affinity(t, "", append(judge, "--json", devices(t))...)
	r.wants(t, 0)
	var got struct {
		api.Backtest
		Identity api.BacktestIdentity `json:"identity"`
	}
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&got))
	want := api.LinkCounts{Evidence: 26, Tokens: 24, Users: 12, Closed: 1,
		PerUser: []api.TokensPerUser{{Tokens: 2, Users: 11}, {Tokens: 3, Users: 1}},
		Refused: []api.RefusedEvidence{{Reason: "value", Count: 1, UserToken: "tablet", AuthenticatedUserToken: "undefined"}}}
	if diff := cmp.Diff(want, got.Identity.LinkCounts, cmpopts.IgnoreFields(api.LinkCounts{}, "Largest")); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if l := got.Identity.Largest; len(l) != api.MaxLargestUsers || l[0].AuthenticatedUserToken != "u2" || strings.Join(l[0].UserTokens, " ") != "u1-0 u2-0 u2-1" {
		t.Errorf("users with the most tokens: %+v", l)
	}
	whole := got.Identity.Whole
	if whole == nil || whole.Changed == nil || whole.All.Cases != got.Cases || whole.Changed.Cases != got.Identity.Changed {
		t.Errorf("%d cases, of which %d change: %+v", got.Cases, got.Identity.Changed, whole)
	}
	affinity(t, "", "backtest", "--url", "http://localhost:1", "--app", "a", "--key", "k", "--strategy", f.strategy, "--identity").
		wants(t, 2, "--identity judges files")
}
