package profiles_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
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
	if status, answer := functiontest.Call(ingest.New(s.Backends.ForIngest()), "search", "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
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
			status, answer := functiontest.Call(h, "admin", "GET", "/1/usertokens?"+query.Encode(), "")
			var page api.Users
			if err := json.Unmarshal([]byte(answer), &page); err != nil || status != 200 || len(page.Users) > limit {
				t.Fatalf("%d %s, %v", status, answer, err)
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
