package emulator_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestTasksNames(t *testing.T) {
	url := worker(t, func(http.ResponseWriter, *http.Request) {})
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	later := newTask("later", post(url))
	later.ScheduleTime = timestamppb.New(time.Now().Add(time.Hour))
	w.create(later)
	w.wantCode(newTask("later", post(url)), codes.AlreadyExists)

	w.create(newTask("done", post(url)))
	w.idle()
	w.wantCode(newTask("done", post(url)), codes.AlreadyExists)

	must.Succeed(t, w.client.DeleteTask(w.ctx, &cloudtaskspb.DeleteTaskRequest{Name: later.GetName()}))
	w.wantCode(newTask("later", post(url)), codes.AlreadyExists)

	first, second := w.create(newTask("", post(url))), w.create(newTask("", post(url)))
	if first.GetName() == second.GetName() || !strings.HasPrefix(first.GetName(), queue+"/tasks/") {
		t.Errorf("names %q and %q were given, want two of the queue", first.GetName(), second.GetName())
	}
}

func TestTasksRefuse(t *testing.T) {
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	const url = "http://127.0.0.1:1/"
	change := func(f func(*cloudtaskspb.Task)) *cloudtaskspb.Task {
		task := newTask("x", post(url))
		f(task)
		return task
	}
	cases := map[string]*cloudtaskspb.Task{
		"a name of another queue": change(func(t *cloudtaskspb.Task) { t.Name = location + "/queues/other/tasks/x" }),
		"a name with a slash":     newTask("a/b", post(url)),
		"a name with a plus":      newTask("a+b", post(url)),
		"a name too long":         newTask(strings.Repeat("x", 501), post(url)),
		"no request":              {Name: queue + "/tasks/x"},
		"a url without a host":    newTask("x", post("/purge")),
		"a url of another kind":   newTask("x", post("ftp://x/")),
		"a url too long":          newTask("x", post(url+strings.Repeat("x", 2083))),
		"a body on a GET": newTask("x", &cloudtaskspb.HttpRequest{
			Url: url, HttpMethod: cloudtaskspb.HttpMethod_GET, Body: []byte("x"),
		}),
		"a task too large": newTask("x", &cloudtaskspb.HttpRequest{Url: url, Body: make([]byte, 100<<10)}),
		"headers too large": newTask("x", &cloudtaskspb.HttpRequest{
			Url: url, Headers: map[string]string{"X": strings.Repeat("x", 80<<10)},
		}),
		"31 days ahead": change(func(t *cloudtaskspb.Task) {
			t.ScheduleTime = timestamppb.New(time.Now().Add(31 * 24 * time.Hour))
		}),
		"attempts": change(func(t *cloudtaskspb.Task) { t.RetryConfig = &cloudtaskspb.RetryConfig{MaxAttempts: -2} }),
		"backoffs the wrong way round": change(func(t *cloudtaskspb.Task) {
			t.RetryConfig = &cloudtaskspb.RetryConfig{
				MinBackoff: durationpb.New(2 * time.Second), MaxBackoff: durationpb.New(time.Second),
			}
		}),
		"a deadline too short": change(func(t *cloudtaskspb.Task) { t.DispatchDeadline = durationpb.New(14 * time.Second) }),
		"a deadline too long":  change(func(t *cloudtaskspb.Task) { t.DispatchDeadline = durationpb.New(31 * time.Minute) }),
		"a negative backoff": change(func(t *cloudtaskspb.Task) {
			t.RetryConfig = &cloudtaskspb.RetryConfig{MinBackoff: durationpb.New(-1)}
		}),
	}
	for name, task := range cases {
		t.Run(name, func(t *testing.T) {
			w := &tasksWorld{t, w.ctx, w.server, w.client}
			w.wantCode(task, codes.InvalidArgument)
		})
	}
	largest := newTask("y", &cloudtaskspb.HttpRequest{Url: url, Body: make([]byte, 99<<10)})
	largest.ScheduleTime = timestamppb.New(time.Now().Add(29 * 24 * time.Hour))
	w.create(largest)

	missing := &cloudtaskspb.CreateTaskRequest{Parent: location + "/queues/none", Task: newTask("", post(url))}
	if _, err := w.client.CreateTask(w.ctx, missing); status.Code(err) != codes.NotFound {
		t.Errorf("create in a missing queue: %v, want NotFound", err)
	}
}

func TestTasksDelete(t *testing.T) {
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	url := worker(t, func(rw http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
		rw.WriteHeader(http.StatusInternalServerError)
	})
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	remove := func(id string) error {
		return w.client.DeleteTask(w.ctx, &cloudtaskspb.DeleteTaskRequest{Name: queue + "/tasks/" + id})
	}
	if err := remove("none"); status.Code(err) != codes.NotFound {
		t.Errorf("delete a missing task: %v, want NotFound", err)
	}
	later := newTask("later", post(url))
	later.ScheduleTime = timestamppb.New(time.Now().Add(time.Hour))
	w.create(later)
	w.create(newTask("running", post(url)))
	next(t, w.ctx, entered)
	for _, id := range []string{"later", "running"} {
		if err := remove(id); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
		if err := remove(id); status.Code(err) != codes.NotFound {
			t.Errorf("delete %s again: %v, want NotFound", id, err)
		}
	}
	close(leave) // what was running fails, and is not retried
	w.idle()
	if len(entered) > 0 {
		t.Error("a deleted task was sent again")
	}
}

func TestTasksGetAndList(t *testing.T) {
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	due := timestamppb.New(time.Now().Add(time.Hour))
	for i := range 5 {
		task := newTask(fmt.Sprintf("t%d", i), &cloudtaskspb.HttpRequest{Url: "http://127.0.0.1:1/", Body: []byte("x")})
		task.ScheduleTime = due
		created := w.create(task)
		want := newTask(fmt.Sprintf("t%d", i), post("http://127.0.0.1:1/"))
		want.ScheduleTime, want.View = due, cloudtaskspb.Task_BASIC
		if diff := cmp.Diff(want, created, protocmp.Transform(), protocmp.IgnoreFields(want, "create_time")); diff != "" {
			t.Errorf("created (-want +got):\n%s", diff)
		}
	}
	get := func(name string) (*cloudtaskspb.Task, error) {
		return w.client.GetTask(w.ctx, &cloudtaskspb.GetTaskRequest{Name: name, ResponseView: cloudtaskspb.Task_FULL})
	}
	if full, err := get(queue + "/tasks/t3"); err != nil || string(full.GetHttpRequest().GetBody()) != "x" {
		t.Errorf("the full task has body %q (%v), want x", full.GetHttpRequest().GetBody(), err)
	}
	for name, want := range map[string]codes.Code{
		queue + "/tasks/none": codes.NotFound, queue + "x/tasks/t3": codes.NotFound, queue: codes.InvalidArgument,
	} {
		if _, err := get(name); status.Code(err) != want {
			t.Errorf("get %s: %v, want %s", name, err, want)
		}
	}
	var names []string
	tasks := w.client.ListTasks(w.ctx, &cloudtaskspb.ListTasksRequest{Parent: queue, PageSize: 2})
	for task, err := tasks.Next(); !errors.Is(err, iterator.Done); task, err = tasks.Next() {
		must.Succeed(t, err)
		names = append(names, task.GetName()[len(queue+"/tasks/"):])
	}
	if want := []string{"t0", "t1", "t2", "t3", "t4"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
}

func TestTasksShowAttempts(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	url := worker(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-CloudTasks-TaskRetryCount") == "0" {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		close(entered)
		<-leave
	})
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	task := w.create(newTask("x", post(url)))
	next(t, w.ctx, entered)
	got, err := w.client.GetTask(w.ctx, &cloudtaskspb.GetTaskRequest{Name: task.GetName()})
	must.Succeed(t, err)
	if got.GetDispatchCount() != 2 || got.GetResponseCount() != 1 {
		t.Errorf("%d dispatches and %d responses, want 2 and 1", got.GetDispatchCount(), got.GetResponseCount())
	}
	first, last := got.GetFirstAttempt().GetDispatchTime().AsTime(), got.GetLastAttempt().GetDispatchTime().AsTime()
	if !last.After(first) || first.Before(task.GetCreateTime().AsTime()) {
		t.Errorf("first attempt at %v, last at %v; want both after the creation, in this order", first, last)
	}
	close(leave)
	w.idle()
}

func TestTasksQueues(t *testing.T) {
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	create := func(parent string, q *cloudtaskspb.Queue) (*cloudtaskspb.Queue, error) {
		return w.client.CreateQueue(w.ctx, &cloudtaskspb.CreateQueueRequest{Parent: parent, Queue: q})
	}
	name := location + "/queues/second"
	rate := func(perSecond float64, concurrent int32) *cloudtaskspb.RateLimits {
		return &cloudtaskspb.RateLimits{MaxDispatchesPerSecond: perSecond, MaxConcurrentDispatches: concurrent}
	}
	if _, err := create(location, &cloudtaskspb.Queue{Name: name, RateLimits: rate(2.5, 0)}); err != nil {
		t.Fatal(err)
	}
	got, err := w.client.GetQueue(w.ctx, &cloudtaskspb.GetQueueRequest{Name: name})
	must.Succeed(t, err)
	want := &cloudtaskspb.Queue{
		Name:       name,
		RateLimits: &cloudtaskspb.RateLimits{MaxDispatchesPerSecond: 2.5, MaxBurstSize: 3, MaxConcurrentDispatches: 1000},
		RetryConfig: &cloudtaskspb.RetryConfig{
			MaxAttempts: 100, MaxRetryDuration: durationpb.New(0), MaxDoublings: 16,
			MinBackoff: durationpb.New(100 * time.Millisecond), MaxBackoff: durationpb.New(time.Hour),
		},
		State: cloudtaskspb.Queue_RUNNING,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("queue (-want +got):\n%s", diff)
	}
	if _, err := w.client.GetQueue(w.ctx, &cloudtaskspb.GetQueueRequest{Name: name + "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("get a missing task: %v, want NotFound", err)
	}
	second := name + "2"
	refused := map[string]struct {
		parent string
		queue  *cloudtaskspb.Queue
		want   codes.Code
	}{
		"the same name":    {location, &cloudtaskspb.Queue{Name: name}, codes.AlreadyExists},
		"another parent":   {location + "x", &cloudtaskspb.Queue{Name: name}, codes.InvalidArgument},
		"a bad name":       {location, &cloudtaskspb.Queue{Name: location + "/queues/a_b"}, codes.InvalidArgument},
		"too fast":         {location, &cloudtaskspb.Queue{Name: second, RateLimits: rate(501, 0)}, codes.InvalidArgument},
		"too many at once": {location, &cloudtaskspb.Queue{Name: second, RateLimits: rate(0, 5001)}, codes.InvalidArgument},
		"attempts": {location, &cloudtaskspb.Queue{
			Name: second, RetryConfig: &cloudtaskspb.RetryConfig{MaxAttempts: -2},
		}, codes.InvalidArgument},
		"a target": {location, &cloudtaskspb.Queue{Name: second, HttpTarget: &cloudtaskspb.HttpTarget{}}, codes.Unimplemented},
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := create(c.parent, c.queue); status.Code(err) != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
	if _, err := emulator.StartTasks(emulator.TasksConfig{Queues: []*cloudtaskspb.Queue{{Name: "work"}}}); err == nil {
		t.Error("started with a queue of a bad name")
	}
}
