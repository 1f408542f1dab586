package process_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// child is the variable that makes the test's program a process of the engine.
const child = "AFFINITY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	s, err := stack.Start(context.Background(), stack.Options{Apps: []stack.App{{ID: functiontest.App, Key: "all"}}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	backends := s.Backends.ForProcess()
	backends.Uptime = func() time.Duration { return time.Hour }
	server := httptest.NewServer(process.New(backends))
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

// engine is Bigtable, Pub/Sub, and a process of the engine, which Bigtable kills.
type engine struct {
	*testing.T
	env []string

	mu      sync.Mutex
	process *exec.Cmd // nil: killed
	url     string
	kills   int           // how often the message that kills still does so
	pairs   int           // how often it waits for the innocent one before
	arrived chan struct{} // the innocent message draws its ticket
}

// serve starts a process of the engine.
func (e *engine) serve() {
	e.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), e.env...)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	if err != nil {
		e.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		e.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		e.Fatalf("the process does not start: %v, %v", err, cmd.Wait())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.process, e.url, e.arrived = cmd, strings.TrimSpace(line), make(chan struct{})
}

// kill kills the process with SIGKILL, as the kernel does when memory runs out.
func (e *engine) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.process != nil {
		_ = e.process.Process.Kill()
		_ = e.process.Wait()
		e.process = nil
	}
}

// onTicket is called when a user's ticket is drawn: the events are in the log, and
// count in no stored profile yet.
func (e *engine) onTicket(ctx context.Context, key string) error {
	e.mu.Lock()
	arrived, pair, kill := e.arrived, e.pairs > 0, e.kills > 0
	e.mu.Unlock()
	switch {
	case strings.Contains(key, ",poison,") && kill:
		if pair {
			<-arrived
		}
		e.mu.Lock()
		e.kills, e.pairs = e.kills-1, 0
		e.mu.Unlock()
		e.kill()
		return status.Error(codes.Internal, "nobody waits for this answer")
	case strings.Contains(key, ",innocent,") && pair:
		close(arrived)
		<-ctx.Done() // its process is killed
		return ctx.Err()
	}
	return nil
}

// deliver delivers messages to the process at once, and returns those that are
// acknowledged.
func (e *engine) deliver(attempt int, messages map[string]string) (acknowledged []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for id, data := range messages {
		p := bus.Push{Subscription: "s", DeliveryAttempt: attempt}
		p.Message.MessageID, p.Message.Data = id, []byte(data)
		p.Message.Attributes = map[string]string{bus.AttrReturns: fmt.Sprint(apply.MaxReturns)}
		body, err := json.Marshal(p)
		if err != nil {
			e.Fatal(err)
		}
		all.Go(func() {
			res, err := http.Post(e.url, "application/json", bytes.NewReader(body))
			if err != nil {
				return // killed
			}
			defer res.Body.Close()
			if res.StatusCode == http.StatusTooManyRequests {
				return // it came too early
			}
			if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusNoContent {
				e.Errorf("attempt %d of %s: %d %s", attempt, id, res.StatusCode, answer)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			acknowledged = append(acknowledged, id)
		})
	}
	all.Wait()
	return acknowledged
}

// A message that ends its process with SIGKILL is buried once three marked deliveries have
// ended theirs; the first one of a small message has no mark. A message that it takes along
// the first time is applied.
func TestMessageThatKillsItsProcessIsBuried(t *testing.T) {
	e := &engine{T: t, kills: 1 + apply.MaxUnanswered, pairs: 1}
	bigtable, err := emulator.StartBttest(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if draw, ok := req.(*bigtablepb.ReadModifyWriteRowRequest); ok {
			if err := e.onTicket(ctx, string(draw.RowKey)); err != nil {
				return nil, err
			}
		}
		return handle(ctx, req)
	}))
	must.Succeed(t, err)
	t.Cleanup(bigtable.Close)
	messages, err := emulator.StartPubSub(storetest.Disk(t).Records('m'))
	must.Succeed(t, err)
	t.Cleanup(messages.Close)
	e.env = []string{child + "=1", "BIGTABLE_EMULATOR_HOST=" + bigtable.Addr, "PUBSUB_EMULATOR_HOST=" + messages.Addr}
	t.Cleanup(e.kill)

	// Both are small, so that their first deliveries are not marked.
	small := func(user string) string {
		return `{"app":"shop","receivedAt":1700000000000,"resolved":true}` + "\n" +
			`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"` + user + `","filters":["color:Red"]}]}`
	}
	waiting := map[string]string{"1": small("poison"), "2": small("innocent")}
	const last = 1 + apply.MaxUnanswered + apply.MaxWaits + 1
	for attempt := 1; len(waiting) > 0; attempt++ {
		e.serve()
		acknowledged := e.deliver(attempt, waiting)
		for _, id := range acknowledged {
			delete(waiting, id)
		}
		if attempt == 1 && len(acknowledged) > 0 || slices.Contains(acknowledged, "1") != (attempt == last) || attempt > last {
			t.Fatalf("attempt %d: %v are acknowledged; want the message that kills at attempt %d", attempt, acknowledged, last)
		}
		e.kill()
	}
	if e.kills != 0 {
		t.Errorf("the message could have killed %d more processes", e.kills)
	}
	buried := e.dead(messages.Addr)
	if len(buried) != 1 || !strings.HasPrefix(buried[0].Attributes[bus.AttrReason], "3 deliveries left no answer") || !strings.Contains(string(buried[0].Data), `"poison"`) {
		t.Errorf("%d messages are buried: %.300v", len(buried), buried)
	}
	e.wantNoMarks(bigtable.Addr)
}

// dead returns the dead letters.
func (e *engine) dead(addr string) (all []*pubsubpb.PubsubMessage) {
	e.Helper()
	client, err := pubsub.NewClient(e.Context(), stack.Project, local(addr)...)
	if err != nil {
		e.Fatal(err)
	}
	defer client.Close()
	got, err := client.SubscriptionAdminClient.Pull(e.Context(), &pubsubpb.PullRequest{
		Subscription: "projects/" + stack.Project + "/subscriptions/" + stack.DeadLetters, MaxMessages: 100})
	if err != nil {
		e.Fatal(err)
	}
	for _, m := range got.ReceivedMessages {
		all = append(all, m.Message)
	}
	return all
}

// wantNoMarks checks that no delivery of the messages is marked any more.
func (e *engine) wantNoMarks(addr string) {
	e.Helper()
	s, err := store.Open(e.Context(), store.Config{Project: stack.Project, Instance: stack.Instance}, local(addr)...)
	if err != nil {
		e.Fatal(err)
	}
	defer s.Close()
	for _, id := range []string{"1", "2"} {
		if d, err := s.Users.Deliveries(e.Context(), id); err != nil || !reflect.DeepEqual(d, store.Deliveries{}) {
			e.Errorf("message %s has the marks %+v, %v", id, d, err)
		}
	}
}

func local(addr string) []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
}
