package taskqueue_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
)

const queueName = "projects/shop/locations/here/queues/work"

var local = []option.ClientOption{
	option.WithoutAuthentication(),
	option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, addr string, cfg taskqueue.Config) *taskqueue.Client {
	t.Helper()
	client, err := taskqueue.Open(testContext(t), cfg, append(local, option.WithEndpoint(addr))...)
	must.Succeed(t, err)
	must.CloseAtEnd(t, client)
	return client
}

// A created task reaches the worker once, through the emulator.
func TestTaskReachesTheWorkerOnce(t *testing.T) {
	type request struct{ Method, Path, ContentType, Token, Authorization, Name, Body string }
	requests := make(chan request, 10)
	worker := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		h := r.Header.Get
		requests <- request{
			r.Method, r.URL.Path, h("Content-Type"), h("X-Local-Token"), h("Authorization"), h("X-CloudTasks-TaskName"), string(body),
		}
	}))
	defer worker.Close()
	server, err := emulator.StartTasks(emulator.TasksConfig{Queues: []*cloudtaskspb.Queue{{Name: queueName}}})
	must.Succeed(t, err)
	defer server.Close()
	ctx := testContext(t)
	var q queue.Queue = open(t, server.Addr, taskqueue.Config{
		Queue: queueName, WorkerURL: worker.URL + "/", Header: map[string]string{"X-Local-Token": "secret"},
	})

	task := queue.Task{Name: queue.TaskName("purge", "shop", "user+/="), Path: "/purge", Body: []byte(`{"app":"shop"}`)}
	for range 3 { // it happens once
		must.Succeed(t, q.Create(ctx, task))
	}
	must.Succeed(t, q.Create(ctx, queue.Task{Name: "later", Path: "/later", Delay: time.Hour}))
	must.Succeed(t, server.Idle(ctx))
	close(requests)
	var got []request
	for r := range requests {
		got = append(got, r)
	}
	want := []request{{"POST", "/purge", "application/json", "secret", "", task.Name, `{"app":"shop"}`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// scripted is a Cloud Tasks server that answers CreateTask with the given codes
// in turn, and then OK.
type scripted struct {
	cloudtaskspb.UnimplementedCloudTasksServer
	mu       sync.Mutex
	answers  []codes.Code
	requests []*cloudtaskspb.CreateTaskRequest
}

func (s *scripted) CreateTask(_ context.Context, req *cloudtaskspb.CreateTaskRequest) (*cloudtaskspb.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if len(s.answers) == 0 {
		return req.GetTask(), nil
	}
	code := s.answers[0]
	s.answers = s.answers[1:]
	return nil, status.Error(code, "scripted")
}

func startScripted(t *testing.T, answers ...codes.Code) (*scripted, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	s := &scripted{answers: answers}
	server := grpc.NewServer()
	cloudtaskspb.RegisterCloudTasksServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s, listener.Addr().String()
}

func TestCreateAnswers(t *testing.T) {
	cases := map[string]struct {
		answers []codes.Code
		calls   int
		want    codes.Code // of the error
		invalid bool
	}{
		"accepted":             {nil, 1, codes.OK, false},
		"exists already":       {[]codes.Code{codes.AlreadyExists}, 1, codes.OK, false},
		"unavailable at first": {[]codes.Code{codes.Unavailable, codes.Unavailable}, 3, codes.OK, false},
		"created, but the response was lost": {
			[]codes.Code{codes.DeadlineExceeded, codes.AlreadyExists}, 2, codes.OK, false,
		},
		"quota and fault":       {[]codes.Code{codes.ResourceExhausted, codes.Internal}, 3, codes.OK, false},
		"the task is at fault":  {[]codes.Code{codes.InvalidArgument}, 1, codes.InvalidArgument, true},
		"the queue is missing":  {[]codes.Code{codes.NotFound}, 1, codes.NotFound, false},
		"not allowed":           {[]codes.Code{codes.PermissionDenied}, 1, codes.PermissionDenied, false},
		"the queue is disabled": {[]codes.Code{codes.FailedPrecondition}, 1, codes.FailedPrecondition, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, addr := startScripted(t, c.answers...)
			q := open(t, addr, taskqueue.Config{Queue: queueName, WorkerURL: "https://worker"})
			err := q.Create(testContext(t), queue.Task{Name: "x", Path: "/p"})
			if status.Code(err) != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if errors.Is(err, queue.ErrInvalid) != c.invalid {
				t.Errorf("error %v: ErrInvalid %t, want %t", err, !c.invalid, c.invalid)
			}
			if err != nil && !strings.Contains(err.Error(), queueName) {
				t.Errorf("error %q does not name the queue", err)
			}
			if len(server.requests) != c.calls {
				t.Errorf("%d calls, want %d", len(server.requests), c.calls)
			}
		})
	}
}

func TestCreateEndsWithItsContext(t *testing.T) {
	answers := make([]codes.Code, 1000)
	for i := range answers {
		answers[i] = codes.Unavailable
	}
	_, addr := startScripted(t, answers...)
	q := open(t, addr, taskqueue.Config{Queue: queueName, WorkerURL: "https://worker"})
	ctx, cancel := context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	if err := q.Create(ctx, queue.Task{Name: "x", Path: "/p"}); err == nil {
		t.Error("Create succeeded against an unavailable server")
	}
}

func TestCreateRequest(t *testing.T) {
	base := taskqueue.Config{Queue: queueName, WorkerURL: "https://worker.example/base"}
	account, audience := base, base
	account.ServiceAccount = "tasks@shop.iam.gserviceaccount.com"
	audience.ServiceAccount, audience.Audience = account.ServiceAccount, "https://elsewhere"
	request := func(token *cloudtaskspb.OidcToken) *cloudtaskspb.HttpRequest {
		r := &cloudtaskspb.HttpRequest{
			Url: "https://worker.example/base/p", HttpMethod: cloudtaskspb.HttpMethod_POST, Body: []byte("{}"),
			Headers: map[string]string{"Content-Type": "application/json"},
		}
		if token != nil {
			r.AuthorizationHeader = &cloudtaskspb.HttpRequest_OidcToken{OidcToken: token}
		}
		return r
	}
	cases := map[string]struct {
		cfg  taskqueue.Config
		want *cloudtaskspb.HttpRequest
	}{
		"no identity": {base, request(nil)},
		"an identity": {account, request(&cloudtaskspb.OidcToken{
			ServiceAccountEmail: account.ServiceAccount, Audience: "https://worker.example/base",
		})},
		"an audience of its own": {audience, request(&cloudtaskspb.OidcToken{
			ServiceAccountEmail: account.ServiceAccount, Audience: "https://elsewhere",
		})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, addr := startScripted(t)
			client, err := cloudtasks.NewClient(testContext(t), append(local, option.WithEndpoint(addr))...)
			must.Succeed(t, err)
			defer client.Close()
			task := queue.Task{Name: "x", Path: "/p", Body: []byte("{}")}
			must.Succeed(t, taskqueue.New(client, c.cfg).Create(testContext(t), task))
			want := []*cloudtaskspb.CreateTaskRequest{{Parent: queueName, Task: &cloudtaskspb.Task{
				Name: queueName + "/tasks/x", MessageType: &cloudtaskspb.Task_HttpRequest{HttpRequest: c.want},
			}}}
			if diff := cmp.Diff(want, server.requests, protocmp.Transform()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreateDelay(t *testing.T) {
	for delay, set := range map[time.Duration]bool{0: false, -time.Hour: false, time.Hour: true} {
		t.Run(delay.String(), func(t *testing.T) {
			server, addr := startScripted(t)
			q := open(t, addr, taskqueue.Config{Queue: queueName, WorkerURL: "https://worker"})
			before := time.Now()
			must.Succeed(t, q.Create(testContext(t), queue.Task{Name: "x", Path: "/p", Delay: delay}))
			at := server.requests[0].GetTask().GetScheduleTime()
			if !set && at != nil {
				t.Errorf("schedule time %v, want none", at)
			}
			if set && at.AsTime().Before(before.Add(delay)) {
				t.Errorf("schedule time %v, want %v or later", at, timestamppb.New(before.Add(delay)))
			}
		})
	}
}

// Purges go to their own queue. A task goes to the common queue where its own one
// cannot be used, which a deployment makes beside the functions.
func TestPurgesHaveTheirOwnQueue(t *testing.T) {
	const purges = "projects/p/locations/l/queues/purges"
	both := taskqueue.Config{Queue: queueName, Purges: purges, WorkerURL: "https://worker"}
	own := both
	own.Dedicated = config.Dedicated{"acme_shop": "acme"}
	for name, c := range map[string]struct {
		cfg     taskqueue.Config
		task    queue.Task
		answers []codes.Code
		want    []string
		fails   bool
	}{
		"a purge":                  {both, queue.Task{Short: true}, nil, []string{purges}, false},
		"another task":             {both, queue.Task{}, nil, []string{queueName}, false},
		"a purge, one queue":       {taskqueue.Config{Queue: queueName, WorkerURL: "https://worker"}, queue.Task{Short: true}, nil, []string{queueName}, false},
		"no queue yet":             {both, queue.Task{Short: true}, []codes.Code{codes.NotFound}, []string{purges, queueName}, false},
		"a queue that was":         {both, queue.Task{Short: true}, []codes.Code{codes.FailedPrecondition}, []string{purges, queueName}, false},
		"no grant yet":             {both, queue.Task{Short: true}, []codes.Code{codes.PermissionDenied}, []string{purges, queueName}, false},
		"neither":                  {both, queue.Task{Short: true}, []codes.Code{codes.NotFound, codes.NotFound}, []string{purges, queueName}, true},
		"a purge that is there":    {both, queue.Task{Short: true}, []codes.Code{codes.AlreadyExists}, []string{purges}, false},
		"a task, no grant":         {both, queue.Task{}, []codes.Code{codes.PermissionDenied}, []string{queueName}, true},
		"a task that is invalid":   {both, queue.Task{Short: true}, []codes.Code{codes.InvalidArgument}, []string{purges}, true},
		"a dedicated app":          {own, queue.Task{App: "acme_shop"}, nil, []string{queueName + "-acme"}, false},
		"a dedicated app's purge":  {own, queue.Task{App: "acme_shop", Short: true}, nil, []string{purges + "-acme"}, false},
		"another app":              {own, queue.Task{App: "acme"}, nil, []string{queueName}, false},
		"a dedicated app too soon": {own, queue.Task{App: "acme_shop"}, []codes.Code{codes.NotFound}, []string{queueName + "-acme", queueName}, false},
		"its purge too soon": {own, queue.Task{App: "acme_shop", Short: true}, []codes.Code{codes.NotFound, codes.PermissionDenied},
			[]string{purges + "-acme", purges, queueName}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, addr := startScripted(t, c.answers...)
			c.task.Name, c.task.Path = "x", "/p"
			if err := open(t, addr, c.cfg).Create(testContext(t), c.task); (err != nil) != c.fails {
				t.Errorf("error %v, want one: %t", err, c.fails)
			}
			var got []string
			for _, r := range server.requests {
				if r.GetTask().GetName() != r.GetParent()+"/tasks/x" {
					t.Errorf("task %s of queue %s", r.GetTask().GetName(), r.GetParent())
				}
				got = append(got, r.GetParent())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("queues (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	server, addr := startScripted(t)
	q := open(t, addr, taskqueue.Config{Queue: queueName, WorkerURL: "https://worker"})
	for name, task := range map[string]queue.Task{
		"no name":             {Path: "/p"},
		"a name with a slash": {Name: "a/b", Path: "/p"},
		"a name with a plus":  {Name: "a+b", Path: "/p"},
		"a line end":          {Name: "a\n", Path: "/p"},
		"a name too long":     {Name: strings.Repeat("x", 501), Path: "/p"},
		"no path":             {Name: "x"},
		"another host":        {Name: "x", Path: "@evil.example/"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := q.Create(testContext(t), task); !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("error %v, want ErrInvalid", err)
			}
		})
	}
	if len(server.requests) > 0 {
		t.Errorf("%d calls, want none", len(server.requests))
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, cfg := range map[string]taskqueue.Config{
		"no queue":               {WorkerURL: "https://worker"},
		"a short name":           {Queue: "work", WorkerURL: "https://worker"},
		"a short name of purges": {Queue: queueName, Purges: "purges", WorkerURL: "https://worker"},
		"no worker":              {Queue: queueName},
		"a worker without host":  {Queue: queueName, WorkerURL: "/worker"},
		"a worker and a query":   {Queue: queueName, WorkerURL: "https://worker/?x=1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := taskqueue.Open(testContext(t), cfg, local...); err == nil {
				t.Error("Open accepted the configuration")
			}
		})
	}
	_, err := taskqueue.Open(testContext(t), taskqueue.Config{}, local...)
	for _, variable := range []string{"TASKS_QUEUE", "WORKER_URL"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("error %v does not name %s", err, variable)
		}
	}
}
