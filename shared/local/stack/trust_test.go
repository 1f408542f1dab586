package stack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
)

// place asks as the operator where an engine's services are.
func place(t *testing.T, s *stack.Stack) operator.Place {
	t.Helper()
	c, err := operator.NewClient(s.URL, s.Operator)
	must.Succeed(t, err)
	p, err := c.Place(t.Context())
	must.Succeed(t, err)
	return p
}

// dial connects to a service as any process of the machine can.
func dial(t *testing.T, addr string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A process that finds the ports of the services reads nothing there: no task
// with the way into the worker, no row, no message.
func TestServicesRefuseStrangers(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Hour}) // a recompute stays in its queue
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", seenStrategy)
	at := place(t, s)
	list := &cloudtaskspb.ListTasksRequest{
		Parent: "projects/" + stack.Project + "/locations/local/queues/" + queue.ID, ResponseView: cloudtaskspb.Task_FULL}
	if _, err := cloudtaskspb.NewCloudTasksClient(dial(t, at.Tasks)).ListTasks(t.Context(), list); status.Code(err) != codes.Unauthenticated {
		t.Errorf("tasks without a token: %v", err)
	}
	if _, err := pubsubpb.NewPublisherClient(dial(t, at.PubSub)).ListTopics(t.Context(),
		&pubsubpb.ListTopicsRequest{Project: "projects/" + stack.Project}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("topics without a token: %v", err)
	}
	client, err := bigtable.NewAdminClient(t.Context(), stack.Project, stack.Instance, option.WithGRPCConn(dial(t, at.Bigtable)))
	must.Succeed(t, err)
	if tables, err := client.Tables(t.Context()); status.Code(err) != codes.Unauthenticated {
		t.Errorf("tables without a token: %v, %v", tables, err)
	}

	// Even the operator does not learn the worker's credentials from a task.
	tasks, err := cloudtaskspb.NewCloudTasksClient(dial(t, at.Tasks, emulator.WithToken(at.Token))).ListTasks(t.Context(), list)
	if err != nil || len(tasks.GetTasks()) == 0 {
		t.Fatalf("tasks with the token: %v, %v; want the recompute's", tasks, err)
	}
	work := tasks.GetTasks()[0].GetHttpRequest()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, work.GetUrl(), strings.NewReader(string(work.GetBody())))
	must.Succeed(t, err)
	for name, value := range work.GetHeaders() {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	must.Succeed(t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("the worker answers %s to the headers of a listed task, want 403", res.Status)
	}
}

// GET /local answers the operator and nobody else.
func TestLocalNeedsTheOperator(t *testing.T) {
	s := start(t, stack.Options{Operator: "the-token-of-the-operator"})
	at := place(t, s)
	for name, addr := range map[string]string{"bigtable": at.Bigtable, "pubsub": at.PubSub, "tasks": at.Tasks} {
		if addr == "" {
			t.Errorf("the answer does not name %s", name)
		}
	}
	for name, authorization := range map[string]string{
		"nothing": "", "an app's key": "Bearer demokey", "the services' token": "Bearer " + at.Token, "no scheme": "the-token-of-the-operator",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/local", nil)
		must.Succeed(t, err)
		req.Header.Set("Authorization", authorization)
		res, err := http.DefaultClient.Do(req)
		must.Succeed(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s, want 401", name, res.Status)
		}
	}
}

// A page of another site changes nothing, whether its browser asks first or sends
// the request at once, and whether or not the page's name resolves to loopback.
func TestWebPagesOfOtherSites(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: "demokey"}}})
	must.Succeed(t, err)
	defer s.Close()
	const credentials = "?x-algolia-application-id=demo&x-algolia-api-key=demokey"
	for _, test := range []struct {
		name, method, host, origin string
		want                       int
	}{
		{"simple request", "POST", "", "https://evil.example", 403},
		{"preflight", "OPTIONS", "", "https://evil.example", 403},
		{"rebound name", "POST", "evil.example", "http://evil.example", 421},
		{"rebound name, reading", "GET", "evil.example", "", 421},
		{"the developer's own page", "OPTIONS", "", "http://localhost:3000", 204},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, s.URL+"/1/strategies/personalization"+credentials, strings.NewReader(seenStrategy))
		must.Succeed(t, err)
		req.Host = test.host
		req.Header.Set("Content-Type", "text/plain")
		req.Header.Set("Access-Control-Request-Method", "POST")
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		res, err := http.DefaultClient.Do(req)
		must.Succeed(t, err)
		res.Body.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: %s, want %d", test.name, res.Status, test.want)
		}
	}
	if app, err := s.Backends.Config.App(t.Context(), "demo"); err != nil || app.StrategyVersion != 0 {
		t.Errorf("a page set strategy version %d (%v), want none", app.StrategyVersion, err)
	}
}
