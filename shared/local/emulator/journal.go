package emulator

import (
	"fmt"
	"strings"
	"sync"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/local/disk"
)

// journal keeps the messages of subscriptions in a folder from before their publish is
// answered until they are acknowledged. A restart returns them to their subscriptions.
//
// pstest numbers its messages from 0 in every process. Clients see another id, which no
// process has used before.
type journal struct {
	records disk.Records
	now     func() time.Time

	mu       sync.Mutex // taken before pstest's lock
	last     int64      // the highest id
	messages map[string]*journaled
}

// journaled is a message by its id of pstest.
type journaled struct {
	id        string
	published *timestamppb.Timestamp
	waiting   map[string]bool // subscriptions that have not acknowledged it
}

func newJournal(records disk.Records, now func() time.Time) *journal {
	return &journal{records: records, now: now, last: time.Now().UnixMicro(), messages: map[string]*journaled{}}
}

// recordName is the name of a message's record of a subscription.
func recordName(subscription, id string) string { return subscription + "#" + id }

// keep saves messages for subscriptions, before they are published.
func (j *journal) keep(subscriptions []string, messages []*pb.PubsubMessage) ([]*journaled, error) {
	j.mu.Lock()
	first := j.last + 1
	j.last += int64(len(messages))
	j.mu.Unlock()
	var kept []*journaled
	var records []documents.Record
	for i, m := range messages {
		m = proto.CloneOf(m)
		m.MessageId, m.PublishTime = fmt.Sprint(first+int64(i)), timestamppb.New(j.now())
		value, err := proto.Marshal(m)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		entry := &journaled{id: m.MessageId, published: m.PublishTime, waiting: map[string]bool{}}
		for _, s := range subscriptions {
			entry.waiting[s] = true
			records = append(records, documents.Record{Name: recordName(s, m.MessageId), Value: value})
		}
		kept = append(kept, entry)
	}
	if err := j.records.Save(records...); err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	return kept, nil
}

// enter publishes messages that are kept, before any stream sees them. It returns their
// ids.
func (j *journal) enter(kept []*journaled,
	publish func() (*pb.PublishResponse, error)) ([]string, *pb.PublishResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	resp, err := publish()
	if err != nil {
		return nil, nil, err
	}
	ids := resp.GetMessageIds()
	shown := &pb.PublishResponse{}
	for i, id := range ids {
		j.messages[id] = kept[i]
		shown.MessageIds = append(shown.MessageIds, kept[i].id)
	}
	return ids, shown, nil
}

// deliver returns the messages that are for the subscription, with the ids that clients
// see, and the ack ids of the others. The results are copies: pstest reads its own at any
// time, and drops those that have waited for ten minutes since they were published to it.
func (j *journal) deliver(subscription string,
	messages []*pb.ReceivedMessage) (own []*pb.ReceivedMessage, others []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range messages {
		entry := j.messages[r.GetMessage().GetMessageId()]
		if entry == nil || !entry.waiting[subscription] {
			others = append(others, r.GetAckId())
			continue
		}
		r = proto.CloneOf(r)
		r.Message.MessageId, r.Message.PublishTime = entry.id, entry.published
		own = append(own, r)
	}
	return own, others
}

// acknowledged forgets a message of a subscription. The folder may learn it late: then a
// restart delivers the message again.
func (j *journal) acknowledged(subscription, ackID string) {
	id := ackID[:max(0, strings.LastIndex(ackID, ":"))]
	j.mu.Lock()
	entry := j.messages[id]
	known := entry != nil && entry.waiting[subscription]
	if known {
		if delete(entry.waiting, subscription); len(entry.waiting) == 0 {
			delete(j.messages, id)
		}
	}
	j.mu.Unlock()
	if known {
		_ = j.records.SaveLater(documents.Record{Name: recordName(subscription, entry.id)})
	}
}

// waiting returns the messages that an earlier process has left to a subscription.
func (j *journal) waiting(subscription string) ([]*journaled, []*pb.PubsubMessage, error) {
	var kept []*journaled
	var messages []*pb.PubsubMessage
	prefix := recordName(subscription, "")
	err := j.records.LoadPrefix(prefix, func(_ string, value []byte) error {
		m := &pb.PubsubMessage{}
		if err := proto.Unmarshal(value, m); err != nil {
			return fmt.Errorf("read a message of %s: %w", subscription, err)
		}
		kept = append(kept, &journaled{id: m.GetMessageId(), published: m.GetPublishTime(),
			waiting: map[string]bool{subscription: true}})
		messages = append(messages, m)
		return nil
	})
	return kept, messages, err
}

// forget drops all messages of a subscription.
func (j *journal) forget(subscription string) error {
	var records []documents.Record
	err := j.records.LoadPrefix(recordName(subscription, ""), func(name string, _ []byte) error {
		records = append(records, documents.Record{Name: name})
		return nil
	})
	if err != nil {
		return err
	}
	return j.records.Save(records...)
}
