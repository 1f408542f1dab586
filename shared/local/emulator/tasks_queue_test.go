package emulator

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// What a queue does as time goes by is tested here, where the time is an
// argument.

var start = time.Unix(1_700_000_000, 0)

func TestTaskQueueRate(t *testing.T) {
	q := newTaskQueue(&cloudtaskspb.Queue{RateLimits: &cloudtaskspb.RateLimits{MaxDispatchesPerSecond: 2}})
	for i := range 5 {
		q.add(&cloudtaskspb.Task{Name: fmt.Sprint(i), ScheduleTime: timestamppb.New(start)})
	}
	sent := func(at time.Time) int {
		n := 0
		for {
			task, wait := q.next(at)
			if task == nil {
				if wait <= 0 {
					t.Fatalf("no task, and no wait: %v", wait)
				}
				return n
			}
			n++
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{
		{0, 2}, {499 * time.Millisecond, 0}, {500 * time.Millisecond, 1}, {time.Second, 1}, {time.Hour, 1}, {2 * time.Hour, 0},
	} {
		if got := sent(start.Add(step.after)); got != step.want {
			t.Errorf("after %v: %d tasks sent, want %d", step.after, got, step.want)
		}
	}
}

func TestTaskQueueOrder(t *testing.T) {
	q := newTaskQueue(&cloudtaskspb.Queue{})
	for i, due := range []int{3, 1, 2, 1, 5} {
		at := start.Add(time.Duration(due) * time.Second)
		q.add(&cloudtaskspb.Task{Name: fmt.Sprint(i), ScheduleTime: timestamppb.New(at)})
	}
	q.remove(q.live["2"], start)
	got := ""
	for {
		task, wait := q.next(start.Add(4 * time.Second))
		if task == nil {
			if wait != time.Second {
				t.Errorf("wait %v for the last task, want 1s", wait)
			}
			break
		}
		got += task.pb.GetName()
	}
	if got != "130" {
		t.Errorf("order %s, want 130: by time, then by creation, without the deleted one", got)
	}
}

func TestTaskQueueRetryAfter(t *testing.T) {
	minute := start.Add(time.Minute).UTC().Format(http.TimeFormat)
	for value, want := range map[string]time.Duration{
		"":      time.Second,
		"90":    90 * time.Second,
		"0":     time.Second, // the backoff stays the least
		"-5":    time.Second,
		"soon":  time.Second,
		minute:  time.Minute,
		"1e400": time.Second,
	} {
		t.Run(value, func(t *testing.T) {
			least := &cloudtaskspb.RetryConfig{MinBackoff: durationpb.New(time.Second)}
			q := newTaskQueue(&cloudtaskspb.Queue{RetryConfig: least})
			q.add(&cloudtaskspb.Task{Name: "x", ScheduleTime: timestamppb.New(start)})
			task, _ := q.next(start)
			after := retryAfter(http.Header{"Retry-After": {value}}, start)
			q.settle(task, taskResult{code: 503, err: http.ErrAbortHandler, retryAfter: after}, start)
			if _, wait := q.next(start); wait != want {
				t.Errorf("retry in %v, want %v", wait, want)
			}
		})
	}
}

func TestRetryInterval(t *testing.T) {
	seconds := func(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * time.Second) }
	cases := map[string]struct {
		config *cloudtaskspb.RetryConfig
		want   []int // seconds
	}{
		"Cloud Tasks' own example": {
			&cloudtaskspb.RetryConfig{MinBackoff: seconds(10), MaxBackoff: seconds(300), MaxDoublings: 3},
			[]int{10, 20, 40, 80, 160, 240, 300, 300},
		},
		"no doublings": {
			&cloudtaskspb.RetryConfig{MinBackoff: seconds(2), MaxBackoff: seconds(5)},
			[]int{2, 4, 5, 5},
		},
		"doubling only": {
			&cloudtaskspb.RetryConfig{MinBackoff: seconds(1), MaxBackoff: seconds(9), MaxDoublings: 16},
			[]int{1, 2, 4, 8, 9},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for i, want := range c.want {
				if got := retryInterval(c.config, i+1); got != time.Duration(want)*time.Second {
					t.Errorf("after %d attempts %v, want %ds", i+1, got, want)
				}
			}
			// Never beyond the most, whatever the number.
			if got := retryInterval(c.config, math.MaxInt32); got != c.config.GetMaxBackoff().AsDuration() {
				t.Errorf("in the end %v, want %v", got, c.config.GetMaxBackoff().AsDuration())
			}
		})
	}
}

func TestExhausted(t *testing.T) {
	const never = math.MaxInt32
	cases := map[string]struct {
		attempts int32
		duration time.Duration
		age      time.Duration // of the first attempt
		want     int32         // exhausted from so many attempts on
	}{
		"attempts only":            {3, 0, time.Hour, 3},
		"unlimited":                {-1, 0, 1000 * time.Hour, never},
		"time only, not yet":       {-1, time.Minute, 59 * time.Second, never},
		"time only, over":          {-1, time.Minute, time.Minute, 1},
		"both, attempts only":      {3, time.Minute, 59 * time.Second, never},
		"both, time first":         {3, time.Minute, time.Hour, 3},
		"a single attempt allowed": {1, 0, 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := &cloudtaskspb.RetryConfig{MaxAttempts: c.attempts, MaxRetryDuration: durationpb.New(c.duration)}
			for n := int32(1); n < 10; n++ {
				task := &cloudtaskspb.Task{
					DispatchCount: n,
					FirstAttempt:  &cloudtaskspb.Attempt{DispatchTime: timestamppb.New(start.Add(-c.age))},
				}
				if got, want := exhausted(task, config, start), n >= c.want; got != want {
					t.Errorf("after %d attempts: exhausted is %t, want %t", n, got, want)
				}
			}
		})
	}
}

func TestTombstones(t *testing.T) {
	var names tombstones
	names.add("a", start)
	names.add("b", start.Add(time.Minute))
	for _, c := range []struct {
		name  string
		after time.Duration
		want  bool
	}{
		{"a", 0, true}, {"a", 59 * time.Minute, true}, {"a", time.Hour, false}, {"b", time.Hour, true}, {"c", 0, false},
	} {
		if got := names.has(c.name, start.Add(c.after)); got != c.want {
			t.Errorf("%s is taken after %v: %t, want %t", c.name, c.after, got, c.want)
		}
	}
	for i := range maxTombstones + 10 {
		names.add(fmt.Sprint(i), start.Add(2*time.Hour))
	}
	if n := len(names.ended); n != maxTombstones || len(names.names) != n {
		t.Errorf("%d names are kept, in a list of %d; want %d", n, len(names.names), maxTombstones)
	}
	if names.has("9", start.Add(2*time.Hour)) || !names.has("10", start.Add(2*time.Hour)) {
		t.Error("the oldest names are not the ones that were dropped")
	}
}
