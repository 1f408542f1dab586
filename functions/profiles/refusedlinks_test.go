package profiles_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// refusals are the answers of the route: those of a reason, all pages of it, and the count of all days.
func refusals(t *testing.T, h http.Handler, reason string) (list []api.RefusedLink, counts map[string]int64) {
	t.Helper()
	query := "?reason=" + reason
	if reason == "" {
		query = "?"
	}
	for cursor := ""; ; {
		page := functiontest.Answer[api.RefusedLinks](t, h, "admin", "GET", "/1/identities/refused"+query+cursor, "")
		list, counts = append(list, page.Refused...), map[string]int64{}
		for _, d := range page.Days {
			for reason, n := range d.Counts {
				counts[reason] += n
			}
		}
		if page.Cursor == "" {
			return list, counts
		}
		cursor = "&cursor=" + page.Cursor
	}
}

func TestRefusedLinks(t *testing.T) {
	s := functiontest.Start(t)
	h, in := profiles.New(s.Backends.ForProfiles()), ingest.New(s.Backends.ForIngest())
	functiontest.Check(t, h,
		functiontest.Ask("admin", "GET", "/1/identities/refused", "", 200, `{"refused":[],"days":[]}`),
		functiontest.Ask("recommendation", "GET", "/1/identities/refused", "", 403, ""),
		functiontest.Ask("admin", "GET", "/1/identities/refused?reason=bad", "", 422, `reason must be one of \"authenticatedUserTokenIsAnonymous\", \"deleted\",`),
		functiontest.Ask("admin", "GET", "/1/identities/refused?cursor=x", "", 422, "cursor must be"),
		functiontest.Ask("admin", "GET", "/1/identities/refused?limit=1", "", 422, "this route takes reason, cursor"),
	)
	setIdentity(t, s, config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour})
	send := func(key, body string) {
		t.Helper()
		functiontest.Do(t, in, key, "POST", "/1/events", body)
		must.Succeed(t, s.Idle(t.Context()))
	}
	send("search", bought("a", "ann", "Red")) // a key of a web page
	send("all", bought("undefined", "ann", "Red"))
	send("all", bought("b", "ann", "Red"))
	send("all", bought("ann", "bob", "Red"))
	send("all", bought("cat", "cat", "Red"))    // says nothing
	send("search", bought("ann", "ann", "Red")) // says nothing
	// A request has its reason in the answer.
	functiontest.Check(t, h, functiontest.Ask("admin", "POST", "/1/identities/link", `{"userToken":"ann","authenticatedUserToken":"bob"}`, 409, ""))

	list, counts := refusals(t, h, "")
	if len(list) != 3 || list[0].Reason != "userTokenIsKnown" || list[2].Reason != "weak" || len(counts) != 3 || counts["value"] != 1 {
		t.Fatalf("%+v, %v: want a link each of the reasons weak, value and userTokenIsKnown", list, counts)
	}
	if l := list[2]; l.UserToken != "a" || l.AuthenticatedUserToken != "ann" || l.Event == "" || l.At.Sub(l.Time.Time).Abs() > time.Minute {
		t.Errorf("the weak link is %+v", l)
	}
	if list, counts := refusals(t, h, "value"); len(list) != 1 || list[0].UserToken != "undefined" || len(counts) != 1 {
		t.Errorf("%+v, %v: want the one of the reason value", list, counts)
	}
	day := usage.DayOf(s.Backends.Now())
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	if used, err := s.Backends.Store.Usage.Usage(t.Context(), functiontest.App, day-1, day); err != nil || used[day-1].RefusedLinks+used[day].RefusedLinks != 3 {
		t.Errorf("%v, %v: want 3 refused links in the usage", used, err)
	}

	// A deletion takes the links that name its user, under either token; what it refuses itself is only counted.
	functiontest.Do(t, h, "all", "DELETE", "/1/profiles/ann", "")
	must.Succeed(t, s.Idle(t.Context()))
	old := fmt.Sprintf(`,"timestamp":%d}`, time.Now().Add(-time.Hour).UnixMilli())
	send("all", strings.Replace(bought("c", "ann", "Red"), "}", old, 1))
	list, counts = refusals(t, h, "")
	if len(list) != 0 || counts["weak"] != 1 || counts["deleted"] != 1 {
		t.Errorf("%+v, %v: want counts alone", list, counts)
	}
}

// Pages have every refused link once, also of those with the same number.
func TestPagesOfRefusedLinks(t *testing.T) {
	s := functiontest.Start(t)
	now := s.Backends.Now()
	for n, reason := range []string{"late", "weak", "value", "shared", "limit", "unlinked"} {
		for range 4 { // any of the rows of the app
			r := store.Refusals{Counts: map[string]int64{reason: 10}}
			for i := range 10 {
				l := store.RefusedLink{User: fmt.Sprint("a", i), Known: "ann", Reason: reason, At: now, Sequence: int64(1 + i + n/3)}
				r.Events = append(r.Events, l.Refusal())
			}
			must.Succeed(t, s.Backends.Store.Refused.RecordRefusedLinks(t.Context(), functiontest.App, now, r))
		}
	}
	all, _, err := s.Backends.Store.Refused.ReadRefusedLinks(t.Context(), functiontest.App, now)
	must.Succeed(t, err)
	list, _ := refusals(t, profiles.New(s.Backends.ForProfiles()), "")
	if len(list) != len(all) {
		t.Errorf("the pages have %d links, want %d", len(list), len(all))
	}
}
