package pubsub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/app/config"
)

// WarehouseConfig names the topics of the rows for analysts.
type WarehouseConfig struct {
	Project string `env:"PUBSUB_PROJECT,required"`
	// Topic is that of events, and with the ending -deletions that of deletions. Empty: there is no warehouse.
	Topic string `env:"PUBSUB_WAREHOUSE_TOPIC"`
	// Regions and Where are those of Config.
	Regions config.Regions                                        `env:"REGIONS"`
	Where   func(ctx context.Context, app string) (string, error) `env:"-"`
}

// In returns the configuration with Where.
func (c WarehouseConfig) In(where func(ctx context.Context, app string) (string, error)) WarehouseConfig {
	c.Where = where
	return c
}

// WarehouseDeletions is the topic of deletions beside that of events.
func WarehouseDeletions(events string) string { return events + "-deletions" }

// Warehouse publishes rows for analysts, each as a message. A nil Warehouse has none. It is safe for
// concurrent use.
type Warehouse struct {
	cfg WarehouseConfig
	bus *Bus // whose topics are those of the warehouse
}

// OpenWarehouse returns a Warehouse, or nil if the configuration names none. It connects at the first publish.
func OpenWarehouse(ctx context.Context, cfg WarehouseConfig, opts ...option.ClientOption) (*Warehouse, error) {
	if cfg.Topic == "" {
		return nil, nil
	}
	client, err := pubsub.NewClient(ctx, cfg.Project, opts...)
	if err != nil {
		return nil, fmt.Errorf("open Pub/Sub of %s: %w", cfg.Project, err)
	}
	b := &Bus{client: client, topics: map[string]*pubsub.Publisher{},
		cfg: Config{Project: cfg.Project, Regions: cfg.Regions, Where: cfg.Where}}
	for _, region := range append([]string{""}, cfg.Regions.Names()...) {
		for _, name := range []string{cfg.Topic, WarehouseDeletions(cfg.Topic)} {
			topic := cfg.Regions.Named(name, region)
			if b.topics[topic] == nil {
				b.topics[topic] = client.Publisher(topic)
				// Who publishes waits, so a batch must not wait for more rows.
				b.topics[topic].PublishSettings.DelayThreshold = time.Millisecond
			}
		}
	}
	return &Warehouse{cfg, b}, nil
}

// Close sends the messages that are not yet sent, and closes the client.
func (w *Warehouse) Close() error {
	if w == nil {
		return nil
	}
	return w.bus.Close()
}

// PublishEvents publishes rows of events of users of an app who live in a region; empty: in that of the app. On nil,
// Pub/Sub holds all of them; on an error, perhaps some: publish all again.
func (w *Warehouse) PublishEvents(ctx context.Context, app, region string, rows [][]byte) error {
	region, err := w.bus.region(ctx, app, region)
	if err != nil {
		return fmt.Errorf("publish rows of %s: %w", app, err)
	}
	return w.publish(ctx, w.cfg.Regions.Named(w.cfg.Topic, region), rows)
}

// PublishDeletion publishes the row of a deletion of a user of an app, where PublishEvents publishes theirs. The
// error is as that of PublishEvents.
func (w *Warehouse) PublishDeletion(ctx context.Context, app, region string, row []byte) error {
	region, err := w.bus.region(ctx, app, region)
	if err != nil {
		return fmt.Errorf("publish a deletion of %s: %w", app, err)
	}
	return w.publish(ctx, w.cfg.Regions.Named(WarehouseDeletions(w.cfg.Topic), region), [][]byte{row})
}

// PublishEverywhere publishes the row of the deletion of an app, which names no user, in all regions: nobody knows any
// more where the app was.
func (w *Warehouse) PublishEverywhere(ctx context.Context, row []byte) error {
	var faults []error
	for _, region := range append([]string{""}, w.cfg.Regions.Whole().Names()...) {
		if region == w.cfg.Regions.First() && region != "" {
			continue // the one without a name
		}
		topic := w.cfg.Regions.Named(WarehouseDeletions(w.cfg.Topic), region)
		faults = append(faults, w.publish(ctx, topic, [][]byte{row}))
	}
	return errors.Join(faults...)
}

func (w *Warehouse) publish(ctx context.Context, topic string, rows [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	to := w.bus.topics[topic]
	sent := make([]*pubsub.PublishResult, len(rows))
	for i, row := range rows {
		sent[i] = to.Publish(ctx, &pubsub.Message{Data: row})
	}
	for _, s := range sent {
		if _, err := s.Get(ctx); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
	}
	return nil
}
