package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// A row of the log that does not decode is a fault of its user in the answer of every
// job over the log, and the job reads all others. Tokens of users are listed for the
// permission admin only.
func TestJobsNameFaultyUsers(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	for i := range 4 {
		save(t, s, "i", fmt.Sprintf(`{"objectID":"%d","color":"Red"}`, i))
	}
	for user := range 5 {
		for i := range 4 {
			ok(t, s, "/1/events", fmt.Sprintf(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u%d","objectIDs":["%d"],"timestamp":%d}]}`,
				user, i, time.Now().Add(time.Duration(i-5)*time.Hour).UnixMilli()))
		}
	}
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", seenStrategy)
	idle(t, s)
	at := place(t, s)
	client, err := bigtable.NewClient(t.Context(), stack.Project, stack.Instance, option.WithGRPCConn(dial(t, at.Bigtable, emulator.WithToken(at.Token))))
	must.Succeed(t, err)
	m := bigtable.NewMutation()
	m.Set("m", "event", bigtable.Now(), []byte("x"))
	must.Succeed(t, client.Open("events").Apply(t.Context(), "demo,u3,"+time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15"), m))

	wantFaults := func(what string, faulty int64, faults []string) {
		t.Helper()
		if faulty != 1 || len(faults) != 1 || !strings.Contains(faults[0], "u3") {
			t.Errorf("%s: %d faulty, %q; want u3 named", what, faulty, faults)
		}
	}
	var r api.Recompute
	decode(t, wantStatus(t, s, http.StatusOK, "POST", "/1/recomputes", ""), &r)
	idle(t, s)
	decode(t, wantStatus(t, s, http.StatusOK, "GET", "/1/recomputes/"+r.ID, ""), &r)
	wantFaults("recompute", r.Faulty, r.Faults)

	j := backtestOf(t, s, `{"index":"i","strategies":[`+seenStrategy+`]}`)
	if wantFaults("backtest", j.Faulty, j.Faults); j.State != api.JobDone {
		t.Errorf("the backtest is %s: %s", j.State, j.Error)
	}
	var build api.CrowdBuild
	decode(t, wantStatus(t, s, http.StatusOK, "POST", "/1/crowd", ""), &build)
	idle(t, s)
	key := config.Key{Hash: auth.Hash("recommends"), ACL: []string{auth.Recommendation}}
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", key))
	for name, named := range map[string]bool{"demokey": true, "recommends": false} {
		var all api.Crowd
		code, answer := callAs(t, s, "demo", name, "GET", "/1/crowd", "")
		if decode(t, answer, &all); code != http.StatusOK {
			t.Fatalf("%d %s", code, answer)
		}
		b := all.Builds[slices.IndexFunc(all.Builds, func(b api.CrowdBuild) bool { return b.ID == build.ID })]
		if b.State != api.JobDone || b.Users < 4 {
			t.Errorf("the build is %s, of %d users, want all others", b.State, b.Users)
		}
		if named {
			wantFaults("crowd", b.Faulty, b.Faults)
		} else if b.Faulty != 1 || b.Faults != nil {
			t.Errorf("without the permission admin: %d faulty, %q; want them counted", b.Faulty, b.Faults)
		}
	}
}

func decode(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
