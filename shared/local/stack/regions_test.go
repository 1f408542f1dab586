package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

// regional starts an engine of two regions, whose moves wait for little.
func regional(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	o.Regions, o.ConfigTTL, o.Life = []string{"eu", "us"}, 20*time.Millisecond, 2*time.Second
	return start(t, o)
}

// moved waits until an app has moved.
func moved(t *testing.T, s *stack.Stack, app string) config.App {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		a, err := s.Backends.Config.App(t.Context(), app)
		must.Succeed(t, err)
		if !a.Moving() {
			return a
		}
		if status, err := s.Backends.Moves.Status(t.Context(), app); err != nil || status.Job != nil && status.Job.State == job.Failed {
			t.Fatalf("the move stands still: %+v, %v", status, err)
		}
		select {
		case <-deadline:
			t.Fatalf("the move stands still: %+v", a.Move)
		case <-time.After(20 * time.Millisecond): // phases wait
		}
	}
}

const regionsStrategy = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":1}],
	"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`

// furnish gives the app a strategy and the object that visitors view.
func furnish(t *testing.T, s *stack.Stack) {
	t.Helper()
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", regionsStrategy)
	for path, body := range map[string]string{
		"/1/indexes/products/settings": `{"attributesForFaceting":["color"]}`,
		"/1/indexes/products/batch":    `{"requests":[{"action":"addObject","body":{"objectID":"red","color":"red"}}]}`,
	} {
		method := "POST"
		if strings.HasSuffix(path, "settings") {
			method = "PUT"
		}
		if code, answer := call(t, s, method, path, body); code >= 300 {
			t.Fatal(path, code, answer)
		}
	}
}

// visitor sends events of a few users and reads their profiles until it is stopped.
type visitor struct {
	t    *testing.T
	s    *stack.Stack
	sent [4]int
}

func (x *visitor) run(ctx context.Context) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-pace.C // so that the move has the processors
		user := i % len(x.sent)
		code, answer := ask(x.t, x.s, "POST", "/1/events", fmt.Sprintf(
			`{"events":[{"eventType":"view","eventName":"Viewed","index":"products","userToken":"traveller-%d","objectIDs":["red"],"eventID":"%d"}]}`, user, i))
		if code != http.StatusOK {
			x.t.Errorf("event: %d %s", code, answer)
			return
		}
		x.sent[user]++
		for _, path := range []string{"/1/profiles/traveller-0", "/1/explain/traveller-0", "/1/usertokens?limit=10", "/1/events/recent", "/1/usertokens/recent"} {
			if code, answer := ask(x.t, x.s, "GET", path, ""); code != http.StatusOK && !(code == http.StatusNotFound && i == 0) {
				x.t.Errorf("GET %s: %d %s", path, code, answer)
				return
			}
		}
		if code, answer := ask(x.t, x.s, "POST", "/1/indexes/products/batch", fmt.Sprintf(`{"requests":[{"action":"addObject","body":{"objectID":"blue","color":"blue%d"}}]}`, i)); code >= 300 {
			x.t.Errorf("object: %d %s", code, answer)
			return
		}
	}
}

// eventsOf returns how many events of a user an explanation of the profile counts.
func eventsOf(t *testing.T, s *stack.Stack, user int) int {
	t.Helper()
	_, answer := ask(t, s, "GET", fmt.Sprintf("/1/explain/traveller-%d", user), "")
	var x struct{ Events struct{ Counted int } }
	if err := json.Unmarshal([]byte(answer), &x); err != nil {
		t.Fatalf("explain: %v %s", err, answer)
	}
	return x.Events.Counted
}

// An app moves to the other region while it is in use: no request fails, every event counts
// once, and the region that it has left holds nothing of it, in any table. What cannot be is
// refused, and what there is is there again at the next start.
func TestMoveRegion(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := regional(t, stack.Options{Data: data})
	refused := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	moves := s.Backends.Moves
	_, err := moves.Start(t.Context(), "demo", "asia")
	refused(`There is no region "asia": the regions are eu, us`, err)
	_, err = moves.Start(t.Context(), "demo", "eu")
	refused("App demo is in region eu already", err)
	_, err = moves.Undo(t.Context(), "demo")
	refused("App demo does not move", err)
	furnish(t, s)
	x := &visitor{t: t, s: s}
	ctx, stop := context.WithCancel(t.Context())
	var visiting sync.WaitGroup
	visiting.Go(func() { x.run(ctx) })
	if _, err := moves.Start(t.Context(), "demo", "us"); err != nil {
		t.Fatal(err)
	}
	_, err = moves.Estimate(t.Context(), "demo", "us")
	refused("App demo moves from eu to us", err)
	app := moved(t, s, "demo")
	stop()
	visiting.Wait()
	idle(t, s)
	check := func(s *stack.Stack) {
		t.Helper()
		if app.Region != "us" {
			t.Errorf("the app is in %q", app.Region)
		}
		for user, n := range x.sent {
			if got := eventsOf(t, s, user); got != n {
				t.Errorf("user %d has %d events, want %d", user, got, n)
			}
		}
		nothingOf(t, s, stack.Instance)
	}
	check(s)
	must.Succeed(t, s.Close())
	_, err = stack.Start(t.Context(), stack.Options{Data: data, Regions: []string{"eu", "asia"}})
	refused("app demo has data in region us: start with it (--regions eu,asia,us, or --tables if it is a set of tables), and move the app first", err)
	_, err = stack.Start(t.Context(), stack.Options{Data: data, Regions: []string{"us"}})
	refused("the first region eu", err)
	again := start(t, stack.Options{Data: data, ConfigTTL: 20 * time.Millisecond, LateWrites: time.Millisecond}) // with the regions of the folder
	check(again)

	// The deletion of the app reaches every region, and keeps what it says of users in the
	// app's own.
	if _, err := again.Backends.Deletions.Delete(t.Context(), "demo", false); err != nil {
		t.Fatal(err)
	}
	waitForDeletion(t, again, "demo", func(status deletion.Status) bool {
		nothingOf(t, again, stack.Instance)
		return status.Ended()
	})
	nothingOf(t, again, stack.Instance+"-us")
}

// nothingOf checks that an instance holds nothing of the app demo and its users, neither in
// keys nor in values.
func nothingOf(t *testing.T, s *stack.Stack, instance string) {
	t.Helper()
	for _, row := range rowsOfDemo(t, s, instance, "") {
		t.Errorf("%s has %s", instance, row)
	}
}

// textOf returns the key of a row with its columns and values.
func textOf(row bigtable.Row) string {
	text := row.Key()
	for _, items := range row {
		for _, item := range items {
			text += " " + item.Column + " " + string(item.Value)
		}
	}
	return text
}

// rowsOfDemo returns the rows of a set of tables that name the app demo or its users.
func rowsOfDemo(t *testing.T, s *stack.Stack, instance, ending string) (found []string) {
	t.Helper()
	eachRowIn(t, bigtableAt(t, s, instance), ending, func(table store.Table, row bigtable.Row) {
		text := textOf(row)
		if strings.Contains(text, "traveller") || strings.HasPrefix(row.Key(), "demo,") {
			found = append(found, fmt.Sprintf("table %s: %.200q", table.Name, text))
		}
	})
	return found
}

// An app moves to tables of its own in the same instance, under events and reads, and its other
// tables then hold nothing of it; the engine starts again with the sets of the folder.
func TestIsolate(t *testing.T) {
	if testing.Short() {
		t.Skip("-short moves to other regions only")
	}
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, stack.Options{Data: data, Tables: []string{"big"}, ConfigTTL: 20 * time.Millisecond, Life: time.Second})
	furnish(t, s)
	x := &visitor{t: t, s: s}
	ctx, stop := context.WithCancel(t.Context())
	var visiting sync.WaitGroup
	visiting.Go(func() { x.run(ctx) })
	if _, err := s.Backends.Moves.Start(t.Context(), "demo", "big"); err != nil {
		t.Fatal(err)
	}
	moved(t, s, "demo")
	stop()
	visiting.Wait()
	idle(t, s)
	check := func(s *stack.Stack, ending string) {
		t.Helper()
		for user, n := range x.sent {
			if got := eventsOf(t, s, user); got != n {
				t.Errorf("user %d has %d events, want %d", user, got, n)
			}
		}
		for _, row := range rowsOfDemo(t, s, stack.Instance, map[string]string{"": ".big", ".big": ""}[ending]) {
			t.Errorf("the tables that were left have %s", row)
		}
		if len(rowsOfDemo(t, s, stack.Instance, ending)) == 0 {
			t.Errorf("no table with the ending %q has rows of the app", ending)
		}
	}
	check(s, ".big")
	must.Succeed(t, s.Close())
	if _, err := stack.Start(t.Context(), stack.Options{Data: data, Tables: []string{"other"}}); err == nil || !strings.Contains(err.Error(), "app demo has data in region big") {
		t.Errorf("started without the app's tables: %v", err)
	}
	again := start(t, stack.Options{Data: data, ConfigTTL: 20 * time.Millisecond, Life: time.Second})
	check(again, ".big")
	if _, err := again.Backends.Moves.Start(t.Context(), "demo", "main"); err != nil {
		t.Fatal(err)
	}
	moved(t, again, "demo")
	idle(t, again)
	check(again, "")
}

// Nothing of an app that is pinned to a region is written anywhere else, whatever jobs run and
// fail: neither rows nor messages.
func TestPinnedApp(t *testing.T) {
	t.Parallel()
	archive := t.TempDir()
	b := &burdened{region: "us"}
	s := b.run(t, stack.Options{Regions: []string{"eu", "us"}, Archive: archive})
	wantStatus(t, s, http.StatusOK, "GET", "/1/export/"+token+"03", "")
	wantStatus(t, s, http.StatusNoContent, "DELETE", "/1/usertokens/"+token+"03", "")
	idle(t, s)
	eachRow(t, bigtableAt(t, s, stack.Instance), func(table store.Table, row bigtable.Row) {
		text := textOf(row)
		if strings.Contains(text, token) || strings.HasPrefix(row.Key(), "demo,") || strings.HasPrefix(row.Key(), "gone,") {
			t.Errorf("eu, table %s: %.200q", table.Name, text)
		}
	})
	if err := s.Close(); err != nil { // the archive has all messages
		t.Fatal(err)
	}
	in := map[string]int{}
	err := filepath.WalkDir(archive, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		topic := strings.Split(strings.TrimPrefix(path, archive+"/"), "/")[0]
		in[topic] += strings.Count(string(text), token)
		return err
	})
	must.Succeed(t, err)
	for topic, n := range in {
		if (n > 0) != strings.HasSuffix(topic, ".us") {
			t.Errorf("the messages of topic %s name users %d times", topic, n)
		}
	}
	if in["events.us"] == 0 {
		t.Errorf("the archive has messages of %v", in)
	}
}
