package deadline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
)

func TestEnds(t *testing.T) {
	now := time.Now()
	if err := deadline.Check(t.Context(), now.Add(100*deadline.Longest)); err != nil {
		t.Errorf("work that has not begun: %v", err)
	}
	first, cancel := deadline.Begin(t.Context(), time.Minute)
	defer cancel()
	second, cancel := deadline.Begin(first, time.Hour)
	defer cancel()
	long, cancel := deadline.Begin(t.Context(), time.Hour)
	defer cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		within time.Duration
	}{
		"a minute":                          {first, time.Minute},
		"an hour, begun within that minute": {second, time.Minute},
		"that minute, detached":             {context.WithoutCancel(second), time.Minute},
		"more than the longest":             {long, deadline.Longest},
	} {
		end, ok := deadline.End(c.ctx)
		if !ok || end.Before(now.Add(c.within)) || end.After(time.Now().Add(c.within)) {
			t.Errorf("%s: ends %v after the beginning", name, end.Sub(now))
		}
		if err := deadline.Check(c.ctx, end.Add(-1)); err != nil {
			t.Errorf("%s: %v before the end", name, err)
		}
		if err := deadline.Check(c.ctx, end); !errors.Is(err, deadline.ErrOver) {
			t.Errorf("%s: %v at the end", name, err)
		}
	}
	if end, ok := second.Deadline(); !ok || end.After(time.Now().Add(time.Minute)) {
		t.Errorf("the context ends at %v", end)
	}
	detached, stop := deadline.Detach(first, time.Hour)
	defer stop()
	cancel()
	if end, ok := detached.Deadline(); !ok || end.After(time.Now().Add(time.Minute)) || detached.Err() != nil {
		t.Errorf("the detached work ends at %v, %v", end, detached.Err())
	}
	if _, ok := context.WithoutCancel(second).Deadline(); ok {
		t.Error("a detached context has a deadline of its own")
	}
}
