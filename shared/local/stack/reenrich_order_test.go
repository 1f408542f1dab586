package stack_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// late is an engine with one event of two objects that the catalog does not hold. A
// recorder keeps what its re-enrichments publish.
type late struct {
	t    *testing.T
	s    *stack.Stack
	sent *recorder
	// first is the message that held the event.
	first bus.Message
}

func newLate(t *testing.T) *late {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	l := &late{t: t, s: s, sent: record(s, nil)}
	ok(t, s, "/1/strategies/personalization", lateStrategy)
	l.first = bus.Message{App: "demo", ReceivedAt: s.Backends.Now().UnixMilli() - 600_000, Request: 7, Resolved: true,
		Body: []byte(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":["1","2"]}]}`)}
	l.push(l.first)
	l.wants("")
	return l
}

// reenriched runs a re-enrichment and returns the message that it publishes.
func (l *late) reenriched() bus.Message {
	l.t.Helper()
	r := reenrichAll(l.t, l.s, "")
	sent := l.sent.take()
	if r.State != "done" || len(sent) != 1 {
		l.t.Fatalf("%+v has published %d messages, want one", r, len(sent))
	}
	return sent[0]
}

func (l *late) push(m bus.Message) {
	l.t.Helper()
	if code := l.pushTo(l.s.Backends, m, 1); code != http.StatusNoContent {
		l.t.Fatalf("a message of kind %q is answered with %d", m.Kind, code)
	}
}

// pushTo delivers a message to a process function.
func (l *late) pushTo(b *stack.Backends, m bus.Message, attempt int) int {
	l.t.Helper()
	data, err := m.Encode()
	must.Succeed(l.t, err)
	w := httptest.NewRecorder()
	process.New(b.ForProcess()).ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(fmt.Sprintf(
		`{"message":{"data":%q,"messageId":"7"},"subscription":"s","deliveryAttempt":%d}`, base64.StdEncoding.EncodeToString(data), attempt))))
	return w.Code
}

// wants compares the colors of the profile, served and computed by the formula
// from the log.
func (l *late) wants(colors string) {
	l.t.Helper()
	var p struct {
		Affinities []struct{ Facet, Value string }
	}
	code, answer := call(l.t, l.s, "GET", "/1/profiles/u", "")
	if err := json.Unmarshal([]byte(answer), &p); err != nil || code != http.StatusOK && code != http.StatusNotFound {
		l.t.Fatalf("%d %s", code, answer)
	}
	var got []string
	for _, a := range p.Affinities {
		if a.Facet == "color" {
			got = append(got, a.Value)
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != colors {
		l.t.Errorf("served %v, want %q", got, colors)
	}
	got = nil
	for _, row := range l.log() {
		e, err := row.Event()
		must.Succeed(l.t, err)
		for _, c := range e.Counts {
			if c.Facet == "color" {
				got = append(got, c.Value)
			}
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != colors {
		l.t.Errorf("the log holds %v, want %q", got, colors)
	}
}

// log are the rows of the user's log.
func (l *late) log() []store.LogRow {
	l.t.Helper()
	app, err := l.s.Backends.Config.App(l.t.Context(), "demo")
	must.Succeed(l.t, err)
	var rows []store.LogRow
	err = l.s.Backends.Store.Events.Log("demo", app.Log).Read(l.t.Context(), []store.UserRange{{User: "u", To: history.End}}, func(_ string, row store.LogRow) error {
		rows = append(rows, row)
		return nil
	})
	must.Succeed(l.t, err)
	return rows
}

func TestReenrichedMessagesInAnyOrder(t *testing.T) {
	l := newLate(t)
	save(t, l.s, "i", object("i", "1"))
	one := l.reenriched()
	save(t, l.s, "i", object("i", "2"))
	both := l.reenriched()

	l.push(one)
	l.wants("ci1")
	l.push(one)
	l.wants("ci1")
	l.push(both)
	l.wants("ci1 ci2")
	for _, m := range []bus.Message{both, one, l.first, one, both} {
		l.push(m)
		l.wants("ci1 ci2")
	}
	if n := len(l.log()); n != 1 {
		t.Errorf("the log has %d rows, want 1", n)
	}
	for _, line := range []string{`affinity_events_total{outcome="superseded"} 3`, `affinity_events_total{outcome="reenriched"} 5`, `affinity_events_total{outcome="applied"} 1`} {
		if text := metrics(t, l.s); !strings.Contains(text, line) {
			t.Errorf("metrics do not say %s:\n%s", line, text)
		}
	}
}

// A message is applied with the filters that it carries, even if the catalog changes
// before.
func TestReenrichedMessagesCarryTheirFilters(t *testing.T) {
	l := newLate(t)
	save(t, l.s, "i", object("i", "1"))
	m := l.reenriched()
	save(t, l.s, "i", `{"objectID":"1","color":"Other"}`)
	for range 2 {
		l.push(m)
		l.wants("ci1")
	}
	wantStatus(t, l.s, http.StatusOK, "DELETE", "/1/indexes/i/1", "")
	l.push(m)
	l.wants("ci1")
}

// An event that is deleted between publish and apply stays deleted, whether or not
// its row has been purged.
func TestReenrichedEventsStayDeleted(t *testing.T) {
	for name, purged := range map[string]bool{"before the purge": false, "after the purge": true} {
		t.Run(name, func(t *testing.T) {
			l := newLate(t)
			save(t, l.s, "i", object("i", "1"))
			m := l.reenriched()
			if purged {
				wantStatus(t, l.s, http.StatusOK, "DELETE", "/1/profiles/u", "")
				idle(t, l.s)
			} else if _, err := l.s.Backends.Profiles.Delete(t.Context(), "demo", "u"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l.push(m)
				l.wants("")
				if n := len(l.log()); n != 0 {
					t.Errorf("%d rows are in the log of a user who was deleted", n)
				}
			}
		})
	}
}

// An event whose row is gone, for example by age, is not written again.
func TestReenrichedEventsWithoutRows(t *testing.T) {
	l := newLate(t)
	save(t, l.s, "i", object("i", "1"))
	m := l.reenriched()
	app, err := l.s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	row := l.log()[0]
	must.Succeed(t, l.s.Backends.Store.Events.Log("demo", app.Log).Delete(t.Context(), []store.LogEvent{{User: "u", Time: row.Time, ID: row.ID}}))
	l.push(m)
	if n := len(l.log()); n != 0 {
		t.Errorf("%d rows are in the log, want none", n)
	}
}

// An event that has left the window does not count.
func TestReenrichedEventsOutsideTheWindow(t *testing.T) {
	l := newLate(t)
	old := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":["2"],"timestamp":%d}`,
		l.s.Backends.Now().Add(-60*day).UnixMilli())
	ok(t, l.s, "/1/events/import", old)
	save(t, l.s, "i", object("i", "1"), object("i", "2"))
	m := l.reenriched()
	must.Succeed(t, l.s.Backends.Config.SetRetention(t.Context(), "demo", 30))
	poll(t, time.Minute, func() (string, bool) { // until the cache has expired
		app, err := l.s.Backends.CachedConfig.App(t.Context(), "demo")
		must.Succeed(t, err)
		return fmt.Sprintf("%+v", app), app.RetentionDays == 30
	})
	l.push(m)
	if code, answer := call(t, l.s, "GET", "/1/profiles/u", ""); code != http.StatusOK || !strings.Contains(answer, `"value":"ci1","score":30}`) ||
		!strings.Contains(answer, `"value":"ci2","score":30}`) {
		t.Errorf("%d %s, want the recent event alone", code, answer)
	}
	// A re-enrichment no longer reads it.
	if r := reenrichAll(t, l.s, ""); r.Events != 1 {
		t.Errorf("%+v, want one event in the window", r)
	}
}

var errRefresh = errors.New("no refresh today")

// A message that fails after the log was written is retried and then buried, and its
// user's profile is marked. When the message is replayed, it counts.
func TestFailingReenrichedMessages(t *testing.T) {
	l := newLate(t)
	save(t, l.s, "i", object("i", "1"))
	m := l.reenriched()
	broken := *l.s.Backends
	broken.Profiles = profile.New(broken.Store, broken.Config, config.NewCached(away(broken.Config, errRefresh), 0), broken.Now, broken.Log)
	failed := 0
	for l.pushTo(&broken, m, failed+1) >= 500 && failed < 30 {
		failed++
	}
	if failed != 19 && failed != 20 { // the last failure is answered with success
		t.Fatalf("%d deliveries are answered with a status that Pub/Sub retries", failed)
	}
	l.wants("ci1") // what is in the log counts, whatever became of the message
	buried := deadLetters(t, messaging(t, l.s), 1)
	for data, reason := range buried {
		got, err := bus.DecodeMessage([]byte(data))
		if err != nil || !strings.Contains(reason, errRefresh.Error()) {
			t.Fatalf("buried %q for %q, error %v", data, reason, err)
		}
		l.push(got)
	}
	l.wants("ci1")
	if n := len(l.log()); n != 1 {
		t.Errorf("the log has %d rows, want 1", n)
	}
}

// If a block covers the event, applying the message uncovers its range.
func TestReenrichedEventsUncoverTheirBlocks(t *testing.T) {
	l := newLate(t)
	var old []string
	for i := range 200 {
		old = append(old, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["brand:b"],"timestamp":%d}`,
			l.s.Backends.Now().Add(-time.Duration(i+1)*time.Hour).UnixMilli()))
	}
	ok(t, l.s, "/1/events/import", strings.Join(old, "\n"))
	save(t, l.s, "i", object("i", "1"))
	m := l.reenriched()
	sh := &shopper{t: t, s: l.s, events: map[string][]lateEvent{"u": nil}}
	sh.fold()
	places, err := m.Logged()
	must.Succeed(t, err)
	at := history.Pos{Time: places[0].Time, ID: places[0].ID}
	if !l.covered(at) {
		t.Fatalf("the event at %+v is not in a block, so the test shows nothing", at)
	}
	l.push(m)
	if l.covered(at) {
		t.Error("a block without the filters still covers the event")
	}
	l.wants("ci1")
	sh.fold()
	if !l.covered(at) {
		t.Error("the event is not folded again")
	}
	l.wants("ci1")
	var p affinity.Profile
	row, err := l.s.Backends.Store.Users.ReadUser(t.Context(), "demo", "u")
	if err == nil {
		p, err = affinity.ParseProfile(row.Profile, 0)
	}
	if err != nil || p.LastEventAt != at.Time {
		t.Errorf("stored %+v, error %v", p, err)
	}
}

// covered reports whether a block holds the event at a position.
func (l *late) covered(at history.Pos) bool {
	l.t.Helper()
	row, err := l.s.Backends.Store.Users.ReadUser(l.t.Context(), "demo", "u")
	must.Succeed(l.t, err)
	m, err := history.ParseManifest(row.Manifest)
	must.Succeed(l.t, err)
	return slices.ContainsFunc(m.Blocks, func(b history.Block) bool { return b.From.Compare(at) <= 0 && at.Compare(b.To) < 0 })
}
