package profiles_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/store"
)

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
	if err := s.Backends.Store.Recent.AddRecent(t.Context(), functiontest.App, events); err != nil {
		t.Fatal(err)
	}
	if status, answer := functiontest.Call(h, "deleteObject", "DELETE", "/1/usertokens/gone", ""); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	read := func(path string, answer any) {
		t.Helper()
		status, text := functiontest.Call(h, "admin", "GET", path, "")
		if err := json.Unmarshal([]byte(text), answer); err != nil || status != 200 {
			t.Fatalf("%d %s, %v", status, text, err)
		}
	}
	var recent, newer api.RecentEvents
	read("/1/events/recent?limit=20", &recent)
	if len(recent.Events) != 20 || recent.Events[0].UserToken != "u10" || recent.Events[1].ReceivedAt.After(recent.Events[0].ReceivedAt.Time) {
		t.Errorf("%d events: %+v", len(recent.Events), recent.Events)
	}
	read("/1/events/recent?after="+recent.Cursor, &newer)
	if len(newer.Events) != 0 || newer.Cursor != recent.Cursor {
		t.Errorf("since the cursor: %+v", newer)
	}
	var users api.RecentUsers
	read("/1/usertokens/recent?limit=5", &users)
	if len(users.Users) != 5 || users.Users[0].UserToken != "u10" || users.Users[0].Events < 1 {
		t.Errorf("users: %+v", users)
	}
}
