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
	m := NewJobMeter(&strings.Builder{})
	for _, c := range []struct {
		at   time.Duration
		job  Progress
		want string
	}{
		{0, job("planning", 0, 0, 0), "waiting to begin, until every instance has the latest configuration"},
		{10 * time.Second, job("planning", 5000, 1000, 10_000), "planning, 1000 of 5000 users planned so far"},
		{12 * time.Second, job("planning", 10_000, 3000, 50_000), "planning, 3000 of 10000 users planned so far, 20000 events/s"},
		{14 * time.Second, job("running", 12_000, 5000, 90_000), "running, 5000 of 12000 users, 20000 events/s, 7s left"},
		{15 * time.Second, job("running", 12_000, 12_500, 100_000), "running, 12500 of 12000 users, 18000 events/s"},
	} {
		if got := m.describe(begun.Add(c.at), c.job); got != c.want {
			t.Errorf("after %v: %q, want %q", c.at, got, c.want)
		}
	}
}
