package segmentexport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/store"
)

// harness has a store whose requests pass the gate of the harness of jobs, and a segment
// whose users change with each look at it.
type harness struct {
	*jobtest.Harness
	store  *store.Store
	runner *segmentexport.Runner

	users []int // by look, how many there are; the last one stays
	looks int
	err   error // of the next look

	residents bool // every second user lives in us, the others in eu
}

func newHarness(t *testing.T, users ...int) *harness {
	settings := job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 100}
	h := &harness{Harness: jobtest.New(t, segmentexport.Collection, 0, settings), users: users}
	return h.on(settings, storetest.New(t, h.Dial()...))
}

// on lets the harness work on a store.
func (h *harness) on(settings job.Settings, s *store.Store) *harness {
	h.store = s
	h.runner = segmentexport.New(h.Parts(settings), h, func(region string) segmentexport.Files { return h.store.In(region).Segments })
	h.Runner = h.runner.Runner
	return h
}

// Each passes users whose tokens say which look found them.
func (h *harness) Each(_ context.Context, _ config.App, _ segment.Condition, fn func(query.User) error) (int64, error) {
	if err := h.err; err != nil {
		h.err = nil
		return 0, err
	}
	look := h.looks
	h.looks++
	for i := range h.users[min(look, len(h.users)-1)] {
		u := query.User{Token: token(look, i), Score: float64(i)}
		if h.residents {
			u.Region = []string{"eu", "us"}[i%2]
		}
		if err := fn(u); err != nil {
			return 0, err
		}
	}
	return int64(1000 + look), nil
}

// token is longer than tokens of users may be, so that a hundred users fill a chunk.
func token(look, i int) string { return fmt.Sprintf("%s-%d-%05d", long, look, i) }

var long = strings.Repeat("x", 10_000)

func (h *harness) start() job.Job {
	h.T.Helper()
	j, err := h.runner.Start(h.T.Context(), jobtest.App, config.SavedSegment{Name: "fans", Where: `{"filter":"color:Red","above":1}`})
	must.Succeed(h.T, err)
	return j
}

// file returns the lines of a file.
func (h *harness) file(name string) []api.SegmentUser { return h.fileOf("", name) }

// fileOf returns the lines of the file of a region.
func (h *harness) fileOf(region, name string) []api.SegmentUser {
	h.T.Helper()
	ctx, s := h.T.Context(), h.store.In(region)
	chunks, lines, complete, err := s.Segments.Export(ctx, jobtest.App, name)
	if err != nil || !complete {
		h.T.Fatalf("complete %v, error %v", complete, err)
	}
	var all []api.SegmentUser
	for n := range chunks {
		chunk, err := s.Segments.ReadExportChunk(ctx, jobtest.App, name, n)
		must.Succeed(h.T, err)
		for line := range strings.Lines(string(chunk)) {
			var u api.SegmentUser
			must.Succeed(h.T, json.Unmarshal([]byte(line), &u))
			all = append(all, u)
		}
	}
	if len(all) != lines {
		h.T.Fatalf("%d lines, and the file says %d", len(all), lines)
	}
	return all
}

// wantOneLook fails unless the file holds the users of one look, all of them, and the
// result of the job is that look's.
func (h *harness) wantOneLook(id, when string) {
	h.T.Helper()
	j := h.WantState(id, job.Done, "")
	result, err := h.runner.Result(h.T.Context(), j)
	must.Succeed(h.T, err)
	look := int(result.AsOf.UnixMilli() - 1000)
	users, want := h.file(result.File), h.users[min(look, len(h.users)-1)]
	if len(users) != want || result.Users != int64(want) {
		h.T.Fatalf("%s: %d lines, and the result says %d; want %d of look %d", when, len(users), result.Users, want, look)
	}
	for i, u := range users {
		if u.UserToken != token(look, i) || u.Score != float64(i) {
			h.T.Fatalf("%s: line %d is %+v, want that of look %d", when, i, u, look)
		}
	}
}

// step is how many requests lie between two that a test tries.
func step() int {
	if testing.Short() {
		return 4
	}
	return 1
}

// An export whose process dies at any request ends with the users of one look: a task
// that takes over writes the file from its beginning, also if it is now shorter.
func TestExportSurvivesCrashes(t *testing.T) {
	for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
		for at := 0; ; at += step() {
			h := newHarness(t, 280, 126)
			j := h.start()
			calls := h.DieAt(at, f)
			h.Drain()
			h.Gate = nil
			h.wantOneLook(j.ID, fmt.Sprint("died at request ", at))
			if at >= calls() {
				break
			}
		}
	}
}

// Two deliveries of the task run at once: the file that the result names holds the users
// of one look.
func TestTwoTasksOfAnExport(t *testing.T) {
	for at := 0; ; at += step() {
		h, calls := newHarness(t, 280, 126), 0
		j := h.start()
		h.Gate = func(context.Context, string) jobtest.Fault {
			if calls++; calls-1 == at {
				gate := h.Gate
				h.Gate = nil
				for _, task := range h.Tasks {
					if _, err := h.Run(t.Context(), task); err != nil {
						t.Fatal(err)
					}
				}
				h.Gate = gate
			}
			return jobtest.None
		}
		h.Drain()
		h.Gate = nil
		h.wantOneLook(j.ID, fmt.Sprint("another task at request ", at))
		if at >= calls {
			return
		}
	}
}

// Lists that are being built delay an export, and a condition that cannot be answered
// ends it.
func TestExportThatCannotBeAnswered(t *testing.T) {
	h := newHarness(t, 3)
	h.err = &query.NotReadyError{Message: "the lists are being built"}
	j := h.start()
	h.Drain()
	h.wantOneLook(j.ID, "after the build")

	for _, cause := range []error{query.ErrOff, fault.New(fault.Invalid, "halfLife is not one of the strategy")} {
		h.err = cause
		j := h.start()
		h.Drain()
		h.WantState(j.ID, job.Failed, cause.Error())
		if _, err := h.runner.Result(t.Context(), h.Find(j.ID)); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("the result of a failed job: %v", err)
		}
	}
}
