package stack

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/emulator"
	buspubsub "github.com/affinityengine/affinity/shared/queue/pubsub"
)

// archivePatience is how long Close waits until the messages of a topic are archived.
const archivePatience = 10 * time.Second

// archiveSubscription is the subscription of a topic that writes the archive.
func archiveSubscription(topic string) string { return topic + "-archive" }

// openWarehouse opens the topics of rows for analysts, and writes their messages to files. Without a folder there are
// none.
func (s *Stack) openWarehouse(ctx context.Context, o Options, m messaging, base backend.Base,
	opts []option.ClientOption) (*buspubsub.Warehouse, error) {
	if o.Warehouse == "" {
		return nil, nil
	}
	for _, region := range regionNames(base.Regions.Whole()) {
		for _, name := range []string{bus.WarehouseTopic, buspubsub.WarehouseDeletions(bus.WarehouseTopic)} {
			if err := s.archive(ctx, m, base.Regions.Named(name, region), o.Warehouse, o.Log); err != nil {
				return nil, err
			}
		}
	}
	opened, err := buspubsub.OpenWarehouse(ctx, buspubsub.WarehouseConfig{Project: Project, Topic: bus.WarehouseTopic,
		Regions: base.Regions, Where: base.RegionOf}, opts...)
	if err == nil {
		s.onClose(opened.Close)
	}
	return opened, err
}

// archive writes the messages of a topic to files in a folder of its name, as the
// deployment's subscription does. It stops after the functions, which publish.
func (s *Stack) archive(ctx context.Context, m messaging, topic, folder string, log *slog.Logger) error {
	subscription := archiveSubscription(topic)
	if err := createTopic(ctx, m.client, topic, subscription); err != nil {
		return err
	}
	a := emulator.StartArchive(m.client, subscriptionName(subscription), filepath.Join(folder, topic), log)
	s.archived = append(s.archived, subscriptionName(subscription))
	s.onClose(func() error {
		if s.pubsub != nil { // an official emulator keeps what is not archived
			ctx, cancel := context.WithTimeout(context.Background(), archivePatience)
			defer cancel()
			if err := s.pubsub.Idle(ctx, subscriptionName(subscription)); err != nil {
				log.Error("the archive lacks messages", "subscription", subscription, "error", err)
			}
		}
		return a.Close()
	})
	return nil
}
