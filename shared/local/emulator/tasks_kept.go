package emulator

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/local/disk"
)

// KeptTasks keep tasks in records from before their creation is answered until they end,
// and then their names as long as these are reserved. A restart adds them to their queues
// with no attempt made.
type KeptTasks struct {
	Records disk.Records
	// Readdress gives a task the address of its worker and its credentials, which the
	// records do not hold. Those of the process that created the task are gone.
	Readdress func(*cloudtaskspb.HttpRequest) error
}

// A record's name is one of these and the task's.
const (
	recordTask  = "task/"
	recordEnded = "ended/"
)

// keep saves a task. A nil KeptTasks keeps nothing.
func (k *KeptTasks) keep(t *cloudtaskspb.Task) error {
	if k == nil {
		return nil
	}
	t = proto.CloneOf(t)
	for name := range t.GetHttpRequest().GetHeaders() {
		if strings.EqualFold(name, "Authorization") {
			delete(t.GetHttpRequest().GetHeaders(), name)
		}
	}
	value, err := proto.Marshal(t)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if err := k.Records.Save(documents.Record{Name: recordTask + t.GetName(), Value: value}); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return nil
}

// ended forgets a task and remembers its name, and forgets other names. The records may
// learn it late: then a restart adds the task again.
func (k *KeptTasks) ended(name string, now time.Time, names []string, log *slog.Logger) {
	if k == nil {
		return
	}
	at, _ := now.MarshalText() // fails only after the year 9999
	records := []documents.Record{{Name: recordTask + name}, {Name: recordEnded + name, Value: at}}
	for _, n := range names {
		records = append(records, documents.Record{Name: recordEnded + n})
	}
	if err := k.Records.SaveLater(records...); err != nil {
		log.Error("a task that has ended is kept and will run again after a restart", "task", name, "error", err)
	}
}

// restore adds what an earlier process has left to a queue.
func (k *KeptTasks) restore(q *taskQueue) error {
	if k == nil {
		return nil
	}
	of := q.pb.GetName() + "/tasks/"
	err := k.Records.LoadPrefix(recordTask+of, func(name string, value []byte) error {
		t := &cloudtaskspb.Task{}
		if err := proto.Unmarshal(value, t); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := k.Readdress(t.GetHttpRequest()); err != nil {
			return fmt.Errorf("address %s: %w", name, err)
		}
		q.add(t)
		return nil
	})
	if err != nil {
		return err
	}
	ended := map[string]time.Time{}
	err = k.Records.LoadPrefix(recordEnded+of, func(name string, value []byte) error {
		var at time.Time
		if err := at.UnmarshalText(value); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		ended[strings.TrimPrefix(name, recordEnded)] = at
		return nil
	})
	q.finished.restore(ended)
	return err
}
