package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// startArchiving starts an engine that archives to a folder, with a strategy.
func startArchiving(t *testing.T, folder string) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: "demokey"}}, RetentionDays: 90,
		Archive: folder, ConfigTTL: time.Millisecond, Limits: limit.Numbers{EventsPerSecond: limit.Max, ReadsPerSecond: limit.Max, UserEventsPerDay: limit.Max}})
	must(t, err)
	return s
}

// stop ends an engine once all events are applied and archived.
func stop(t *testing.T, s *stack.Stack) {
	t.Helper()
	settle(t, s)
	must(t, s.Close())
}

func settle(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, s.Idle(ctx))
}

// rawPost posts a body as it is.
func rawPost(t *testing.T, s *stack.Stack, path, body string) {
	t.Helper()
	if status, answer := ask(t, s, http.MethodPost, path, body); status != http.StatusOK {
		t.Fatalf("POST %s: %d %s", path, status, answer)
	}
}

func ask(t *testing.T, s *stack.Stack, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("X-Algolia-Application-Id", "demo")
	req.Header.Set("X-Algolia-API-Key", "demokey")
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer.String()
}

// logOf returns the rows of users as lines of their exports: place, receipt, filters and
// event.
func logOf(t *testing.T, s *stack.Stack, users ...string) (rows []string) {
	t.Helper()
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey", Retry: client.NoRetry})
	must(t, err)
	for _, user := range users {
		var text bytes.Buffer
		if _, err := c.Export(t.Context(), user, &text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if strings.HasPrefix(line, `{"exportedEvent"`) {
				rows = append(rows, line)
			}
		}
	}
	return rows
}

const archiveStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3}],
	"facetsScoring":[{"facetName":"color","score":10}],"personalizationImpact":50}`

// An archive holds every form that an accepted event can have on its way. Into an empty
// engine it restores the same log: ids, receipts and filters.
func TestArchiveRestoresTheLog(t *testing.T) {
	folder := t.TempDir()
	s := startArchiving(t, folder)
	strategy := write(t, "strategy.json", archiveStrategy)
	affinity(t, "", "strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	rawPost(t, s, "/1/indexes/shoes/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":["Red","White"]}}]}`)
	now := s.Backends.Now().UnixMilli()
	const head = `"eventType":"view","eventName":"Seen","index":"shoes"`

	// Line breaks, equal events without a time, and an object that is not known yet.
	rawPost(t, s, "/1/events", "{\n\"events\":[\n{"+head+",\n\"userToken\":\"ann\",\"objectIDs\":[\"1\"]},\r\n{"+head+",\n\"userToken\":\"ann\",\"objectIDs\":[\"1\"]}]}\n")
	rawPost(t, s, "/1/events", fmt.Sprintf(`{"events":[{%s,"userToken":"ann","objectIDs":["1","late"],"timestamp":%d,"eventSubtype":""}]}`, head, now-5000))
	rawPost(t, s, "/1/events", fmt.Sprintf(`{"events":[{%s,"userToken":"bob","filters":["color:<&> \\u2028"],"timestamp":%d}]}`, head, now-6000))
	// Requests that share a message, one of another app, the slow lane, and messages whose
	// catalog could not be read.
	for i, change := range []func(*bus.Message){
		func(m *bus.Message) { m.Lane = bus.SlowLane },
		func(m *bus.Message) { m.App = "other" },
		func(m *bus.Message) {},
		func(m *bus.Message) { m.Resolved = true },
	} {
		m := bus.Message{App: "demo", ReceivedAt: now - 1000, Request: 1<<63 + uint64(i),
			Body: fmt.Appendf(nil, `{"events":[{%s,"userToken":"eve","objectIDs":["1"]},{%s,"userToken":"eve","objectIDs":["unknown"],"timestamp":%d}]}`, head, head, now-7000-int64(i))}
		change(&m)
		must(t, s.Backends.Bus.Publish(t.Context(), m))
	}
	settle(t, s)
	rawPost(t, s, "/1/indexes/shoes/batch", `{"requests":[{"action":"addObject","body":{"objectID":"late","color":"Blue"}}]}`)
	affinity(t, "", "reenrich", "--url", s.URL).wants(t, cli.ExitOK, "2 resolved now")
	settle(t, s)
	users := []string{"ann", "bob", "eve"}
	want, profile := logOf(t, s, users...), profiles(t, s, users)
	if len(want) != 3+1+6 {
		t.Fatalf("%d events in the log: %s", len(want), want)
	}
	affinity(t, "", "import", "--archive", folder, "--url", s.URL).wants(t, cli.ExitOK, "10 were in the log, 0 are new", "skipped 1 message of other apps")
	if diff := cmp.Diff(want, logOf(t, s, users...)); diff != "" {
		t.Errorf("the archive changed the log that it is of (-before +after):\n%s", diff)
	}
	stop(t, s)

	fresh := startEngine(t, stack.Options{RetentionDays: 90, ConfigTTL: time.Millisecond})
	objects := write(t, "objects.ndjson", `{"objectID":"1","color":["Red","White"]}`)
	command := []string{"import", "--archive", folder, "--strategy", strategy, "--objects", objects, "--index", "shoes", "--url", fresh.URL}
	affinity(t, "", command...).wants(t, cli.ExitOK, "0 were in the log, 10 are new")
	if diff := cmp.Diff(want, logOf(t, fresh, users...)); diff != "" {
		t.Errorf("the log (-archived +restored):\n%s", diff)
	}
	if diff := cmp.Diff(profile, profiles(t, fresh, users)); diff != "" {
		t.Errorf("profiles (-archived +restored):\n%s", diff)
	}
	affinity(t, "", command...).wants(t, cli.ExitOK, "10 were in the log, 0 are new")
	if diff := cmp.Diff(want, logOf(t, fresh, users...)); diff != "" {
		t.Errorf("the second import changed the log (-first +second):\n%s", diff)
	}
	affinity(t, "", "audit", "--url", fresh.URL).wants(t, cli.ExitOK)
}

// An archive holds users who were deleted since. The app that deleted them keeps them
// deleted. One that was created again does not know, so the command can leave them out.
func TestArchiveOfADeletedUser(t *testing.T) {
	folder := t.TempDir()
	s := startArchiving(t, folder)
	event := `{"events":[{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"%s","filters":["color:Red"]}]}`
	rawPost(t, s, "/1/events", fmt.Sprintf(event, "ann"))
	rawPost(t, s, "/1/events", fmt.Sprintf(event, "bob"))
	settle(t, s)
	if status, answer := ask(t, s, http.MethodDelete, "/1/profiles/ann", ""); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	settle(t, s)
	known := func(s *stack.Stack, user string, want int) {
		t.Helper()
		if status, answer := ask(t, s, http.MethodGet, "/1/profiles/"+user, ""); status != want {
			t.Errorf("the profile of %s: %d %s, want %d", user, status, answer, want)
		}
	}
	affinity(t, "", "import", "--archive", folder, "--url", s.URL).wants(t, cli.ExitOK,
		"restored 2 events", "1 were in the log, 0 are new", "older than the deletion of their user: 1 event")
	known(s, "ann", 404)
	known(s, "bob", 200)
	stop(t, s)

	fresh := startEngine(t, stack.Options{RetentionDays: 90})
	affinity(t, "", "import", "--archive", folder, "--without-users", write(t, "deleted.txt", "ann\n"), "--url", fresh.URL).
		wants(t, cli.ExitOK, "restored 1 event", "left out 1 event of the users")
	known(fresh, "ann", 404)
	known(fresh, "bob", 200)
	affinity(t, "", "import", "--archive", folder, "--url", fresh.URL).wants(t, cli.ExitOK)
	known(fresh, "ann", 200)
}

// What a process leaves that ends within a write, and other damage, is named by line.
// Everything else goes in, also what follows in the file.
func TestBrokenArchiveIsNamedByLine(t *testing.T) {
	t.Parallel()
	message := func(user string) string {
		m := bus.Message{App: "demo", ReceivedAt: time.Now().UnixMilli(), Request: 7, Resolved: true,
			Body: fmt.Appendf(nil, `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"filters":["color:Red"]}]}`, user)}
		data, err := m.Encode()
		must(t, err)
		return string(data) + "\n"
	}
	torn := message("torn")
	folder := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	first := put("1.ndjson", message("ann")+"no JSON\n\n"+message("bob")+torn[:len(torn)-40])
	cut := put("2.ndjson.gz", zipped(t, message("eve"))[:20])
	put("3.ndjson", message("joe"))
	put("notes.txt", "not of the archive")
	s := startEngine(t, stack.Options{RetentionDays: 90})
	affinity(t, "", "import", "--archive", folder, "--url", s.URL).wants(t, command.ExitLines, "restored 3 events of demo from 3 files",
		first+":3: decode message", first+":8: ", cut+":", "is it damaged or cut short?", "3 of 6 lines did not go in; all others did")
	if all := profiles(t, s, []string{"ann", "bob", "eve", "joe", "torn"}); len(all) != 3 {
		t.Errorf("restored %v, want ann, bob and joe", all)
	}
}

func TestImportArchiveUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--archive":                  "EVENTS is missing",
		"--archive -":                "reads its files twice",
		"--archive --index i x":      "events of an archive have their index",
		"--without-users x y.ndjson": "--without-users is for --archive",
	} {
		affinity(t, "", append([]string{"import"}, strings.Fields(args)...)...).wants(t, cli.ExitUsage, want)
	}
	empty := t.TempDir()
	affinity(t, "", "import", "--archive", empty).wants(t, cli.ExitFailed, empty+" holds no file whose name ends with .ndjson")
	bad := write(t, "users.txt", "ann\nbob smith\n")
	affinity(t, "", "import", "--archive", bad, "--without-users", bad).wants(t, cli.ExitFailed, bad+`:2: "bob smith" is no user token`)
}

// wholeData has TestRealArchiveRestores and TestRealDataImported take all users of a data set
// and not some.
const wholeData = "AFFINITY_WHOLE_DATA"

// The archive of real events, sent as a shop sends them and some of them twice, restores
// to equal profiles.
func TestRealArchiveRestores(t *testing.T) {
	t.Parallel()
	const set = realData("clickstream")
	one := race.Or(60, 200)
	if os.Getenv(wholeData) == "1" {
		one = 1
	}
	events := realdata.Decoded[realEvent](t, string(set), realdata.EventsFile)
	chosen, users := map[string]bool{}, []string(nil)
	for i, user := range usersOf(events) {
		if i%one == 0 {
			chosen[user], users = true, append(users, user)
		}
	}
	folder := t.TempDir()
	s := startArchiving(t, folder)
	setUp := []string{"--strategy", set.file(t, realdata.StrategyFile), "--objects", set.file(t, realdata.ObjectsFile), "--index", "shop"}
	affinity(t, "", slices.Concat([]string{"import", "--url", s.URL}, setUp, []string{write(t, "none.ndjson", "")})...).wants(t, cli.ExitOK)
	send(t, s, events, chosen, moveIntoLastDays(events, s.Backends.Now(), 20))
	settle(t, s)
	want := map[string]realProfile{}
	for part := range slices.Chunk(users, 1000) {
		for user, p := range profiles(t, s, part) {
			want[user] = p
		}
	}
	stop(t, s)

	fresh := startEngine(t, stack.Options{RetentionDays: 90, Limits: limit.Numbers{ReadsPerSecond: limit.Max, ImportsPerSecond: limit.Max}})
	command := slices.Concat([]string{"import", "--archive", "--url", fresh.URL, folder}, setUp)
	r := affinity(t, "", command...)
	r.wants(t, cli.ExitOK, "restored")
	t.Log(r.out)
	same := func() {
		t.Helper()
		for part := range slices.Chunk(users, 1000) {
			got := profiles(t, fresh, part)
			for _, user := range part {
				if diff := cmp.Diff(want[user], got[user]); diff != "" {
					t.Fatalf("profile of %s (-archived +restored):\n%s", user, diff)
				}
			}
		}
	}
	same()
	affinity(t, "", "audit", "--url", fresh.URL, "--sample", "1000").wants(t, cli.ExitOK)
	affinity(t, "", command...).wants(t, cli.ExitOK, " 0 are new")
	same()
}

// usersOf returns the users of events, each once.
func usersOf(events []realEvent) (users []string) {
	seen := map[string]bool{}
	for _, e := range events {
		if !seen[e.UserToken] {
			seen[e.UserToken], users = true, append(users, e.UserToken)
		}
	}
	return users
}
