package profiles_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// keyID is the ID of a key of the app.
func keyID(key string) string { return config.Key{Hash: auth.Hash(key)}.ID() }

// The list has every link that the filters take, each once, whatever the size of its pages.
func TestLinks(t *testing.T) {
	s := functiontest.Start(t)
	h, in := profiles.New(s.Backends.ForProfiles()), ingest.New(s.Backends.ForIngest())
	functiontest.Check(t, h, functiontest.Ask("admin", "GET", "/1/identities", "", 200, `{"links":[]}`))
	setIdentity(t, s, config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour, TrustPages: true})
	day := time.Now().UTC()
	send := func(key, token, known string) {
		t.Helper()
		functiontest.Do(t, in, key, "POST", "/1/events", bought(token, known, "Red"))
		must.Succeed(t, s.Idle(t.Context()))
	}
	send("all", "c", "bob")
	send("search", "b", "ann")
	send("all", "a", "ann")
	send("all", "a", "bob")
	send("search", "a+b", "eve")
	send("all", "d", "")
	for _, body := range []string{`{"userToken":"e","authenticatedUserToken":"ann"}`, `{"userToken":"f","authenticatedUserToken":"gone"}`} {
		functiontest.Do(t, h, "admin", "POST", "/1/identities/link", body)
	}
	functiontest.Do(t, h, "admin", "DELETE", "/1/identities/b/links/ann", "")
	if status, answer := functiontest.Call(h, "deleteObject", "DELETE", "/1/usertokens/gone", ""); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	must.Succeed(t, s.Idle(t.Context()))
	list := func(query, limit string) (got []string) {
		t.Helper()
		values, err := url.ParseQuery(query)
		must.Succeed(t, err)
		for values.Set("limit", limit); ; {
			page := functiontest.Answer[api.Links](t, h, "admin", "GET", "/1/identities?"+values.Encode(), "")
			for _, l := range page.Links {
				if l.Events != nil {
					t.Errorf("%+v has a count of events", l)
				}
				got = append(got, l.UserToken+" "+l.AuthenticatedUserToken+" "+l.State)
			}
			if page.Cursor == "" {
				return got
			}
			values.Set("cursor", page.Cursor)
		}
	}
	if time.Now().UTC().Day() != day.Day() {
		t.Skip("the day has ended")
	}
	today, yesterday := day.Format(time.DateOnly), day.AddDate(0, 0, -1).Format(time.DateOnly)
	ab, aa, a, b, c, e, f := "a+b eve open", "a ann closed", "a bob open", "b ann unlinked", "c bob open", "e ann open", "f gone deleted"
	for query, want := range map[string][]string{
		"":                            {ab, aa, a, b, c, e, f},
		"day=" + today:                {ab, aa, a, b, c, e, f},
		"day=" + yesterday:            nil,
		"strength=weak":               {ab, b},
		"strength=weak&state=open":    {ab},
		"strength=strong&by=event":    {aa, a, c},
		"by=request":                  {e, f},
		"by=call":                     nil,
		"state=closed":                {aa},
		"state=deleted&day=" + today:  {f},
		"state=unlinked&by=event":     {b},
		"state=limit":                 nil,
		"state=open&strength=strong":  {a, c, e},
		"state=open&day=" + yesterday: nil,
		"key=" + keyID("search"):      {ab, b},
		"key=" + keyID("all"):         {aa, a, c},
		"key=0123456789ab":            nil,
		"state=open&key=" + keyID("all") + "&day=" + today: {a, c},
	} {
		for _, limit := range []string{"1", "2", "3", "1000"} {
			if got := list(query, limit); !slices.Equal(got, want) {
				t.Errorf("%q in pages of %s: %q, want %q", query, limit, got, want)
			}
		}
	}
	functiontest.Check(t, h,
		functiontest.Ask("recommendation", "GET", "/1/identities", "", 403, ""),
		functiontest.Ask("admin", "GET", "/1/identities?limit=0", "", 422, "limit must be a positive integer"),
		functiontest.Ask("admin", "GET", "/1/identities?limit=1001", "", 422, "limit must be an integer from 1 to 1000"),
		functiontest.Ask("admin", "GET", "/1/identities?day=2026-2-1", "", 422, "day must be a day in UTC"),
		functiontest.Ask("admin", "GET", "/1/identities?by=page", "", 422, "by must be event, call or request"),
		functiontest.Ask("admin", "GET", "/1/identities?strength=strongest", "", 422, "strength must be strong or weak"),
		functiontest.Ask("admin", "GET", "/1/identities?state=closing", "", 422, "state must be open, closed, limit, unlinked or deleted"),
		functiontest.Ask("admin", "GET", "/1/identities?key=K123456789ab", "", 422, "key must be the ID of a key: 12 hexadecimal digits"),
		functiontest.Ask("admin", "GET", "/1/identities?cursor=,", "", 422, "cursor must be the cursor of another answer"),
		functiontest.Ask("admin", "GET", "/1/identities?page=2", "", 422, "this route takes day, strength, by, state, key, limit, cursor"),
	)
}
