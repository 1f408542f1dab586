package emulator_test

import (
	"net/http"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// A guarded server answers nothing to a call without its token, be it unary or a
// stream.
func TestGuard(t *testing.T) {
	const token = "the-token"
	bigtable, err := emulator.StartBigtable(storetest.Disk(t), emulator.Guard(token))
	must.Succeed(t, err)
	defer bigtable.Close()
	pubsub, err := emulator.StartPubSub(storetest.Disk(t).Records('m'), emulator.Guard(token))
	must.Succeed(t, err)
	defer pubsub.Close()
	tasks, err := emulator.StartTasks(emulator.TasksConfig{
		Queues: []*cloudtaskspb.Queue{{Name: queue}}, Server: []grpc.ServerOption{emulator.Guard(token)}})
	must.Succeed(t, err)
	defer tasks.Close()
	calls := map[string]struct {
		addr string
		call func(*grpc.ClientConn) error
	}{
		"Bigtable, unary": {bigtable.Addr, func(c *grpc.ClientConn) error {
			_, err := adminpb.NewBigtableTableAdminClient(c).ListTables(t.Context(), &adminpb.ListTablesRequest{Parent: "projects/p/instances/i"})
			return err
		}},
		"Bigtable, stream": {bigtable.Addr, func(c *grpc.ClientConn) error {
			stream, err := bigtablepb.NewBigtableClient(c).ReadRows(t.Context(), &bigtablepb.ReadRowsRequest{TableName: "projects/p/instances/i/tables/t"})
			if err == nil {
				_, err = stream.Recv()
			}
			if status.Code(err) == codes.NotFound { // the table
				return nil
			}
			return err
		}},
		"Pub/Sub": {pubsub.Addr, func(c *grpc.ClientConn) error {
			_, err := pubsubpb.NewPublisherClient(c).ListTopics(t.Context(), &pubsubpb.ListTopicsRequest{Project: "projects/p"})
			return err
		}},
		"Cloud Tasks": {tasks.Addr, func(c *grpc.ClientConn) error {
			_, err := cloudtaskspb.NewCloudTasksClient(c).ListTasks(t.Context(), &cloudtaskspb.ListTasksRequest{Parent: queue})
			return err
		}},
	}
	for name, test := range calls {
		t.Run(name, func(t *testing.T) {
			dial := map[string][]grpc.DialOption{
				"no token": nil, "another token": {emulator.WithToken("another")}, "the start of the token": {emulator.WithToken("the-toke")},
				"the token": {emulator.WithToken(token)},
			}
			for sent, options := range dial {
				conn, err := grpc.NewClient(test.addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
				must.Succeed(t, err)
				defer conn.Close()
				want := codes.Unauthenticated
				if sent == "the token" {
					want = codes.OK
				}
				if err := test.call(conn); status.Code(err) != want {
					t.Errorf("%s: %v, want %s", sent, err, want)
				}
			}
		})
	}
}

// A worker gets the credentials of its task. A reader of the task does not.
func TestTasksRedactAuthorization(t *testing.T) {
	const secret = "Bearer secret"
	got := make(chan string, 1)
	url := worker(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") })
	w := newTasksWorld(t, &cloudtaskspb.Queue{}, emulator.TasksConfig{})
	withSecret := func(name, header string) *cloudtaskspb.Task {
		return newTask(name, &cloudtaskspb.HttpRequest{Url: url, Headers: map[string]string{header: secret, "X-Other": "shown"}})
	}
	w.create(withSecret("due", "Authorization"))
	if sent := <-got; sent != secret {
		t.Errorf("the worker got %q, want %q", sent, secret)
	}
	w.idle()
	later := withSecret("later", "authorization")
	later.ScheduleTime = timestamppb.New(time.Now().Add(time.Hour))
	shown := []*cloudtaskspb.Task{w.create(later)}
	full, err := w.client.GetTask(w.ctx, &cloudtaskspb.GetTaskRequest{Name: later.GetName(), ResponseView: cloudtaskspb.Task_FULL})
	must.Succeed(t, err)
	listed, err := w.client.ListTasks(w.ctx, &cloudtaskspb.ListTasksRequest{Parent: queue, ResponseView: cloudtaskspb.Task_FULL}).Next()
	must.Succeed(t, err)
	for _, task := range append(shown, full, listed) {
		if h := task.GetHttpRequest().GetHeaders(); h["authorization"] != "redacted" || h["X-Other"] != "shown" {
			t.Errorf("the answer shows the headers %v", h)
		}
	}
}
