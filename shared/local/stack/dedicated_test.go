package stack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"cloud.google.com/go/pubsub/v2"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
)

// A dedicated app's events reach its profiles from its own topic and from the common
// one alike, each once. Its tasks wait in its own queues, and
// jobs of other apps are not before its own.
func TestDedicatedApp(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Hour, Dedicated: config.Dedicated{"demo": "acme"},
		Recompute: job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 3}})
	wantStatusAs(t, s, http.StatusOK, "other", "otherkey", "POST", "/1/recomputes", "")
	seen(t, s, "demo", "demokey", 2)

	// A message that an older engine published, or that was under way, lies in the common
	// topic. Another delivery of it changes nothing.
	message, err := bus.Message{App: "demo", ReceivedAt: s.Backends.Now().UnixMilli(), Request: 7, Resolved: true,
		Body: []byte(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u9","filters":["color:Red"]}]}`)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{stack.EventsTopic, stack.EventsTopic + "-acme", stack.EventsTopic} {
		if _, err := messaging(t, s).Publisher(topic).Publish(t.Context(), &pubsub.Message{Data: message}).Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	idle(t, s)
	for _, user := range []string{"u0", "u1", "u9"} {
		if _, answer := call(t, s, "GET", "/1/explain/"+user, ""); !strings.Contains(answer, `"accepted":1`) {
			t.Errorf("%s: %s, want one event", user, answer)
		}
	}

	wantStatus(t, s, http.StatusOK, "DELETE", "/1/profiles/u0", "")
	code, answer := call(t, s, "POST", "/1/recomputes", "")
	if code != http.StatusOK || !strings.Contains(answer, `"jobsBefore":0`) {
		t.Errorf("%d %s, want no job before it in its own queue", code, answer)
	}
	idle(t, s) // the purge has enqueued the last one
	at := place(t, s)
	tasks := cloudtaskspb.NewCloudTasksClient(dial(t, at.Tasks, emulator.WithToken(at.Token)))
	for name, want := range map[string]int{queue.ID: 1, queue.ID + "-acme": 1, queue.PurgesID: 0, queue.PurgesID + "-acme": 1} {
		list, err := tasks.ListTasks(t.Context(), &cloudtaskspb.ListTasksRequest{Parent: "projects/" + stack.Project + "/locations/local/queues/" + name})
		if err != nil || len(list.GetTasks()) != want {
			t.Errorf("queue %s: %d tasks, %v; want %d", name, len(list.GetTasks()), err, want)
		}
	}
}
