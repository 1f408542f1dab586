package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

// watcher reads what an app's events contained and which arrived.
type watcher struct {
	t        *testing.T
	s        *stack.Stack
	app, key string
}

func (w watcher) read(path string, answer any) {
	w.t.Helper()
	code, body := callAs(w.t, w.s, w.app, w.key, "GET", path, "")
	if code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", path, code, body)
	}
	must.Succeed(w.t, json.Unmarshal([]byte(body), answer))
}

// recent returns the sample as lines of user, type and filters, and the cursor.
func (w watcher) recent(after string) (lines []string, cursor string) {
	w.t.Helper()
	path := "/1/events/recent"
	if after != "" {
		path += "?after=" + after
	}
	var answer api.RecentEvents
	w.read(path, &answer)
	for _, e := range answer.Events {
		lines = append(lines, fmt.Sprint(e.UserToken, " ", e.EventType, " ", e.Index, " ", e.ObjectIDs, e.Filters))
	}
	return lines, answer.Cursor
}

// users returns the recent users with their numbers of events.
func (w watcher) users() (users []string) {
	w.t.Helper()
	var answer api.RecentUsers
	w.read("/1/usertokens/recent", &answer)
	for _, u := range answer.Users {
		users = append(users, fmt.Sprint(u.UserToken, " ", u.Events))
	}
	return users
}

func (w watcher) want(what string, events, users []string) {
	w.t.Helper()
	if got, _ := w.recent(""); cmp.Diff(events, got) != "" {
		w.t.Errorf("%s, recent events (-want +got):\n%s", what, cmp.Diff(events, got))
	}
	if diff := cmp.Diff(users, w.users()); diff != "" {
		w.t.Errorf("%s, recent users (-want +got):\n%s", what, diff)
	}
}

func (w watcher) seen() api.SeenEvents {
	w.t.Helper()
	must.Succeed(w.t, w.s.Backends.Usage.Flush(w.t.Context()))
	var answer api.SeenEvents
	w.read("/1/events/seen", &answer)
	answer.AsOf = api.Time{}
	return answer
}

// What events contain and which arrive is shown at once, to their app alone. Who is deleted
// or opts out is gone from the next answer on, and after the purge from the table.
func TestRecentEvents(t *testing.T) {
	s := start(t, stack.Options{Apps: []stack.App{{ID: "shop", Key: "k"}, {ID: "zoo", Key: "z"}}, ConfigTTL: time.Millisecond})
	shop, zoo := watcher{t, s, "shop", "k"}, watcher{t, s, "zoo", "z"}
	ask := func(method, path, body string) {
		t.Helper()
		if code, answer := callAs(t, s, "shop", "k", method, path, body); code/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}
	send := func(user, typ, rest string) {
		t.Helper()
		ask("POST", "/1/events", fmt.Sprintf(`{"events":[{"eventType":%q,"eventName":"Seen","index":"i","userToken":%q,%s}]}`, typ, user, rest))
		idle(t, s)
		<-time.After(2 * time.Millisecond) // events of one millisecond have no order
	}
	shop.want("nothing yet", nil, nil)
	ask("POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red","size":"L"}}]}`)
	ask("PUT", "/1/indexes/i/settings", `{"attributesForFaceting":["color","size"]}`)
	send("ann", "view", `"objectIDs":["1"]`)
	send("bob", "view", `"filters":["color:Blue","color:Green"]`)
	ask("POST", "/1/events/import", `{"eventType":"conversion","eventName":"Bought","index":"i","userToken":"old","objectIDs":["1"],"timestamp":1700000000000}`)
	_, cursor := shop.recent("")
	send("bob", "click", `"objectIDs":["unknown"]`)

	want := []string{"bob click i [unknown] []", "bob view i [] [color:Blue color:Green]", "ann view i [1] [color:Red size:L]"}
	shop.want("all", want, []string{"bob 2", "ann 1"})
	if got, _ := shop.recent(cursor); cmp.Diff(want[:1], got) != "" {
		t.Errorf("since the cursor (-want +got):\n%s", cmp.Diff(want[:1], got))
	}
	if diff := cmp.Diff(api.SeenEvents{Days: 7, Events: []api.SeenEvent{
		{EventType: "view", EventName: "Seen", Count: 2}, {EventType: "click", EventName: "Seen", Count: 1}, {EventType: "conversion", EventName: "Bought", Count: 1},
	}, Facets: []api.SeenFacet{{Facet: "color", Count: 3}, {Facet: "size", Count: 2}}}, shop.seen()); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	zoo.want("another app", nil, nil)
	if diff := cmp.Diff(api.SeenEvents{Days: 7, Events: []api.SeenEvent{}, Facets: []api.SeenFacet{}}, zoo.seen()); diff != "" {
		t.Errorf("another app's events (-want +got):\n%s", diff)
	}
	if code, answer := callAs(t, s, "shop", "z", "GET", "/1/events/recent", ""); code != http.StatusUnauthorized {
		t.Errorf("another app's key: %d %s", code, answer)
	}

	ask("PUT", "/1/optouts/bob", `{"eventTypes":["click"]}`)
	shop.want("bob has opted out", want[2:], []string{"ann 1"})
	idle(t, s)
	var state api.OptOut
	shop.read("/1/optouts/bob", &state)
	for !s.Backends.Now().After(state.DeletedUntil.Add(time.Millisecond)) {
		<-time.After(time.Millisecond)
	}
	send("bob", "click", `"objectIDs":["1"]`)
	send("bob", "view", `"objectIDs":["1"]`)
	again := []string{"bob view i [1] [color:Red size:L]", want[2]}
	shop.want("bob views again", again, []string{"bob 1", "ann 1"})
	ask("DELETE", "/1/usertokens/ann", "")
	shop.want("ann is deleted", again[:1], []string{"bob 1"})
	idle(t, s)
	wantInRecent(t, s, map[string]int{"ann": 0, "bob": 1})
	ask("PUT", "/1/optouts/bob", "")
	shop.want("bob is out of all", nil, nil)
	idle(t, s)
	wantInRecent(t, s, map[string]int{"ann": 0, "bob": 0})
}

// wantInRecent checks how many cells of the table recent name users.
func wantInRecent(t *testing.T, s *stack.Stack, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for user := range want {
		got[user] = 0
	}
	err := bigtableOf(t, s).Open(store.TableRecent).ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		for _, cells := range r {
			for _, cell := range cells {
				for user := range want {
					if strings.Contains(cell.Column+string(cell.Value), user) {
						got[user]++
					}
				}
			}
		}
		return true
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("cells that name users: %v (-want +got):\n%s", err, diff)
	}
}

// A message that is delivered again is one event of the sample, and its events are counted
// as often as they were accepted.
func TestRedeliveredEventIsSampledOnce(t *testing.T) {
	s := start(t, stack.Options{})
	w := watcher{t, s, "demo", "demokey"}
	m := bus.Message{App: "demo", ReceivedAt: time.Now().UnixMilli(), Request: 9, Resolved: true, Body: []byte(seenBy("ann"))}
	for range 3 {
		must.Succeed(t, s.Backends.Bus.Publish(t.Context(), m))
		idle(t, s)
	}
	w.want("delivered three times", []string{"ann view i [1] []"}, []string{"ann 1"})
	if got := w.seen(); len(got.Events) != 0 {
		t.Errorf("deliveries are counted: %+v", got)
	}
}
