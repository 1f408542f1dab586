package stack_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// More journeys run longer: go test ./shared/local/stack -run Migration -journeys 20
var journeys = flag.Int("journeys", 1, "how often a log is migrated there and back under load")

// migrationTTL is how long processes cache configurations in these tests: long
// enough that every change meets processes that do not know of it.
const migrationTTL = 100 * time.Millisecond

var colors = []string{"red", "green", "blue", "white"}

// sent is an acknowledged event.
type sent struct {
	user  string
	time  int64
	color string
	body  string
}

// load sends requests to an engine of one or more processes while its log is
// migrated, and keeps what the log and the profiles must hold afterwards.
type load struct {
	t      *testing.T
	stacks []*stack.Stack
	began  time.Time

	pause sync.RWMutex // held while everything is compared

	mu      sync.Mutex
	last    int64             // the newest time of an event
	events  map[string]sent   // by user and time
	deleted map[string]int64  // by user, the time until which events are deleted
	counts  map[string]int    // of requests, by kind
	scoring int               // the points of a color under the active strategy
	failed  map[string]string // unexpected answers, by request
}

// The log is migrated there and back while events, duplicates, deletions,
// strategies, recomputes and nightly rounds arrive.
func TestMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	newLoad(t, 1).run(schema.Wide, schema.Narrow)
}

// The same with two processes, each with its own cache, on the official emulators,
// which answer more slowly.
func TestMigrationAcrossProcesses(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", gcloudtest.Bigtable(t))
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	newLoad(t, 2).run(schema.Wide)
}

func newLoad(t *testing.T, processes int) *load {
	l := &load{t: t, began: time.Now(), events: map[string]sent{}, deleted: map[string]int64{}, counts: map[string]int{}, failed: map[string]string{}}
	for range processes {
		s := start(t, stack.Options{
			RetentionDays: 90, Layout: schema.Of(schema.Narrow), ConfigTTL: migrationTTL,
			Recompute: job.Settings{ShardUsers: 4, Budget: time.Second, Attempts: 8},
		})
		s.Backends.Migrations.SetPauses(0, 50*time.Millisecond, 200*time.Millisecond, time.Second)
		l.stacks = append(l.stacks, s)
	}
	return l
}

// run migrates the log to each schema in turn, as often as the flag says.
func (l *load) run(way ...schema.Name) {
	for n := 1; n < *journeys; n++ {
		way = append(way, way[len(way)-1].Other(), way[len(way)-1])
	}
	l.strategy(context.Background())
	l.history()
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	every := func(pause time.Duration, do func(context.Context)) {
		work.Go(func() {
			tick := time.NewTicker(pause * race.Or[time.Duration](1, 3))
			defer tick.Stop()
			for ctx.Err() == nil {
				l.pause.RLock()
				do(ctx)
				l.pause.RUnlock()
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	for range 2 {
		every(10*time.Millisecond, l.event)
	}
	every(20*time.Millisecond, l.again)
	every(30*time.Millisecond, l.read)
	every(150*time.Millisecond, l.deletion)
	every(900*time.Millisecond, l.strategy)
	every(1300*time.Millisecond, l.recompute)
	every(1700*time.Millisecond, l.night)
	for _, to := range way {
		l.migrate(to)
	}
	stop()
	work.Wait()
	if len(l.failed) > 0 {
		l.t.Errorf("answers: %v", l.failed)
	}
	l.t.Logf("in %v: %d events, %v", time.Since(l.began).Round(time.Millisecond), len(l.events), l.counts)
}

// ask sends a request to one of the processes, and records an answer whose status
// is not wanted.
func (l *load) ask(method, path, body string, wanted ...int) (int, string) {
	s := l.stacks[rand.IntN(len(l.stacks))]
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		l.fail(method+" "+path, err.Error())
		return 0, ""
	}
	req.Header.Set("X-Algolia-Application-Id", "demo")
	req.Header.Set("X-Algolia-API-Key", "demokey")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.fail(method+" "+path, err.Error())
		return 0, ""
	}
	answer, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || !slices.Contains(append(wanted, http.StatusOK), res.StatusCode) {
		l.fail(method+" "+path, fmt.Sprintf("%d %s %v", res.StatusCode, answer, err))
		return 0, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[method+" "+strings.Join(strings.Split(path, "/")[:3], "/")]++
	return res.StatusCode, string(answer)
}

func (l *load) fail(what, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[what] = answer
}

// someone is a random user. The last third of the users are deleted again and again.
func someone() string { return fmt.Sprintf("u%d", rand.IntN(12)) }

// make returns an event of a user at a time.
func (l *load) make(user string, at int64) sent {
	color := colors[rand.IntN(len(colors))]
	return sent{user, at, color, fmt.Sprintf(
		`{"eventType":"view","eventName":"Seen","index":"i","userToken":"%s","timestamp":%d,"filters":["color:%s","other:x"]}`, user, at, color)}
}

func (l *load) ack(e sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[fmt.Sprint(e.user, e.time)] = e
}

// event sends a new event. Each has its own time.
func (l *load) event(context.Context) {
	l.mu.Lock()
	l.last = max(l.last+1, time.Now().UnixMilli()-20)
	e := l.make(someone(), l.last)
	l.mu.Unlock()
	if code, _ := l.ask("POST", "/1/events", `{"events":[`+e.body+`]}`); code == http.StatusOK {
		l.ack(e)
	}
}

// again sends an event that was sent before.
func (l *load) again(context.Context) {
	l.mu.Lock()
	var e sent
	for _, e = range l.events {
		break
	}
	l.mu.Unlock()
	l.ask("POST", "/1/events", `{"events":[`+e.body+`]}`)
}

func (l *load) read(context.Context) { l.ask("GET", "/1/profiles/"+someone(), "", http.StatusNotFound) }

func (l *load) deletion(context.Context) {
	user := fmt.Sprintf("u%d", 8+rand.IntN(4))
	_, answer := l.ask("DELETE", "/1/profiles/"+user, "")
	var said struct{ DeletedUntil time.Time }
	if err := json.Unmarshal([]byte(answer), &said); err != nil || said.DeletedUntil.IsZero() {
		l.fail("DELETE "+user, answer)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[user] = max(l.deleted[user], said.DeletedUntil.UnixMilli())
}

func (l *load) strategy(context.Context) {
	points := 1 + rand.IntN(50)
	code, _ := l.ask("POST", "/1/strategies/personalization", fmt.Sprintf(
		`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":%d}],"facetsScoring":[{"facetName":"color","score":2}],"personalizationImpact":1}`, points))
	if code == http.StatusOK {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.scoring = 2 * points
	}
}

func (l *load) recompute(context.Context) { l.ask("POST", "/1/recomputes", "") }

// night runs the nightly round, which folds imported events.
func (l *load) night(ctx context.Context) {
	s := l.stacks[rand.IntN(len(l.stacks))]
	night := job.Night{Date: s.Backends.Now().UTC().Format(time.DateOnly)}
	if err := s.Backends.Recompute.Nightly(context.WithoutCancel(ctx), "demo", night); err != nil {
		l.fail("nightly round", err.Error())
	}
}

// history imports old events. Some users have many.
func (l *load) history() {
	var lines []string
	for i := range 12 {
		for n := range 10 + 10*(i%4)*(i%4) {
			e := l.make(fmt.Sprint("u", i), l.began.Add(-time.Duration(n+1)*time.Hour).UnixMilli())
			lines = append(lines, e.body)
			l.ack(e)
		}
	}
	l.ask("POST", "/1/events/import", strings.Join(lines, "\n"))
}

// migrate runs the steps of a migration. Two deliveries of one event can leave
// different rows in the two schemas. The verification that finds them repairs them,
// and the next one passes.
func (l *load) migrate(to schema.Name) {
	l.t.Helper()
	from := to.Other()
	l.step("start", fmt.Sprintf(`{"to":%q}`, to))
	l.step("backfill", `{"rate":0}`)
	for try := 0; ; try++ {
		if state := l.step("verify", ""); state == "done" {
			break
		} else if try == 5 {
			l.t.Fatal("no verification has passed")
		}
	}
	l.step("cutover", "")
	l.audited("under load, after the cutover to " + string(to))
	l.wants(to, "after the cutover to "+string(to))
	if state := l.step("drop", fmt.Sprintf(`{"schema":%q}`, from)); state != "done" {
		l.t.Fatalf("the drop is %s", state)
	}
	l.wants(to, "after the migration to "+string(to))
	if n := rows(l.t, l.stacks[0], from); n > 0 {
		l.t.Errorf("%d rows are left in the dropped schema", n)
	}
}

// step requests a step and returns the state of its job once the job has ended and
// the change has propagated.
func (l *load) step(name, body string) string {
	l.t.Helper()
	began := time.Now()
	for {
		code, answer := call(l.t, l.stacks[rand.IntN(len(l.stacks))], "POST", "/1/schema/"+name, body)
		if code == http.StatusOK {
			break
		}
		// Each new strategy must propagate first.
		if code != http.StatusConflict || !strings.Contains(answer, "has not propagated") || time.Since(began) > time.Minute {
			l.t.Fatalf("%s: %d %s", name, code, answer)
		}
		settledSchema(l.t, l.stacks[0])
	}
	var got struct {
		Migration struct {
			Job *struct {
				State  string
				Faults []string
			}
		} `json:"move"`
	}
	must.Succeed(l.t, json.Unmarshal([]byte(settledSchema(l.t, l.stacks[0])), &got))
	if got.Migration.Job == nil {
		return ""
	}
	if len(got.Migration.Job.Faults) > 0 {
		l.t.Logf("%s is %s: %q", name, got.Migration.Job.State, got.Migration.Job.Faults)
	}
	return got.Migration.Job.State
}

// audited checks that no profile differs from the log, in any process.
func (l *load) audited(when string) {
	l.t.Helper()
	for _, s := range l.stacks {
		b := s.Backends
		app, err := b.Config.App(l.t.Context(), "demo")
		must.Succeed(l.t, err)
		report, err := audit.New(audit.RowsOf(b.Store), b.Profiles, b.Config).Sample(l.t.Context(), app, 100)
		if err != nil || report.Differing > 0 || report.Compared != 12 {
			l.t.Fatalf("the audit %s: %+v, error %v", when, report, err)
		}
	}
}

// wants compares the log, in the schema that is read, and the profiles of every
// process with the events that were sent. It pauses the load.
func (l *load) wants(lies schema.Name, when string) {
	l.t.Helper()
	l.pause.Lock()
	defer l.pause.Unlock()
	for _, s := range l.stacks {
		idle(l.t, s)
	}
	settledSchema(l.t, l.stacks[0]) // and with it the strategy
	got := map[string]int{}
	log := l.stacks[0].Backends.Store.Events.Log("demo", schema.Of(lies))
	err := log.Scan(l.t.Context(), lies, store.Range{}, 0, func(r store.Entry) error {
		e, err := r.Event()
		for _, c := range e.Counts {
			if c.Facet == "color" {
				got[fmt.Sprint(r.User, " ", r.Time, " ", c.Value)]++
			}
		}
		return err
	})
	must.Succeed(l.t, err)
	want, scores := map[string]int{}, map[string]map[string]int{}
	for _, e := range l.events {
		key := fmt.Sprint(e.user, " ", e.time, " ", e.color)
		// The deletion covers what has the last time of its slack only if it was also
		// received by then.
		if until := l.deleted[e.user]; e.time > until || e.time == until && got[key] > 0 {
			want[key]++
			if scores[e.user] == nil {
				scores[e.user] = map[string]int{}
			}
			scores[e.user][e.color] += l.scoring
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("%s the log holds %d events, want %d (-want +got):\n%s", when, len(got), len(want), diff)
	}
	for _, s := range l.stacks {
		for i := range 12 {
			l.profile(s, fmt.Sprint("u", i), scores)
		}
	}
	l.audited("at rest, " + when)
}

func (l *load) profile(s *stack.Stack, user string, want map[string]map[string]int) {
	l.t.Helper()
	code, answer := call(l.t, s, "GET", "/1/profiles/"+user, "")
	var p struct {
		Affinities []struct {
			Facet, Value string
			Score        float64
		}
	}
	if code != http.StatusNotFound {
		if err := json.Unmarshal([]byte(answer), &p); err != nil || code != http.StatusOK {
			l.t.Fatalf("profile of %s: %d %s", user, code, answer)
		}
	}
	got := map[string]int{}
	for _, a := range p.Affinities {
		got[a.Value] = int(a.Score)
	}
	if !maps.Equal(got, want[user]) {
		l.t.Errorf("%s scores %v, want %v", user, got, want[user])
	}
}
