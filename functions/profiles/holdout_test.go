package profiles_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// holdOut holds a user out, and not others.
func holdOut(t *testing.T, c *config.Cached, user string, others ...string) {
	t.Helper()
	h := experiment.Holdout{Share: experiment.MaxHoldout}
	for n := 0; h.Seed == "" || !h.Has(user) || slices.ContainsFunc(others, h.Has); n++ {
		h.Seed = fmt.Sprint("seed ", n)
	}
	_, err := c.SetHoldout(t.Context(), functiontest.App, h)
	must.Succeed(t, err)
}

// Profiles of users who are held out say so and hold nothing, on every surface and as of the past, unless a key with
// the permission admin asks.
func TestHeldOutProfiles(t *testing.T) {
	s := viewsForRank(t)
	_, _, err := s.Backends.CachedConfig.SaveSegment(t.Context(), functiontest.App,
		config.SavedSegment{Name: "clicks", Where: `{"filter":"color:click","above":0}`}, true)
	must.Succeed(t, err)
	h := profiles.New(s.Backends.ForProfiles())
	const recommendation = "recommendation"
	functiontest.Check(t, h, functiontest.Ask(recommendation, "GET", "/1/profiles/ann?segments=true", "", 200, `"segments":["clicks"]`))
	holdOut(t, s.Backends.CachedConfig, "ann", "bob")
	const admin = "both"
	both := config.Key{Hash: auth.Hash(admin), ACL: []string{auth.Recommendation, auth.Admin}}
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, both))
	empty := []string{`"lastEventAt":"2017-07-14T02:40:00.000Z"`, `"total":0`, `"holdout":true`, `"affinities":[]`}
	member := append(empty, `"segments":[]`)
	for _, c := range []struct {
		key, method, path, body string
		status                  int
		has                     []string
	}{
		{recommendation, "GET", "/1/profiles/ann", "", 200, empty},
		{recommendation, "GET", "/1/profiles/ann?surface=rank&segments=true", "", 200, member},
		{recommendation, "GET", "/1/profiles/ann?at=2020-01-01T00:00:00Z", "", 200, empty},
		{recommendation, "GET", "/1/profiles/personalization/ann", "", 200, []string{`"scores":{}`}},
		{recommendation, "POST", "/1/profiles/batch", `{"userTokens":["ann"],"segments":true}`, 200, member},
		{recommendation, "GET", "/1/profiles/bob", "", 404, []string{"No profile"}},
		{recommendation, "GET", "/1/profiles/ann?holdout=ignore", "", 403, nil},
		{recommendation, "POST", "/1/profiles/batch", `{"userTokens":["ann"],"holdout":"ignore"}`, 403, nil},
		{admin, "GET", "/1/profiles/ann?holdout=no", "", 422, []string{`holdout \"no\" must be ignore, or left out`}},
		{admin, "GET", "/1/profiles/ann?holdout=ignore", "", 200, []string{`"holdout":true`, `"value":"view"`, `"value":"click"`}},
		{admin, "POST", "/1/profiles/batch", `{"userTokens":["ann"],"holdout":"ignore"}`, 200, []string{`"holdout":true`, `"value":"view"`}},
		{admin, "GET", "/1/profiles/personalization/ann?holdout=ignore", "", 200, []string{`"color"`}},
	} {
		status, answer := functiontest.Call(h, c.key, c.method, c.path, c.body)
		for _, text := range c.has {
			if !strings.Contains(answer, text) {
				t.Errorf("%s %s %s: no %s in %s", c.method, c.path, c.body, text, answer)
			}
		}
		if status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, status, answer, c.status)
		}
	}
}

// The arm of a person is that of the token of their first open link, and profiles say which it is.
func TestArmsOfPersons(t *testing.T) {
	s := viewsForRank(t)
	c, identities := s.Backends.CachedConfig, profile.IdentitiesOf(s.Backends.Profiles)
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := c.SetIdentity(t.Context(), functiontest.App, config.Identity{Mode: mode, Lookback: time.Hour}, 0)
		must.Succeed(t, err)
	}
	app, err := c.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	v := app.StrategyVersion
	e := experiment.Experiment{Name: "x", Metric: "clicks", Coverage: 1, StartAt: s.Backends.Now(), Seed: "seed",
		Arms: []experiment.Arm{{Name: "a", Strategy: v, Weight: 0.5}, {Name: "b", Strategy: v, Weight: 0.5}}}
	phone := func() bool { i, _ := e.Arm("phone"); j, _ := e.Arm("ann"); return i == 1 && j == 0 }
	for n := 0; !phone(); n++ {
		e.Seed = fmt.Sprint("seed ", n)
	}
	_, _, err = config.ExperimentsOf(c).Set(t.Context(), functiontest.App, e, s.Backends.Now())
	must.Succeed(t, err)
	h := profiles.New(s.Backends.ForProfiles())
	const key = "recommendation"
	ask := func(want string) functiontest.Request {
		return functiontest.Ask(key, "GET", "/1/profiles/ann", "", 200, `"experiment":{"name":"x","arm":"`+want+`"},"affinities":[{`)
	}
	functiontest.Check(t, h, ask("a"))
	must.Succeed(t, identities.Link(t.Context(), app, "phone", "ann", ""))
	functiontest.Check(t, h, ask("b"), ask("b"),
		functiontest.Ask(key, "POST", "/1/profiles/batch", `{"userTokens":["ann"]}`, 200, `"experiment":{"name":"x","arm":"b"}`))
}

// A person is held out by the token of their first open link: a visitor stays what they were when they sign in, also with
// a second device, and the unlink may change it.
func TestHeldOutPersons(t *testing.T) {
	s := viewsForRank(t)
	c, identities := s.Backends.CachedConfig, profile.IdentitiesOf(s.Backends.Profiles)
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := c.SetIdentity(t.Context(), functiontest.App, config.Identity{Mode: mode, Lookback: time.Hour}, 0)
		must.Succeed(t, err)
	}
	holdOut(t, c, "phone", "ann", "laptop")
	app, err := c.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	h := profiles.New(s.Backends.ForProfiles())
	held := func(when string, want bool) {
		t.Helper()
		_, answer := functiontest.Call(h, "recommendation", "GET", "/1/profiles/ann", "")
		if got := strings.Contains(answer, `"holdout":true`); got != want {
			t.Errorf("%s ann is held out: %t, want %t: %s", when, got, want, answer)
		}
	}
	held("before they sign in,", false)
	must.Succeed(t, identities.Link(t.Context(), app, "phone", "ann", ""))
	held("on the phone,", true)
	must.Succeed(t, identities.Link(t.Context(), app, "laptop", "ann", ""))
	must.Succeed(t, identities.Link(t.Context(), app, "phone", "ann", ""))
	held("on the laptop, and the phone again,", true)
}
