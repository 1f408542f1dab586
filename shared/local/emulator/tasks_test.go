package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cloudtasks "cloud.google.com/go/cloudtasks/apiv2"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
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
	must.Succeed(t, err)
	t.Cleanup(server.Close)
	client, err := cloudtasks.NewClient(ctx, option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	must.Succeed(t, err)
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
	must.Succeed(w.t, err)
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
	must.Succeed(w.t, w.server.Idle(w.ctx))
}

// worker starts a server that answers tasks; its URL is the result.
func worker(t *testing.T, answer http.HandlerFunc) string {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// request is one task as a worker sees it.
type request struct {
	Method, URL, Body string
	Header            map[string]string
}

// recorder starts a worker that takes every task and passes on what it got.
func recorder(t *testing.T) (string, <-chan request) {
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
	return url, got
}

func TestTasksSendWhatWasAsked(t *testing.T) {
	url, got := recorder(t)
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	cases := map[string]struct {
		ask  *cloudtaskspb.HttpRequest
		want request
	}{
		"everything": {
			&cloudtaskspb.HttpRequest{
				Url: url + "/purge?a=%2F", HttpMethod: cloudtaskspb.HttpMethod_PUT, Body: []byte(`{"a":1}`),
				Headers: map[string]string{
					"Content-Type": "application/json", "X-Local-Token": "secret", "User-Agent": "mine", "X-AppEngine-X": "mine",
					"x-cloudtasks-taskname": "mine", "Content-Length": "1", "Host": "mine",
				},
				AuthorizationHeader: &cloudtaskspb.HttpRequest_OidcToken{
					OidcToken: &cloudtaskspb.OidcToken{ServiceAccountEmail: "a@b.c"},
				},
			},
			request{"PUT", "/purge?a=%2F", `{"a":1}`, map[string]string{
				"Content-Type": "application/json", "X-Local-Token": "secret", "Content-Length": "7",
			}},
		},
		"as little as possible": {
			post(url),
			request{"POST", "/", "", map[string]string{"Content-Length": "0"}},
		},
		"the task's own authorization": {
			&cloudtaskspb.HttpRequest{
				Url: url, HttpMethod: cloudtaskspb.HttpMethod_GET, Headers: map[string]string{"Authorization": "Basic x"},
			},
			request{"GET", "/", "", map[string]string{"Authorization": "Basic x"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			id := strings.NewReplacer(" ", "_", "'", "_").Replace(name)
			due := w.create(newTask(id, c.ask)).GetScheduleTime().AsTime()
			maps.Copy(c.want.Header, map[string]string{
				"Accept-Encoding":                 "gzip", // Go's transport
				"User-Agent":                      "Google-Cloud-Tasks",
				"X-Cloudtasks-Queuename":          "work",
				"X-Cloudtasks-Taskname":           id,
				"X-Cloudtasks-Taskretrycount":     "0",
				"X-Cloudtasks-Taskexecutioncount": "0",
				"X-Cloudtasks-Tasketa":            fmt.Sprintf("%d.%06d", due.Unix(), due.Nanosecond()/1000),
			})
			if diff := cmp.Diff(c.want, next(t, w.ctx, got)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
	w.idle()
}

func TestTasksConcurrencyLimit(t *testing.T) {
	const limit, tasks = 3, 12
	var running, maxRunning atomic.Int64
	entered, leave := make(chan struct{}, tasks), make(chan struct{})
	url := worker(t, func(http.ResponseWriter, *http.Request) {
		n := running.Add(1)
		for m := maxRunning.Load(); n > m && !maxRunning.CompareAndSwap(m, n); m = maxRunning.Load() {
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
	if got := maxRunning.Load(); got != limit {
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
	at := func(name string, due time.Time) *cloudtaskspb.Task {
		task := newTask(name, post(url+"/"+name))
		task.ScheduleTime = timestamppb.New(due)
		return w.create(task)
	}
	at("never", time.Now().Add(time.Hour))
	w.idle() // what lies ahead does not count
	soon := time.Now().Add(100 * time.Millisecond)
	at("soon", soon)
	if a := next(t, w.ctx, got); a.path != "/soon" || a.at.Before(soon) {
		t.Errorf("%s was sent %v before its time", a.path, soon.Sub(a.at))
	}
	past := time.Now().Add(-time.Hour)
	if due := at("past", past).GetScheduleTime().AsTime(); !due.After(past) {
		t.Errorf("a schedule time in the past stays %v, want the time of creation", due)
	}
	if a := next(t, w.ctx, got); a.path != "/past" {
		t.Errorf("%s was sent, want /past", a.path)
	}
	w.idle()
	if len(got) > 0 {
		t.Errorf("%s was sent before its time", (<-got).path)
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
	must.Succeed(t, w.client.DeleteTask(w.ctx, &cloudtaskspb.DeleteTaskRequest{Name: queue + "/tasks/fails"}))
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
