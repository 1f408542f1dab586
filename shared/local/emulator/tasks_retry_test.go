package emulator_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/affinityengine/affinity/shared/local/emulator"
)

func TestTasksRetry(t *testing.T) {
	type attempt struct{ RetryCount, ExecutionCount, Previous, Reason string }
	attempts := make(chan attempt, 20)
	answers := []int{503, 0, 307, 404}
	var n atomic.Int64
	url := worker(t, func(rw http.ResponseWriter, r *http.Request) {
		h := func(name string) string { return r.Header.Get("X-CloudTasks-" + name) }
		attempts <- attempt{h("TaskRetryCount"), h("TaskExecutionCount"), h("TaskPreviousResponse"), h("TaskRetryReason")}
		i := int(n.Add(1)) - 1
		switch {
		case i >= len(answers):
			rw.WriteHeader(http.StatusNoContent)
		case answers[i] == 0:
			panic(http.ErrAbortHandler) // the connection breaks
		default:
			rw.Header().Set("Location", "/elsewhere")
			rw.WriteHeader(answers[i])
		}
	})
	var log strings.Builder
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
	w.create(newTask("x", post(url)))
	w.idle()
	close(attempts)
	var got []attempt
	for a := range attempts {
		got = append(got, a)
	}
	want := []attempt{
		{"0", "0", "", ""},
		{"1", "0", "503", "HTTP status 503"},
		{"2", "0", "", "UNAVAILABLE"},
		{"3", "1", "307", "HTTP status 307"},
		{"4", "2", "404", "HTTP status 404"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	w.server.Close()
	if n := strings.Count(log.String(), queue+"/tasks/x"); n != len(answers) {
		t.Errorf("%d log lines, want one for each failure:\n%s", n, &log)
	}
}

func TestTasksGiveUp(t *testing.T) {
	var requests atomic.Int64
	url := worker(t, func(rw http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		rw.WriteHeader(http.StatusInternalServerError)
	})
	backoff := durationpb.New(time.Millisecond)
	own := newTask("own-settings", post(url))
	own.RetryConfig = &cloudtaskspb.RetryConfig{MaxAttempts: 5}
	cases := map[string]struct {
		task *cloudtaskspb.Task
		want int64
	}{
		"as the queue says":   {newTask("x", post(url)), 3},
		"as the task says":    {own, 5},
		"not sent ever again": {newTask("y", post(url)), 3},
	}
	w := newTasksWorld(t, &cloudtaskspb.Queue{
		RetryConfig: &cloudtaskspb.RetryConfig{MaxAttempts: 3, MinBackoff: backoff, MaxBackoff: backoff},
	}, emulator.TasksConfig{})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			w.create(c.task)
			w.idle()
			if got := requests.Load(); got != c.want {
				t.Errorf("%d attempts, want %d", got, c.want)
			}
			w.wantCode(newTask(c.task.GetName()[len(queue+"/tasks/"):], post(url)), codes.AlreadyExists)
		})
	}
}

// transport is a worker without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTasksDeadline(t *testing.T) {
	cases := map[string]struct {
		set  *durationpb.Duration
		want time.Duration
	}{
		"10 minutes unless set": {nil, 10 * time.Minute},
		"as set":                {durationpb.New(15 * time.Second), 15 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reasons := make(chan string, 10)
			worker := transport(func(r *http.Request) (*http.Response, error) {
				reasons <- r.Header.Get("X-CloudTasks-TaskRetryReason")
				deadline, ok := r.Context().Deadline()
				if left := time.Until(deadline); !ok || left > c.want || left < c.want-14*time.Second {
					t.Errorf("deadline in %v, want %v", left, c.want)
				}
				if r.Header.Get("X-CloudTasks-TaskRetryCount") == "0" {
					return nil, context.DeadlineExceeded // as if the deadline had passed
				}
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
			w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{Transport: worker})
			task := newTask("x", post("http://worker/"))
			task.DispatchDeadline = c.set
			w.create(task)
			w.idle()
			if first, second := next(t, w.ctx, reasons), next(t, w.ctx, reasons); first != "" || second != "DEADLINE_EXCEEDED" {
				t.Errorf("retry reasons %q, then %q; want none, then DEADLINE_EXCEEDED", first, second)
			}
		})
	}
}
