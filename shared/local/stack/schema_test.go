package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestSchemaScenarios runs dialogues like those of TestScenarios with an engine
// whose apps begin narrow, and whose configuration propagates at once. In the file
// waiting it never propagates. A shard has two users. More commands:
//
//	step NAME        a request to /1/schema/NAME with the body that follows; if it is
//	                 accepted, waits until the job has ended and the layout has
//	                 propagated, and prints the answer of GET /1/schema
//	rows             how many rows the app has in each schema
//	damage SCHEMA    writes a row that is not an event
//	repair SCHEMA    removes that row
//
// In answers, ids of moves and jobs are <move> and so on, and profiles do not say
// where they come from: a recompute may have been there first.
func TestSchemaScenarios(t *testing.T) {
	t.Parallel() // its audit waits until a difference has stood for some seconds
	datadriven.Walk(t, "testdata/schemas", func(t *testing.T, path string) {
		o := stack.Options{
			Now: noon, RetentionDays: 90, Layout: schema.Of(schema.Narrow),
			ConfigTTL: time.Millisecond, Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3},
		}
		if filepath.Base(path) == "waiting" {
			o.ConfigTTL = time.Hour
		}
		o.Bigtable = []grpc.ServerOption{grpc.ChainUnaryInterceptor(withoutObjects)}
		s := start(t, o)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "http":
				return stableMove(scenarioHTTP(t, s, d))
			case "idle":
				idle(t, s)
				return ""
			case "profile":
				return sourceMark.ReplaceAllString(scenarioProfile(t, s, d), ",")
			case "step":
				code, answer := call(t, s, "POST", "/1/schema/"+d.CmdArgs[0].Key, d.Input)
				if code == http.StatusOK {
					answer = settledSchema(t, s)
				}
				return fmt.Sprintf("%d %s\n", code, stableMove(answer))
			case "rows":
				return fmt.Sprintf("narrow %d, wide %d\n", rows(t, s, schema.Narrow), rows(t, s, schema.Wide))
			case "damage", "repair":
				damage(t, s, schema.Name(d.CmdArgs[0].Key), d.Cmd == "damage")
				return ""
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// settledSchema is the answer of GET /1/schema once the layout has propagated and no
// job runs.
func settledSchema(t *testing.T, s *stack.Stack) string {
	t.Helper()
	return poll(t, time.Minute, func() (string, bool) {
		code, answer := call(t, s, "GET", "/1/schema", "")
		var got struct {
			SettlesInMs int
			Migration   struct{ Job *struct{ State job.State } } `json:"move"`
		}
		if err := json.Unmarshal([]byte(answer), &got); code != http.StatusOK || err != nil {
			t.Fatalf("%d %s %v", code, answer, err)
		}
		return answer, got.SettlesInMs == 0 && (got.Migration.Job == nil || got.Migration.Job.State.Ended())
	})
}

// rows counts the rows of the app demo in a schema.
func rows(t *testing.T, s *stack.Stack, n schema.Name) int {
	t.Helper()
	count := 0
	err := s.Backends.Store.Events.Log("demo", schema.Of(n)).Scan(t.Context(), n, store.Range{}, 0, func(store.Entry) error {
		count++
		return nil
	})
	must.Succeed(t, err)
	return count
}

// damaged is the ID of the event that damage writes.
const damaged = "broken"

// damage writes a row whose only cell is a truncated original into one schema, or
// removes that row.
func damage(t *testing.T, s *stack.Stack, n schema.Name, put bool) {
	t.Helper()
	log := s.Backends.Store.Events.Log("demo", schema.Of(n))
	change := log.Append
	if !put {
		change = log.Delete
	}
	row := store.LogEvent{User: "ann", Time: noon.Add(-day).UnixMilli(), ID: damaged, Type: "m", Name: "z", Original: []byte(`{"event":{`)}
	must.Succeed(t, change(t.Context(), []store.LogEvent{row}))
}

// withoutObjects drops the cell of the objects where the damaged row is written.
func withoutObjects(ctx context.Context, m any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if req, ok := m.(*bigtablepb.MutateRowRequest); ok && strings.HasSuffix(string(req.RowKey), ","+damaged) {
		req.Mutations = slices.DeleteFunc(req.Mutations, func(m *bigtablepb.Mutation) bool {
			return string(m.GetSetCell().GetColumnQualifier()) == "o"
		})
	}
	return handle(ctx, m)
}

var (
	jobMark    = regexp.MustCompile(`(migration|backfill|verify|drop)-\d{8}T\d{6}Z-[a-z0-9]{6}`)
	settleMark = regexp.MustCompile(`"settlesInMs":\d+`)
	sourceMark = regexp.MustCompile(`, (stored|computed),`)
)

func stableMove(answer string) string {
	return settleMark.ReplaceAllString(stable(jobMark.ReplaceAllString(answer, "<$1>")), `"settlesInMs":<n>`)
}

// Of concurrent requests for a step one takes effect. The others get 409 or the same
// answer.
func TestConcurrentSchemaSteps(t *testing.T) {
	s := start(t, stack.Options{Layout: schema.Of(schema.Narrow), ConfigTTL: time.Hour})
	for _, step := range []struct{ name, body string }{{"start", `{"to":"wide"}`}, {"backfill", ""}, {"rollback", ""}} {
		const clients = 8
		var wg sync.WaitGroup
		codes := make([]int, clients)
		for i := range clients {
			wg.Go(func() { codes[i], _ = call(t, s, "POST", "/1/schema/"+step.name, step.body) })
		}
		wg.Wait()
		taken := 0
		for _, code := range codes {
			if code == http.StatusOK {
				taken++
			} else if code != http.StatusConflict {
				t.Errorf("%s: answered %d", step.name, code)
			}
		}
		if taken == 0 {
			t.Errorf("%s: no request was accepted: %v", step.name, codes)
		}
	}
	jobs, err := s.Backends.JobStore(migration.Collection).List(t.Context(), "demo", 10)
	if err != nil || len(jobs) != 2 || jobs[0].State.Ended() || jobs[1].State != job.Superseded {
		t.Errorf("jobs are %+v (%v), want the backfill superseded by the removal", jobs, err)
	}
}
