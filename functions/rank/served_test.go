package rank_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
)

// A page that knows the anonymous token of a user who has signed in gets the user's order and boosts if the app says so,
// until the link is undone. No answer names the user.
func TestAnonymousTokensAreServedAsPersons(t *testing.T) {
	b := newBoutique(t)
	h := rank.New(b.Backends.ForRank())
	ask := func(user string) api.RankAnswer {
		return ranked(t, h, `{"userToken":"`+user+`","index":"i","seen":"demote","objectIDs":["o0","o1","o2","o3","o4","o5"]}`)
	}
	set := func(i config.Identity) config.App {
		t.Helper()
		app, err := b.Backends.CachedConfig.SetIdentity(t.Context(), functiontest.App, i, 0)
		must.Succeed(t, err)
		return app
	}
	identity := config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}
	set(identity)
	identity.Mode = config.IdentityLink
	app := set(identity)
	must.Succeed(t, profile.IdentitiesOf(b.Backends.Profiles).Link(t.Context(), app, "anonymous-1", "ann", ""))

	stranger, ann := ask("anonymous-1"), ask("ann")
	if stranger.Fallback == nil || stranger.Person || ann.Fallback != nil || ann.Person {
		t.Errorf("by tokens: anonymous %+v, ann %+v", stranger, ann)
	}
	identity.ServePersons = true
	set(identity)
	got := ask("anonymous-1")
	if diff := cmp.Diff(ann.Items, got.Items, near); diff != "" || !got.Person || got.Fallback != nil {
		t.Errorf("by persons: person %t, fallback %v (-ann +anonymous):\n%s", got.Person, got.Fallback, diff)
	}
	if again := ask("ann"); again.Person || again.Fallback != nil {
		t.Errorf("ann: %+v", again)
	}
	boosts, ofAnn := boosted(t, h, "/1/boosts/anonymous-1?engine=algolia"), boosted(t, h, "/1/boosts/ann?engine=algolia")
	if diff := cmp.Diff(weights(ofAnn), weights(boosts)); diff != "" || !boosts.Person || boosts.UserToken != "anonymous-1" || len(weights(boosts)) == 0 {
		t.Errorf("boosts %+v (-ann +anonymous):\n%s", boosts, diff)
	}
	if other := ask("anonymous-2"); other.Person || other.Fallback == nil {
		t.Errorf("a token that nobody has signed in under: %+v", other)
	}
	_, err := profile.IdentitiesOf(b.Backends.Profiles).Unlink(t.Context(), app, "anonymous-1", "ann")
	must.Succeed(t, err)
	if got := ask("anonymous-1"); got.Person || got.Fallback == nil {
		t.Errorf("after the unlink: %+v", got)
	}
}
