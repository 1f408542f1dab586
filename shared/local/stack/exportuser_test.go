package stack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// exported exports a user of an app and returns the lines.
func exported(t *testing.T, s *stack.Stack, app, key, user string) (string, []api.ExportLine) {
	t.Helper()
	c, err := client.New(client.Config{URL: s.URL, App: app, Key: key, Retry: client.NoRetry})
	must.Succeed(t, err)
	var text strings.Builder
	if _, err := c.Export(t.Context(), user, &text); err != nil {
		t.Fatalf("%v: %s", err, text.String())
	}
	var lines []api.ExportLine
	for line := range strings.Lines(text.String()) {
		var l api.ExportLine
		must.Succeed(t, json.Unmarshal([]byte(line), &l))
		lines = append(lines, l)
	}
	return text.String(), lines
}

const exportStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3},{"eventName":"Bought","eventType":"conversion","score":50}],
	"facetsScoring":[{"facetName":"color","score":70},{"facetName":"brand","score":20}],"personalizationImpact":50,"halfLives":[3,30]}`

// scoresOf reads a profile as scores by filter and half-life.
func scoresOf(t *testing.T, s *stack.Stack, app, key, user string) map[string]float64 {
	t.Helper()
	status, answer := callAs(t, s, app, key, "GET", "/1/profiles/"+user+"?limit=1000", "")
	if status != 200 {
		t.Fatal(status, answer)
	}
	var p api.Profile
	must.Succeed(t, json.Unmarshal([]byte(answer), &p))
	scores := map[string]float64{}
	for _, a := range p.Affinities {
		for h, score := range a.Scores {
			// As of one instant, because scores decay between two reads.
			days := map[string]float64{"3": 3, "30": 30}[h]
			scores[a.Facet+":"+a.Value+" "+h] = score * math.Exp2(float64(p.AsOf.UnixMilli()-fixedNow.UnixMilli())/(days*24*3600*1000))
		}
	}
	return scores
}

var fixedNow = time.Now()

// An export into an app without a catalog restores the user: events by objects with
// the counts of their filters, equal events without a timestamp, unknown objects. A
// second import adds nothing. After a deletion there is nothing to export.
func TestExportIsImported(t *testing.T) {
	s := start(t, stack.Options{RetentionDays: 90})
	put := func(app, key, method, path, body string, want int) string {
		t.Helper()
		status, answer := callAs(t, s, app, key, method, path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		return answer
	}
	put("demo", "demokey", "POST", "/1/strategies/personalization", exportStrategy, 200)
	put("other", "otherkey", "POST", "/1/strategies/personalization", exportStrategy, 200)
	put("demo", "demokey", "POST", "/1/indexes/shoes/batch", `{"requests":[
		{"action":"addObject","body":{"objectID":"1","color":["Red","White <&>"],"brand":"Acme"}},
		{"action":"addObject","body":{"objectID":"2","color":"Red","brand":"Nörd\n"}}]}`, 200)
	now := time.Now()
	old := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	lines := []string{
		fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"ann/=+","index":"shoes","objectIDs":["1","2"],"timestamp":%d,"unread":{"a":[1,2]}}`, old(30*24*time.Hour)),
		fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"ann/=+","objectIDs":["2","unknown"],"timestamp":%d}`, old(time.Hour)),
		fmt.Sprintf(`{"eventType":"click","eventName":"Unscored","userToken":"ann/=+","filters":["color:Blue"],"timestamp":%d}`, old(2*time.Hour)),
		fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"ann/=+","filters":["color:Gone"],"timestamp":%d}`, old(100*24*time.Hour)),
		`{"eventType":"conversion","eventName":"Bought","eventSubtype":"purchase","userToken":"ann/=+","filters":["color:Green"],"value":9.5,"currency":"EUR"}`,
		`{"eventType":"conversion","eventName":"Bought","eventSubtype":"purchase","userToken":"ann/=+","filters":["color:Green"],"value":9.5,"currency":"EUR"}`,
		fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":"annette","filters":["color:Black"],"timestamp":%d}`, old(time.Hour)),
	}
	put("demo", "demokey", "POST", "/1/events/import?index=shoes", strings.Join(lines, "\n"), 200)

	const user = "ann%2F=+"
	text, got := exported(t, s, "demo", "demokey", "ann/=+")
	if n := len(got); n != 8 || got[0].User == nil || got[0].User.UserToken != "ann/=+" || got[1].Profile == nil || got[n-1].End == nil || got[n-1].End.Events != 5 {
		t.Fatalf("exported %s", text)
	}
	for i, l := range got[2:7] {
		if l.Event == nil || i > 0 && l.Event.Time < got[i+1].Event.Time {
			t.Errorf("line %d is no event, or earlier than the one before it", i+3)
		}
	}
	answer := put("other", "otherkey", "POST", "/1/events/import", text, 200)
	if !strings.Contains(answer, `"accepted":5,"received":0,"deleted":0,"optedOut":0,"outsideRetention":0,"refused":[]`) {
		t.Errorf("imported: %s", answer)
	}
	want, restored := scoresOf(t, s, "demo", "demokey", user), scoresOf(t, s, "other", "otherkey", user)
	checkScores(t, want, restored)
	if len(want) != 2*5 { // Red, White, Green, Acme, Nörd
		t.Errorf("the profile has %v", want)
	}
	put("other", "otherkey", "POST", "/1/events/import", text, 200)
	checkScores(t, want, scoresOf(t, s, "other", "otherkey", user))
	again, _ := exported(t, s, "other", "otherkey", "ann/=+")
	if a, b := events(text), events(again); a != b {
		t.Errorf("exported again:\n%s\nwant\n%s", b, a)
	}

	put("demo", "demokey", "DELETE", "/1/profiles/"+user, "", 200)
	put("demo", "demokey", "GET", "/1/export/"+user, "", 404)
	put("demo", "demokey", "GET", "/1/export/nobody", "", 404)
	put("demo", "demokey", "GET", "/1/export/a%2Cb", "", 422)
	put("demo", "demokey", "GET", "/1/export/"+user+"?format=csv", "", 422)
	var log api.AuditLog
	getJSON(t, s, "/1/audit-log?action=user.export", &log)
	if len(log.Entries) != 1 || log.Entries[0].Detail != "5 events" || log.Entries[0].User == "" {
		t.Errorf("the log has %+v", log)
	}
	// A user who comes back after the deletion has the events since then.
	put("demo", "demokey", "POST", "/1/events/import", text, 200)
	if status, answer := call(t, s, "GET", "/1/export/"+user, ""); status != 404 {
		t.Errorf("events of before the deletion are exported: %d %s", status, answer)
	}
}

// events are the lines of events without their times of receipt.
func events(text string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		var l api.ExportLine
		if err := json.Unmarshal([]byte(line), &l); err == nil && l.Event != nil {
			l.Event.ReceivedAt = api.Time{}
			b, _ := json.Marshal(l)
			all.Write(append(b, '\n'))
		}
	}
	return all.String()
}

func checkScores(t *testing.T, want, got map[string]float64) {
	t.Helper()
	for name, score := range want {
		if math.Abs(got[name]-score) > 1e-9*math.Abs(score) {
			t.Errorf("%s is %v, want %v", name, got[name], score)
		}
	}
	if len(maps.Collect(maps.All(got))) != len(want) {
		t.Errorf("profile %v, want %v", got, want)
	}
}

// Of a stream that ends early the client says so, and the engine stops reading when
// the client goes away: the app may export again.
func TestExportIsCut(t *testing.T) {
	s := start(t, stack.Options{})
	if status, answer := call(t, s, "POST", "/1/events/import",
		`{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["color:Red"]}`); status != 200 {
		t.Fatal(status, answer)
	}
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey", Retry: client.NoRetry})
	must.Succeed(t, err)
	gone := errors.New("the disk is full")
	for range 3 {
		if _, err := c.Export(t.Context(), "ann", writer(func([]byte) (int, error) { return 0, gone })); !errors.Is(err, gone) {
			t.Errorf("%v, want %v", err, gone)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Export(ctx, "ann", io.Discard); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	text, _ := exported(t, s, "demo", "demokey", "ann")
	last := strings.TrimSuffix(text, "\n")
	last = last[strings.LastIndex(last, "\n")+1:]
	if last != `{"exportEnd":{"events":1,"faults":0}}` {
		t.Errorf("the last line is %s", last)
	}
	for _, body := range []string{
		`{"exportCut":{"status":503,"message":"The service is unavailable, try again"}}`,
		`{"exportedFault":{"time":1,"id":"AAAAAAAAAAA"}}`,
		`{"exportedEvent":{"time":1}}`,
		`{"exportedEvent":{"time":1,"more":1}}`,
		`{"exportedEvent":1}`,
		`{"exportUnknown":1}`,
	} {
		if _, answer := call(t, s, "POST", "/1/events/import", body); !strings.Contains(answer, `"accepted":0`) || !strings.Contains(answer, `"line":1`) {
			t.Errorf("%s: %s", body, answer)
		}
	}
	// Beside other members it is an ordinary event.
	if _, answer := call(t, s, "POST", "/1/events/import",
		`{"exportEnd":1,"eventType":"view","eventName":"Seen","userToken":"bob","index":"i","filters":["color:Red"]}`); !strings.Contains(answer, `"accepted":1`) {
		t.Error(answer)
	}
}

// writer is a function as a Writer.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
