package profiles_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// person is a function over an app that links tokens, with a lookback of an hour.
type person struct {
	*testing.T
	s   *stack.Stack
	h   http.Handler
	now time.Time
}

func newPerson(t *testing.T, halfLives ...strategy.HalfLife) *person {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: "conversion", Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 3}}, HalfLives: halfLives,
	})
	setIdentity(t, s, config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour})
	setIdentity(t, s, config.Identity{Mode: config.IdentityLink, Lookback: time.Hour})
	return &person{t, s, profiles.New(s.Backends.ForProfiles()), s.Backends.Now().Truncate(time.Second)}
}

// sends sends a red event of a token so many minutes ago, under which known has signed in unless it is "".
func (p *person) sends(token, known string, ago int) {
	p.Helper()
	at := fmt.Sprintf(`,"timestamp":%d}]`, p.now.Add(-time.Duration(ago)*time.Minute).UnixMilli())
	functiontest.Do(p, ingest.New(p.s.Backends.ForIngest()), "all", "POST", "/1/events", strings.Replace(bought(token, known, "Red"), "}]", at, 1))
	must.Succeed(p, p.s.Idle(p.Context()))
}

// explained checks which events an explanation lists, each as the token of its log and its minutes, and that they
// add up to the score of the profile.
func (p *person) explained(user string, want ...string) api.Explanation {
	p.Helper()
	x := functiontest.Answer[api.Explanation](p, p.h, "recommendation", "GET", "/1/explain/"+user+"?facet=color&value=Red", "")
	got, sum := []string{}, 0.0
	for _, c := range x.Contributions {
		got = append(got, fmt.Sprintf("%s-%.0f", c.UserToken, p.now.Sub(c.Time.Time).Minutes()))
		sum += c.Contribution
	}
	if !slices.Equal(got, want) || sum != x.Score || x.Events.Counted != len(want) {
		p.Errorf("%s is explained by %q, the sum of %v is %v, the score %v, counted %d; want %q", user, got, x.Contributions, sum, x.Score, x.Events.Counted, want)
	}
	status, answer := functiontest.Call(p.h, "recommendation", "GET", "/1/profiles/"+user, "")
	if len(want) == 0 {
		if status != http.StatusNotFound {
			p.Errorf("profile of %s: %d %s, want none", user, status, answer)
		}
		return x
	}
	profile := functiontest.Answer[api.Profile](p, p.h, "recommendation", "GET", "/1/profiles/"+user, "")
	if s := profile.Affinities[0].Score; s != sum && (len(x.Scores) == 0 || math.Abs(s-sum) > 1e-6*s) {
		p.Errorf("the contributions of %s add up to %v, the profile has %v", user, sum, s)
	}
	return x
}

// An explanation of a known user has the events of other tokens that count for them, in the order of time.
func TestExplainPerson(t *testing.T) {
	p := newPerson(t)
	p.sends("a", "", 110) // before the lookback
	p.sends("a", "", 50)
	p.sends("ann", "", 45)
	p.sends("a", "ann", 40)
	p.sends("b", "", 38)
	p.sends("b", "ann", 35)
	p.sends("ann", "", 30)
	p.sends("a", "", 25)
	x := p.explained("ann", "a-50", "-45", "a-40", "b-38", "b-35", "-30", "a-25")
	if !strings.Contains(strings.Join(x.Reasons, "\n"), "5 of 7 events are of anonymous tokens under which the user has signed in: a (3), b (2)") {
		t.Errorf("reasons %q", x.Reasons)
	}
	if first, last := p.now.Sub(x.FirstEventAt.Time).Minutes(), p.now.Sub(x.LastEventAt.Time).Minutes(); first != 50 || last != 25 {
		t.Errorf("the first event is of %v minutes ago, the last of %v", first, last)
	}
	p.explained("a", "-110", "-50", "-40", "-25")

	p.sends("a", "bob", 27) // a second user
	p.explained("ann", "a-50", "-45", "a-40", "b-38", "b-35", "-30")
	p.explained("bob", "a-27", "a-25")
	functiontest.Do(t, p.h, "admin", "DELETE", "/1/identities/b/links/ann", "")
	p.explained("ann", "a-50", "-45", "a-40", "-30")
	p.explained("b", "-38", "-35")

	// What bob has done under the other token goes with bob, before the purge too.
	_, err := p.s.Backends.Profiles.Delete(t.Context(), functiontest.App, "bob")
	must.Succeed(t, err)
	p.explained("bob")
	if x := p.explained("a", "-110", "-50", "-40"); x.Events.Deleted != 2 {
		t.Errorf("%d events of the token were deleted, want 2", x.Events.Deleted)
	}
	functiontest.Do(t, p.h, "all", "DELETE", "/1/profiles/a", "")
	p.explained("ann", "-45", "-30")
}

// The limit keeps the latest events of the person, whichever token they are of, and the earlier ones are a sum.
func TestExplainPersonWithHalfLives(t *testing.T) {
	week, err := strategy.ParseHalfLife("7")
	must.Succeed(t, err)
	p := newPerson(t, week)
	for ago := 58; ago > 0; ago -= 6 {
		p.sends("a", map[bool]string{true: "ann"}[ago == 46], ago)
		p.sends("ann", "", ago-1)
	}
	var want []string
	for ago := 58; ago > 0; ago -= 6 {
		want = append(want, fmt.Sprint("a-", ago), fmt.Sprint("-", ago-1))
	}
	p.explained("ann", want...)
	x := functiontest.Answer[api.Explanation](t, p.h, "recommendation", "GET", "/1/explain/ann?facet=color&value=Red&limit=3", "")
	if len(x.Contributions) != 4 || x.Contributions[0].Events != len(want)-3 || x.Contributions[2].UserToken != "a" {
		t.Errorf("contributions %+v", x.Contributions)
	}
}
