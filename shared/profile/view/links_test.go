package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/view"
)

// A person with too many tokens, a token of two users, and refusals of each kind that a dry run knows.
func TestLinks(t *testing.T) {
	run := links.NewDryRun(time.Hour)
	at := int64(0)
	take := func(token, known string) {
		at += 1000
		run.Take(token, links.Evidence{Known: known, Time: at, Receipt: at})
	}
	var many []string
	for n := range links.MaxOpen + 1 {
		many = append(many, fmt.Sprint("m", n))
		take(many[n], "many")
	}
	take("a", "ann")
	take("a", "ann") // satisfied
	take("a", "bob")
	take("a", "ann")
	take("b", "ann")
	take("ann", "ann") // known already
	take("ann", "bob")
	take("c", "a")
	take("d", "NULL")
	take("e", "undefined")
	want := api.LinkCounts{
		Evidence: 15, Tokens: 8, Users: 3, Closed: 2, Limited: 1,
		PerUser: []api.TokensPerUser{{Tokens: 1, Users: 1}, {Tokens: 2, Users: 1}, {Tokens: 6, Users: 1}},
		Largest: []api.LargestUser{{AuthenticatedUserToken: "many", UserTokens: many},
			{AuthenticatedUserToken: "ann", UserTokens: []string{"a", "b"}}, {AuthenticatedUserToken: "bob", UserTokens: []string{"a"}}},
		Refused: []api.RefusedEvidence{{Reason: "value", Count: 2, UserToken: "d", AuthenticatedUserToken: "NULL"},
			{Reason: "authenticatedUserTokenIsAnonymous", Count: 1, UserToken: "c", AuthenticatedUserToken: "a"},
			{Reason: "userTokenIsKnown", Count: 1, UserToken: "ann", AuthenticatedUserToken: "bob"}},
	}
	if diff := cmp.Diff(want, view.Links(run)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
