package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/emulator"
)

const (
	location = "projects/shop/locations/here"
	queue    = location + "/queues/work"
)

// tasksWorld is a Cloud Tasks server with a queue, and a client.
type tasksWorld struct {
	t      *testing.T
	ctx    context.Context
	server *emulator.Tasks
	client *cloudtasks.Client
}

func newTasksWorld(t *testing.T, settings *cloudtaskspb.Queue, cfg emulator.TasksConfig) *tasksWorld {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	settings.Name = queue
	if settings.RetryConfig == nil {
		settings.RetryConfig = &cloudtaskspb.RetryConfig{MinBackoff: durationpb.New(time.Millisecond)}
	}
	cfg.Queues = append(cfg.Queues, settings)
	server, err := emulator.StartTasks(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, err := cloudtasks.NewClient(ctx, option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return &tasksWorld{t, ctx, server, client}
}

func post(url string) *cloudtaskspb.HttpRequest { return &cloudtaskspb.HttpRequest{Url: url} }

func newTask(id string, r *cloudtaskspb.HttpRequest) *cloudtaskspb.Task {
	t := &cloudtaskspb.Task{MessageType: &cloudtaskspb.Task_HttpRequest{HttpRequest: r}}
	if id != "" {
		t.Name = queue + "/tasks/" + id
	}
	return t
}

func (w *tasksWorld) create(task *cloudtaskspb.Task) *cloudtaskspb.Task {
	w.t.Helper()
	created, err := w.client.CreateTask(w.ctx, &cloudtaskspb.CreateTaskRequest{Parent: queue, Task: task})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

func (w *tasksWorld) wantCode(task *cloudtaskspb.Task, want codes.Code) {
	w.t.Helper()
	_, err := w.client.CreateTask(w.ctx, &cloudtaskspb.CreateTaskRequest{Parent: queue, Task: task})
	if status.Code(err) != want {
		w.t.Errorf("create %.80s: %v, want %s", task.GetName(), err, want)
	}
}

func (w *tasksWorld) idle() {
	w.t.Helper()
	if err := w.server.Idle(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

// worker starts a server that answers tasks; its URL is the result.
func worker(t *testing.T, answer http.HandlerFunc) string {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func TestTasksSendWhatWasAsked(t *testing.T) {
	type request struct {
		Method, URL, Body string
		Header            map[string]string
	}
	got := make(chan request, 1)
	url := worker(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		header := map[string]string{}
		for name := range r.Header {
			header[name] = r.Header.Get(name)
		}
		got <- request{r.Method, r.URL.String(), string(body), header}
	})
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	eta := time.Unix(1_700_000_000, 0)
	cases := map[string]struct {
		task *cloudtaskspb.Task
		want request
	}{
		"everything": {
			newTask("one", &cloudtaskspb.HttpRequest{
				Url: url + "/purge?a=%2F", HttpMethod: cloudtaskspb.HttpMethod_PUT, Body: []byte(`{"a":1}`),
				Headers: map[string]string{
					"Content-Type": "application/json", "X-Local-Token": "secret", "User-Agent": "mine", "X-AppEngine-X": "mine",
					"x-cloudtasks-taskname": "mine", "Content-Length": "1", "Host": "mine",
				},
				AuthorizationHeader: &cloudtaskspb.HttpRequest_OidcToken{
					OidcToken: &cloudtaskspb.OidcToken{ServiceAccountEmail: "a@b.c"},
				},
			}),
			request{"PUT", "/purge?a=%2F", `{"a":1}`, map[string]string{
				"Content-Type": "application/json", "X-Local-Token": "secret", "Content-Length": "7",
			}},
		},
		"as little as possible": {
			newTask("two", post(url)),
			request{"POST", "/", "", map[string]string{"Content-Length": "0"}},
		},
		"the task's own authorization": {
			newTask("three", &cloudtaskspb.HttpRequest{Url: url, HttpMethod: cloudtaskspb.HttpMethod_GET, Headers: map[string]string{
				"Authorization": "Basic x",
			}}),
			request{"GET", "/", "", map[string]string{"Authorization": "Basic x"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.task.ScheduleTime = timestamppb.New(eta)
			created := w.create(c.task)
			r := next(t, w.ctx, got)
			due := created.GetScheduleTime().AsTime()
			c.want.Header["Accept-Encoding"] = "gzip" // Go's transport
			c.want.Header["User-Agent"] = "Google-Cloud-Tasks"
			c.want.Header["X-Cloudtasks-Queuename"] = "work"
			c.want.Header["X-Cloudtasks-Taskname"] = c.task.GetName()[len(queue+"/tasks/"):]
			c.want.Header["X-Cloudtasks-Taskretrycount"] = "0"
			c.want.Header["X-Cloudtasks-Taskexecutioncount"] = "0"
			c.want.Header["X-Cloudtasks-Tasketa"] = fmt.Sprintf("%d.%06d", due.Unix(), due.Nanosecond()/1000)
			if diff := cmp.Diff(c.want, r); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if !due.After(eta) {
				t.Errorf("a schedule time in the past stays %v, want the time of creation", due)
			}
		})
	}
	w.idle()
}

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
		{"1", "1", "503", "HTTP status 503"},
		{"2", "1", "", "UNAVAILABLE"},
		{"3", "2", "307", "HTTP status 307"},
		{"4", "3", "404", "HTTP status 404"},
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

	if err := w.client.DeleteTask(w.ctx, &cloudtaskspb.DeleteTaskRequest{Name: later.GetName()}); err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("create in a queue that is not there: %v, want NotFound", err)
	}
}

func TestTasksConcurrencyLimit(t *testing.T) {
	const limit, tasks = 3, 12
	var running, most atomic.Int64
	entered, leave := make(chan struct{}, tasks), make(chan struct{})
	url := worker(t, func(http.ResponseWriter, *http.Request) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		entered <- struct{}{}
		<-leave
		running.Add(-1)
	})
	w := newTasksWorld(t, &cloudtaskspb.Queue{
		RateLimits: &cloudtaskspb.RateLimits{MaxConcurrentDispatches: limit},
	}, emulator.TasksConfig{})
	for range tasks {
		w.create(newTask("", post(url)))
	}
	for range limit {
		next(t, w.ctx, entered) // as many as allowed run side by side
	}
	close(leave)
	w.idle()
	if got := most.Load(); got != limit {
		t.Errorf("%d requests at one time, want %d", got, limit)
	}
	if n := len(entered) + limit; n != tasks {
		t.Errorf("%d requests, want %d", n, tasks)
	}
}

func TestTasksSchedule(t *testing.T) {
	type arrival struct {
		path string
		at   time.Time
	}
	got := make(chan arrival, 10)
	url := worker(t, func(_ http.ResponseWriter, r *http.Request) { got <- arrival{r.URL.Path, time.Now()} })
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	at := func(name string, due time.Time) {
		task := newTask(name, post(url+"/"+name))
		task.ScheduleTime = timestamppb.New(due)
		w.create(task)
	}
	at("never", time.Now().Add(time.Hour))
	w.idle() // what lies ahead does not count
	soon := time.Now().Add(100 * time.Millisecond)
	at("soon", soon)
	if a := next(t, w.ctx, got); a.path != "/soon" || a.at.Before(soon) {
		t.Errorf("%s was sent %v before its time", a.path, soon.Sub(a.at))
	}
	w.idle()
	if len(got) > 0 {
		t.Errorf("%s was sent before its time", (<-got).path)
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
		t.Errorf("delete what is not there: %v, want NotFound", err)
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("get what is not there: %v, want NotFound", err)
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

func TestTasksIdle(t *testing.T) {
	leave := make(chan struct{})
	url := worker(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fails" {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		<-leave
	})
	hour := durationpb.New(time.Hour)
	w := newTasksWorld(t, &cloudtaskspb.Queue{
		RetryConfig: &cloudtaskspb.RetryConfig{MinBackoff: hour, MaxBackoff: hour},
	}, emulator.TasksConfig{})
	over, cancel := context.WithCancel(w.ctx)
	cancel()
	w.create(newTask("running", post(url)))
	if err := w.server.Idle(over); !errors.Is(err, context.Canceled) {
		t.Errorf("idle with a task under way: %v", err)
	}
	close(leave)
	w.idle()
	w.create(newTask("fails", post(url+"/fails")))
	if err := w.server.Idle(over); !errors.Is(err, context.Canceled) {
		t.Errorf("idle with a task to be retried: %v", err)
	}
	// Deleting it is what ends the wait, which the retry's hour would not.
	idle := make(chan error, 1)
	go func() { idle <- w.server.Idle(w.ctx) }()
	if err := w.client.DeleteTask(w.ctx, &cloudtaskspb.DeleteTaskRequest{Name: queue + "/tasks/fails"}); err != nil {
		t.Fatal(err)
	}
	if err := <-idle; err != nil {
		t.Error(err)
	}
}

func TestTasksClose(t *testing.T) {
	entered, cut := make(chan struct{}), make(chan struct{})
	url := worker(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(cut)
	})
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	w.create(newTask("x", post(url)))
	next(t, w.ctx, entered)
	w.server.Close()
	next(t, w.ctx, cut)
}
