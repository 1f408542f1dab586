package emulator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/rows"
)

// inFolder calls f with the records of a folder, and closes it.
func inFolder(t *testing.T, dir string, f func(disk.Records)) {
	t.Helper()
	d, err := disk.Open(dir, rows.Join, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	f(d.Records('x'))
	must.Succeed(t, d.Close())
}

const (
	storedTopic = "projects/p/topics/t"
	firstSub    = "projects/p/subscriptions/first"
	secondSub   = "projects/p/subscriptions/second"
)

// withPubSub calls f with the service of a server with a topic and two subscriptions.
func withPubSub(t *testing.T, dir string, f func(context.Context, *pubsubService)) {
	t.Helper()
	inFolder(t, dir, func(r disk.Records) {
		server, err := StartPubSub(r)
		must.Succeed(t, err)
		defer server.Close()
		ctx, s := t.Context(), server.service
		if _, err := s.CreateTopic(ctx, &pb.Topic{Name: storedTopic}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{firstSub, secondSub} {
			if _, err := s.CreateSubscription(ctx, &pb.Subscription{Name: name, Topic: storedTopic, AckDeadlineSeconds: 10}); err != nil {
				t.Fatal(err)
			}
		}
		f(ctx, s)
	})
}

func (s *pubsubService) pulled(t *testing.T, ctx context.Context, subscription string) []*pb.ReceivedMessage {
	t.Helper()
	//lint:ignore SA1019 pstest would otherwise wait for a message
	resp, err := s.Pull(ctx, &pb.PullRequest{Subscription: subscription, MaxMessages: 10, ReturnImmediately: true})
	must.Succeed(t, err)
	return resp.GetReceivedMessages()
}

func publishOne(t *testing.T, ctx context.Context, s *pubsubService, text string) string {
	t.Helper()
	resp, err := s.Publish(ctx, &pb.PublishRequest{Topic: storedTopic, Messages: []*pb.PubsubMessage{{Data: []byte(text), Attributes: map[string]string{"a": "b"}}}})
	must.Succeed(t, err)
	return resp.GetMessageIds()[0]
}

func TestStoredMessagesWaitOverARestart(t *testing.T) {
	dir := t.TempDir()
	var id string
	withPubSub(t, dir, func(ctx context.Context, s *pubsubService) {
		id = publishOne(t, ctx, s, "one")
		got := s.pulled(t, ctx, firstSub)
		if len(got) != 1 || got[0].GetMessage().GetMessageId() != id {
			t.Fatalf("pulled %v, want message %s", got, id)
		}
		if _, err := s.Acknowledge(ctx, &pb.AcknowledgeRequest{Subscription: firstSub, AckIds: []string{got[0].GetAckId()}}); err != nil {
			t.Fatal(err)
		}
	})
	withPubSub(t, dir, func(ctx context.Context, s *pubsubService) {
		if got := s.pulled(t, ctx, firstSub); len(got) != 0 {
			t.Errorf("the subscription that acknowledged got %v", got)
		}
		got := s.pulled(t, ctx, secondSub)
		if len(got) != 1 {
			t.Fatalf("the other subscription got %v, want one message", got)
		}
		if m := got[0].GetMessage(); m.GetMessageId() != id || string(m.GetData()) != "one" || m.GetAttributes()["a"] != "b" {
			t.Errorf("the message is %v, want the one that was published", m)
		}
		if again := publishOne(t, ctx, s, "two"); again == id {
			t.Errorf("a new message has the id %s of an old one", id)
		}
	})
}

func TestStoredMessagesKeepTheirTime(t *testing.T) {
	dir := t.TempDir()
	before := time.Now()
	var published time.Time
	withPubSub(t, dir, func(ctx context.Context, s *pubsubService) {
		publishOne(t, ctx, s, "one")
		if published = s.pulled(t, ctx, firstSub)[0].GetMessage().GetPublishTime().AsTime(); published.Before(before) {
			t.Errorf("published %v, want after %v", published, before)
		}
	})
	withPubSub(t, dir, func(ctx context.Context, s *pubsubService) {
		if got := s.pulled(t, ctx, firstSub)[0].GetMessage().GetPublishTime().AsTime(); !got.Equal(published) {
			t.Errorf("after a restart published %v, want %v", got, published)
		}
	})
}

// answering is a worker that needs no network.
type answering func(*http.Request) (*http.Response, error)

func (w answering) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

const storedQueue = "projects/p/locations/l/queues/q"

// withTasks calls f with a server whose worker answers with a status and reports the tasks
// that it gets.
func withTasks(t *testing.T, dir string, code int, f func(*Tasks, <-chan string)) {
	t.Helper()
	inFolder(t, dir, func(r disk.Records) {
		got := make(chan string, 100)
		kept := &KeptTasks{Records: r, Readdress: func(r *cloudtaskspb.HttpRequest) error {
			r.Url = "http://new/" + r.GetUrl()[strings.LastIndexByte(r.GetUrl(), '/')+1:]
			r.Headers = map[string]string{"Authorization": "new"}
			return nil
		}}
		s, err := StartTasks(TasksConfig{Kept: kept, Queues: []*cloudtaskspb.Queue{{Name: storedQueue}},
			Transport: answering(func(r *http.Request) (*http.Response, error) {
				got <- fmt.Sprint(r.URL, " ", r.Header.Get("Authorization"))
				return &http.Response{StatusCode: code, Body: http.NoBody}, nil
			})})
		must.Succeed(t, err)
		defer s.Close()
		f(s, got)
	})
}

func createTask(s *Tasks, at time.Time) error {
	_, err := s.service.CreateTask(context.Background(), &cloudtaskspb.CreateTaskRequest{Parent: storedQueue, Task: &cloudtaskspb.Task{
		Name: storedQueue + "/tasks/one", ScheduleTime: timestamppb.New(at),
		MessageType: &cloudtaskspb.Task_HttpRequest{HttpRequest: &cloudtaskspb.HttpRequest{Url: "http://old/work", Headers: map[string]string{"Authorization": "old"}}},
	}})
	return err
}

func TestKeptTasksRunAfterARestart(t *testing.T) {
	dir := t.TempDir()
	withTasks(t, dir, http.StatusServiceUnavailable, func(s *Tasks, got <-chan string) {
		must.Succeed(t, createTask(s, time.Now()))
		if first := <-got; first != "http://old/work old" {
			t.Errorf("the worker got %q", first)
		}
	})
	withTasks(t, dir, http.StatusOK, func(s *Tasks, got <-chan string) {
		if again := <-got; again != "http://new/work new" {
			t.Errorf("after a restart the worker got %q, want the new address and token", again)
		}
		must.Succeed(t, s.Idle(t.Context()))
	})
	withTasks(t, dir, http.StatusOK, func(s *Tasks, got <-chan string) {
		if err := createTask(s, time.Now()); status.Code(err) != codes.AlreadyExists {
			t.Errorf("a second task of the name after a restart: %v, want that it exists", err)
		}
		if len(got) != 0 {
			t.Errorf("a task that had ended ran again: %s", <-got)
		}
	})
}

// The folder must not hold the token by which workers know their tasks.
func TestKeptTasksHoldNoToken(t *testing.T) {
	dir := t.TempDir()
	withTasks(t, dir, http.StatusOK, func(s *Tasks, _ <-chan string) {
		must.Succeed(t, createTask(s, time.Now().Add(time.Hour)))
	})
	inFolder(t, dir, func(r disk.Records) {
		records := 0
		err := r.Load(func(name string, value []byte) error {
			records++
			if strings.Contains(string(value), "Authorization") {
				t.Errorf("record %s holds the header: %q", name, value)
			}
			return nil
		})
		if err != nil || records != 1 {
			t.Errorf("%d records (%v), want the task's", records, err)
		}
	})
}
