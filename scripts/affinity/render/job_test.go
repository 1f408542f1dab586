package render

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

func TestJobMeter(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	job := func(state api.JobState, planned, visited, events int64) Progress {
		return Progress{State: state, Planned: planned, Visited: visited, Count: events}
	}
	after := func(p Progress, jobs int) Progress {
		p.Wait.JobsBefore = &jobs
		return p
	}
	until := func(p Progress, end time.Time) Progress {
		p.Wait.EstimatedEndAt = &api.Time{Time: end}
		return p
	}
	for _, c := range []struct {
		job  Progress
		want string
	}{
		{until(job("running", 12_000, 5000, 90_000), begun.Add(time.Minute)), "running, 5000 of 12000 users, may end at 10:01:00 UTC"},
		{after(job("running", 12_000, 0, 0), 1), "running, 0 of 12000 users, 1 job before it in the queue"},
		{after(job("running", 12_000, 1, 9), 1), "running, 1 of 12000 users"},
	} {
		if got := NewJobMeter(&strings.Builder{}).describe(begun, c.job); got != c.want {
			t.Errorf("first line %q, want %q", got, c.want)
		}
	}
	m := NewJobMeter(&strings.Builder{})
	for _, c := range []struct {
		at   time.Duration
		job  Progress
		want string
	}{
		{0, job("planning", 0, 0, 0), "waiting to begin, until every instance has the latest configuration"},
		{0, after(job("planning", 0, 0, 0), 0), "waiting to begin, until every instance has the latest configuration"},
		{0, after(job("planning", 0, 0, 0), 2), "waiting to begin, until every instance has the latest configuration, 2 jobs before it in the queue"},
		{10 * time.Second, job("planning", 5000, 1000, 10_000), "planning, 1000 of 5000 users planned so far"},
		{12 * time.Second, job("planning", 10_000, 3000, 50_000), "planning, 3000 of 10000 users planned so far, 20000 events/s"},
		{14 * time.Second, job("running", 12_000, 5000, 90_000), "running, 5000 of 12000 users, 20000 events/s, 7s left"},
		{14 * time.Second, until(job("running", 12_000, 5000, 90_000), begun), "running, 5000 of 12000 users, 20000 events/s, 7s left"},
		{15 * time.Second, job("running", 12_000, 12_500, 100_000), "running, 12500 of 12000 users, 18000 events/s"},
	} {
		if got := m.describe(begun.Add(c.at), c.job); got != c.want {
			t.Errorf("after %v: %q, want %q", c.at, got, c.want)
		}
	}
}
