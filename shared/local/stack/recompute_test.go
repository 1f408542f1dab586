package stack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/store"
)

// TestRecomputeScenarios runs dialogues like those of TestScenarios with an engine
// whose recomputes begin at once. In the file waiting they never begin. A shard has
// two users. More commands:
//
//	recompute          waits until the newest job has ended and prints it
//	worker PATH        a request to the worker, as a task or the scheduler sends it
//
// In bodies and paths <newest> stands for the id of the newest job.
func TestRecomputeScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/recomputes", func(t *testing.T, path string) {
		noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		o := stack.Options{Now: noon, RetentionDays: 90, ConfigTTL: time.Millisecond,
			Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3}}
		if filepath.Base(path) == "waiting" {
			o.ConfigTTL = time.Hour
		}
		s := start(t, o)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			d.Input = strings.ReplaceAll(d.Input, "<newest>", newest(t, s).ID)
			switch d.Cmd {
			case "http":
				for i := range d.CmdArgs {
					d.CmdArgs[i].Key = strings.ReplaceAll(d.CmdArgs[i].Key, "<newest>", newest(t, s).ID)
				}
				return stableJob(scenarioHTTP(t, s, d))
			case "idle":
				idle(t, s)
				return ""
			case "profile":
				return scenarioProfile(t, s, d)
			case "recompute":
				return stableJob(waitForJob(t, s) + "\n")
			case "worker":
				w := httptest.NewRecorder()
				worker.New(s.Backends.ForWorker()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, d.CmdArgs[0].Key, strings.NewReader(d.Input)))
				return stableJob(w.Body.String())
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// newest is the id of the job that was started last, or empty.
func newest(t *testing.T, s *stack.Stack) job.Job {
	t.Helper()
	jobs, err := s.Backends.JobStore(recompute.Collection).List(t.Context(), "demo", 1)
	must.Succeed(t, err)
	if len(jobs) == 0 {
		return job.Job{}
	}
	return jobs[0]
}

// waitForJob returns the newest job once it has ended.
func waitForJob(t *testing.T, s *stack.Stack) string {
	t.Helper()
	newest := newest(t, s)
	return poll(t, 3*time.Minute, func() (string, bool) {
		code, answer := call(t, s, "GET", "/1/recomputes/"+newest.ID, "")
		var got struct{ State job.State }
		if err := json.Unmarshal([]byte(answer), &got); code != http.StatusOK || err != nil {
			t.Fatalf("%d %s %v", code, answer, err)
		}
		return answer, got.State.Ended()
	})
}

var manualMark = regexp.MustCompile(`(manual|reenrich)-\d{8}T\d{6}Z-[a-z0-9]{6}`)

func stableJob(answer string) string {
	return manualMark.ReplaceAllString(stable(answer), "<$1>")
}

// An engine on the official emulators stops, with its queue, while a recompute
// begins. The next engine finishes the recompute.
func TestRecomputeContinuesAfterRestart(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", gcloudtest.Bigtable(t))
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	o := stack.Options{ConfigTTL: time.Millisecond, Recompute: job.Settings{ShardUsers: 3, Budget: time.Second, Attempts: 8}}
	const users = 20
	s := start(t, o)
	var events []string
	for i := range users {
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u%d","filters":["color:Red"]}`, i))
	}
	call(t, s, "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(t, s)
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", seenStrategy)
	must.Succeed(t, s.Close())

	s = start(t, o)
	var job struct {
		ID, State string
		Users     int
		Shards    struct{ Total, Done int }
	}
	must.Succeed(t, json.Unmarshal([]byte(waitForJob(t, s)), &job))
	if job.ID != "strategy-1" || job.State != "done" || job.Users != users || job.Shards.Total != 7 || job.Shards.Done != 7 {
		t.Errorf("got %+v, want strategy-1 done with %d users in 7 shards", job, users)
	}
	for i := range users {
		if code, answer := call(t, s, "GET", fmt.Sprint("/1/profiles/u", i), ""); code != http.StatusOK || !strings.Contains(answer, `"source":"stored"`) {
			t.Errorf("u%d: %d %s, want what the recompute stored", i, code, answer)
		}
	}
}

// brokenEngine fails to compute any profile.
type brokenEngine struct{ recompute.Engine }

var errBroken = errors.New("the engine is broken")

func (brokenEngine) Recompute(context.Context, config.App, store.Range, profile.RecomputeOptions,
	func(profile.Progress) error) (profile.Progress, error) {
	return profile.Progress{}, errBroken
}

// A job fails when a shard has used up its attempts. The job names the reason.
func TestFailingShardFailsItsJob(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond, Recompute: job.Settings{ShardUsers: 10, Budget: time.Minute, Attempts: 2}})
	s.Backends.Recompute.Work = recompute.Work{Engine: brokenEngine{}}
	call(t, s, "POST", "/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"]}]}`)
	idle(t, s)
	call(t, s, "POST", "/1/strategies/personalization", seenStrategy)
	if answer := waitForJob(t, s); !strings.Contains(answer, `"state":"failed"`) || !strings.Contains(answer, errBroken.Error()) ||
		!strings.Contains(answer, `"shards":{"total":1,"done":0,"failed":1}`) {
		t.Errorf("got %s, want it failed with its reason", answer)
	}
}

type fullQueue struct{}

var errFull = errors.New("the queue takes nothing")

func (fullQueue) Create(context.Context, queue.Task) error { return errFull }

// If the recompute cannot be enqueued, the strategy is set and the answer is an
// error. Setting it again enqueues the recompute.
func TestStrategyWithoutItsRecompute(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	works := s.Backends.Recompute.Queue
	s.Backends.Recompute.Queue = fullQueue{}
	if code, answer := call(t, s, "POST", "/1/strategies/personalization", seenStrategy); code != http.StatusInternalServerError {
		t.Errorf("%d %s, want 500", code, answer)
	}
	if j := newest(t, s); j.ID != "strategy-1" || j.State != job.Planning {
		t.Errorf("got %+v, want the job that waits for its task", j)
	}
	s.Backends.Recompute.Queue = works
	if code, answer := call(t, s, "POST", "/1/strategies/personalization", seenStrategy); code != http.StatusOK {
		t.Errorf("%d %s, want 200", code, answer)
	}
	if answer := waitForJob(t, s); !strings.Contains(answer, `"id":"strategy-1","state":"done"`) {
		t.Errorf("got %s, want strategy-1 done", answer)
	}
}
