package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// persons are the backends of an app that links tokens, with a lookback of an hour.
type persons struct {
	*testing.T
	*stack.Stack
	now time.Time
}

func newPersons(t *testing.T) *persons {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: "conversion", Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 3}},
	})
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), functiontest.App, config.Identity{Mode: mode, Lookback: time.Hour}, 0)
		must.Succeed(t, err)
	}
	return &persons{t, s, s.Backends.Now().Truncate(time.Second)}
}

// sends sends an event of a token so many minutes ago, under which known has signed in unless it is "".
func (p *persons) sends(token, known string, ago int) {
	p.Helper()
	body := fmt.Sprintf(`{"events":[{"eventType":"conversion","eventName":"Bought","index":"i","userToken":%q,"authenticatedUserToken":%q,"filters":["color:Red"],"timestamp":%d}]}`,
		token, known, p.now.Add(-time.Duration(ago)*time.Minute).UnixMilli())
	functiontest.Do(p, ingest.New(p.Backends.ForIngest()), "all", "POST", "/1/events", body)
	must.Succeed(p, p.Idle(p.Context()))
}

// exported returns the lines of an export: its links, and its events, each as its token and its minutes.
func (p *persons) exported(user string) (lines []api.ExportLine, links []api.Link, events []string) {
	p.Helper()
	for text := range strings.Lines(functiontest.Do(p, admin.New(p.Backends.ForAdmin()), "admin", "GET", "/1/export/"+user, "")) {
		var l api.ExportLine
		must.Succeed(p, json.Unmarshal([]byte(text), &l))
		lines = append(lines, l)
		switch {
		case l.Link != nil:
			links = append(links, *l.Link)
		case l.Event != nil:
			var e struct{ UserToken string }
			must.Succeed(p, json.Unmarshal(l.Event.Event, &e))
			events = append(events, fmt.Sprintf("%s-%.0f", e.UserToken, p.now.Sub(time.UnixMilli(l.Event.Time)).Minutes()))
		}
	}
	end := lines[len(lines)-1].End
	if end == nil || end.Events != len(events) || lines[0].User == nil || lines[1].Profile == nil {
		p.Errorf("export of %s: %+v", user, lines)
	} else if got, want := lines[1].Profile.Affinities[0].Score, 30*float64(len(events)); got != want {
		p.Errorf("the profile of %s has the score %v beside %d events", user, got, len(events))
	}
	return lines, links, events
}

// An export of a known user has their links, and the events of all their tokens; that of an anonymous token has
// its links, and its own events.
func TestExportPerson(t *testing.T) {
	p := newPersons(t)
	p.sends("a", "", 50)
	p.sends("ann", "", 45)
	p.sends("a", "ann", 40)
	p.sends("a", "bob", 20)
	p.sends("b", "ann", 15)
	p.sends("b", "", 10)
	check := func(user string, tokens string, want ...string) {
		t.Helper()
		_, links, events := p.exported(user)
		var named []string
		for _, l := range links {
			named = append(named, l.UserToken+">"+l.AuthenticatedUserToken+" "+l.State)
		}
		if got := strings.Join(named, ", "); got != tokens || !slices.Equal(events, want) {
			t.Errorf("export of %s: %s, %q; want %s, %q", user, got, events, tokens, want)
		}
	}
	check("ann", "a>ann closed, b>ann open", "a-50", "ann-45", "a-40", "b-15", "b-10")
	check("bob", "a>bob open", "a-20")
	check("a", "a>ann closed, a>bob open", "a-50", "a-40", "a-20")
	_, err := profile.IdentitiesOf(p.Backends.Profiles).Unlink(t.Context(), p.app(), "b", "ann")
	must.Succeed(t, err)
	check("ann", "a>ann closed, b>ann unlinked", "a-50", "ann-45", "a-40")
	_, err = p.Backends.Profiles.Delete(t.Context(), functiontest.App, "ann")
	must.Succeed(t, err)
	check("a", "a>ann deleted, a>bob open", "a-20")

	// Lines of links say nothing to an import.
	lines := functiontest.Do(t, admin.New(p.Backends.ForAdmin()), "admin", "GET", "/1/export/a", "")
	answer := functiontest.Answer[api.ImportAnswer](t, imports.New(p.Backends.ForImports()), "admin", "POST", "/1/events/import", lines)
	if answer.Accepted != 1 || len(answer.Refused) > 0 {
		t.Errorf("import of an export with links: %+v", answer)
	}
	if status, _ := functiontest.Call(admin.New(p.Backends.ForAdmin()), "admin", "GET", "/1/export/ann", ""); status != http.StatusNotFound {
		t.Errorf("export of a deleted user: %d", status)
	}
}

func (p *persons) app() config.App {
	p.Helper()
	app, err := p.Backends.CachedConfig.App(p.Context(), functiontest.App)
	must.Succeed(p, err)
	return app
}
