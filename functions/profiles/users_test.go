package profiles_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// The list has every user with an event, each once, whatever the size of its pages. It has
// neither deleted users nor those of another app.
func TestUsers(t *testing.T) {
	s := functiontest.Start(t)
	h := profiles.New(s.Backends.ForProfiles())
	var events []string
	tokens := []string{"a+b", "a", "ab", "ann", "ann-2", "b", "gone", "z/z"} // in the order of their keys
	for _, user := range tokens {
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"filters":["color:Red"]}`, user))
	}
	functiontest.Do(t, ingest.New(s.Backends.ForIngest()), "search", "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	must.Succeed(t, s.Idle(t.Context()))
	if status, answer := functiontest.Call(h, "deleteObject", "DELETE", "/1/usertokens/gone", ""); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	list := func(prefix string, limit int) (got []string) {
		t.Helper()
		for cursor := ""; ; {
			query := url.Values{"limit": {fmt.Sprint(limit)}, "prefix": {prefix}}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			page := functiontest.Answer[api.Users](t, h, "admin", "GET", "/1/usertokens?"+query.Encode(), "")
			if len(page.Users) > limit {
				t.Fatalf("%d users, want at most %d", len(page.Users), limit)
			}
			for _, u := range page.Users {
				if u.LastEventAt.IsZero() {
					t.Errorf("%+v has no time", u)
				}
				got = append(got, u.UserToken)
			}
			if cursor = page.Cursor; cursor == "" {
				return got
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(tokens), func(user string) bool { return user == "gone" })
	for _, prefix := range []string{"", "a", "an", "ann", "ann-2", "g", "z/", "nobody"} {
		want := slices.DeleteFunc(slices.Clone(kept), func(user string) bool { return !strings.HasPrefix(user, prefix) })
		for _, limit := range []int{1, 2, 3, 1000} {
			if got := list(prefix, limit); !slices.Equal(got, want) {
				t.Errorf("prefix %q in pages of %d: %q, want %q", prefix, limit, got, want)
			}
		}
	}
	functiontest.Check(t, h,
		functiontest.Ask("recommendation", "GET", "/1/usertokens", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("admin", "GET", "/1/usertokens?limit=0", "", 422, "limit must be a positive integer"),
		functiontest.Ask("admin", "GET", "/1/usertokens?limit=1001", "", 422, "limit must be an integer from 1 to 1000"),
		functiontest.Ask("admin", "GET", "/1/usertokens?prefix=a%2Cb", "", 422, "prefix must be the beginning of a user token"),
		functiontest.Ask("admin", "GET", "/1/usertokens?cursor=,", "", 422, "cursor must be the cursor of another answer"),
		functiontest.Ask("admin", "GET", "/1/usertokens?token=a", "", 422, "this route takes prefix, limit, cursor"),
	)
}

func TestRecentOptions(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()),
		functiontest.Ask("", "GET", "/1/events/recent", "", 401, "Invalid credentials"),
		functiontest.Ask("recommendation", "GET", "/1/events/recent", "", 403, ""),
		functiontest.Ask("recommendation", "GET", "/1/usertokens/recent", "", 403, ""),
		functiontest.Ask("admin", "GET", "/1/events/recent", "", 200, `{"events":[],"sampled":true}`),
		functiontest.Ask("admin", "GET", "/1/usertokens/recent", "", 200, `{"users":[]}`),
		functiontest.Ask("admin", "GET", "/1/events/recent?limit=0", "", 422, "limit must be a positive integer"),
		functiontest.Ask("admin", "GET", "/1/events/recent?limit=201", "", 422, "limit must be an integer from 1 to 200"),
		functiontest.Ask("admin", "GET", "/1/events/recent?after=ann", "", 422, "after must be the cursor"),
		functiontest.Ask("admin", "GET", "/1/events/recent?after=2999-01-01T00:00:00.000Z", "", 422, "after must be the cursor"),
		functiontest.Ask("admin", "GET", "/1/events/recent?cursor=1", "", 422, "Unknown query option"),
		functiontest.Ask("admin", "GET", "/1/usertokens/recent?limit=201", "", 422, "limit must be an integer from 1 to 200"),
		functiontest.Ask("admin", "GET", "/1/usertokens/recent?after=1", "", 422, "Unknown query option"),
	)
}

// An answer is full, although the newest events are those of a user who was deleted, and its
// cursor leads behind these too.
func TestRecentSkipsExcludedEvents(t *testing.T) {
	s := functiontest.Start(t)
	h := profiles.New(s.Backends.ForProfiles())
	now := time.Now().UnixMilli()
	var events []store.RecentEvent
	for i := range 300 {
		e := store.RecentEvent{ID: fmt.Sprint(i), User: "gone", Time: now, Receipt: now - int64(i), Type: event.View, Name: "Seen", Index: "i"}
		if i >= 250 {
			e.User = fmt.Sprint("u", i%20)
		}
		if i%3 == 0 {
			e.User = "nobody" // who has no row
		}
		events = append(events, e)
	}
	for i := range 20 {
		if _, err := s.Backends.Store.Users.TakeTicket(t.Context(), functiontest.App, fmt.Sprint("u", i)); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, s.Backends.Store.Recent.AddRecent(t.Context(), functiontest.App, events))
	if status, answer := functiontest.Call(h, "deleteObject", "DELETE", "/1/usertokens/gone", ""); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	recent := functiontest.Answer[api.RecentEvents](t, h, "admin", "GET", "/1/events/recent?limit=20", "")
	if len(recent.Events) != 20 || recent.Events[0].UserToken != "u10" || recent.Events[1].ReceivedAt.After(recent.Events[0].ReceivedAt.Time) {
		t.Errorf("%d events: %+v", len(recent.Events), recent.Events)
	}
	newer := functiontest.Answer[api.RecentEvents](t, h, "admin", "GET", "/1/events/recent?after="+recent.Cursor, "")
	if len(newer.Events) != 0 || newer.Cursor != recent.Cursor {
		t.Errorf("since the cursor: %+v", newer)
	}
	users := functiontest.Answer[api.RecentUsers](t, h, "admin", "GET", "/1/usertokens/recent?limit=5", "")
	if len(users.Users) != 5 || users.Users[0].UserToken != "u10" || users.Users[0].Events < 1 {
		t.Errorf("users: %+v", users)
	}
}
