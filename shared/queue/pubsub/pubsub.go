// Package pubsub publishes the messages of package bus with Pub/Sub. It is apart
// from package bus so that a function which only reads messages does not link the
// client.
package pubsub

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// Config names the project and topics.
type Config struct {
	Project string `env:"PUBSUB_PROJECT,required"`
	// Events is the topic of accepted events.
	Events string `env:"PUBSUB_EVENTS_TOPIC" envDefault:"events"`
	// Slow is the topic of the events of apps that are over their limit.
	Slow string `env:"PUBSUB_SLOW_TOPIC" envDefault:"events-slow"`
	// Dedicated are the apps whose events go to a topic of their own: Events with the
	// customer's name. Such a topic has no slow lane, because no other app waits there.
	Dedicated config.Dedicated `env:"DEDICATED_APPS"`
	// DeadLetters is the topic for messages that cannot be applied.
	DeadLetters string `env:"PUBSUB_DEAD_LETTER_TOPIC" envDefault:"events-dead-letter"`
	// Regions have topics of their own; see config.Regions.Named. Where returns the region to
	// whose topics the messages of an app go; nil: to those of the first one.
	Regions config.Regions                                        `env:"REGIONS"`
	Where   func(ctx context.Context, app string) (string, error) `env:"-"`
}

// In returns the configuration with Where.
func (c Config) In(where func(ctx context.Context, app string) (string, error)) Config {
	c.Where = where
	return c
}

// Bus publishes messages. Safe for concurrent use.
type Bus struct {
	client *pubsub.Client
	cfg    Config
	topics map[string]*pubsub.Publisher
}

// Open returns a Bus. It connects at the first publish.
func Open(ctx context.Context, cfg Config, opts ...option.ClientOption) (*Bus, error) {
	// With it the client writes the span of a publish into the message.
	tracing := &pubsub.ClientConfig{EnableOpenTelemetryTracing: telemetry.Recording()}
	client, err := pubsub.NewClientWithConfig(ctx, cfg.Project, tracing, opts...)
	if err != nil {
		return nil, fmt.Errorf("open Pub/Sub of %s: %w", cfg.Project, err)
	}
	b := &Bus{client: client, cfg: cfg, topics: map[string]*pubsub.Publisher{}}
	names := []string{cfg.Events, cfg.Slow, cfg.DeadLetters}
	for app := range cfg.Dedicated {
		topic, _ := cfg.Dedicated.Named(cfg.Events, app)
		names = append(names, topic)
	}
	for _, region := range append([]string{""}, cfg.Regions.Names()...) {
		for _, name := range names {
			topic := cfg.Regions.Named(name, region)
			if b.topics[topic] != nil {
				continue
			}
			b.topics[topic] = client.Publisher(topic)
			// A request waits for its publish, so a batch must not wait for more messages.
			b.topics[topic].PublishSettings.DelayThreshold = time.Millisecond
		}
	}
	return b, nil
}

// Close sends the messages that are not yet sent, and closes the client.
func (b *Bus) Close() error {
	for _, p := range b.topics {
		p.Stop()
	}
	return b.client.Close()
}

// Publish sends an accepted request to process, in one message if it fits, by the
// message's lane. It makes one part at a time. On nil, Pub/Sub holds all of it. On an error, it may hold a
// part; the client's retry sends all of it again, and events are idempotent.
func (b *Bus) Publish(ctx context.Context, m bus.Message) error {
	region, err := b.region(ctx, m.App, m.Region)
	if err != nil {
		return fmt.Errorf("publish events of %s: %w", m.App, err)
	}
	for data, err := range m.Parts(bus.MaxMessage) {
		if err != nil {
			return fmt.Errorf("publish events of %s: %w", m.App, err)
		}
		attrs := map[string]string{bus.AttrApp: m.App}
		if m.Lane != bus.FastLane {
			attrs[bus.AttrLane] = string(m.Lane)
		}
		if m.Region != "" {
			attrs[bus.AttrRegion] = m.Region
		}
		for _, to := range b.of(m, region) {
			// A deployment makes and opens a topic beside the functions, which may be
			// first. Wherever a message goes, process applies it.
			if err = b.send(ctx, to, data, attrs); !unavailable(err) {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// region returns the region to whose topics a message of an app goes, which may name one.
func (b *Bus) region(ctx context.Context, app, region string) (_ string, err error) {
	if b.cfg.Where == nil || len(b.cfg.Regions) == 0 {
		return "", nil
	}
	if region == "" {
		region, err = b.cfg.Where(ctx, app)
	}
	if err == nil {
		err = b.cfg.Regions.Check(region)
	}
	return region, err
}

// of returns the topic of a message and, in order, those that take it where that
// one cannot be used. All are of its region: a message never leaves it.
func (b *Bus) of(m bus.Message, region string) []*pubsub.Publisher {
	var topics []*pubsub.Publisher
	add := func(name string) { topics = append(topics, b.topics[b.cfg.Regions.Named(name, region)]) }
	if own, ok := b.cfg.Dedicated.Named(b.cfg.Events, m.App); ok {
		add(own)
	}
	if m.Lane == bus.SlowLane {
		add(b.cfg.Slow)
	}
	add(b.cfg.Events)
	return topics
}

// unavailable reports whether an error says that the topic does not exist, or that
// the caller may not publish to it.
func unavailable(err error) bool {
	code := status.Code(err)
	return code == codes.NotFound || code == codes.PermissionDenied
}

// Return publishes a message again, unchanged and to the topics that it came from, as one
// that has been returned once more. It is new to Pub/Sub.
func (b *Bus) Return(ctx context.Context, p bus.Push) error {
	attrs := again(p)
	attrs[bus.AttrReturns] = fmt.Sprint(p.Returns() + 1)
	m := bus.Message{App: attrs[bus.AttrApp], Lane: bus.Lane(attrs[bus.AttrLane])}
	region, err := b.region(ctx, m.App, attrs[bus.AttrRegion])
	if err != nil {
		return fmt.Errorf("return a message of %s: %w", m.App, err)
	}
	for _, to := range b.of(m, region) {
		if err = b.send(ctx, to, p.Message.Data, attrs); !unavailable(err) {
			break
		}
	}
	return err
}

// again returns the attributes of a message that is published again.
func again(p bus.Push) map[string]string {
	attrs := map[string]string{}
	for k, v := range p.Message.Attributes {
		attrs[k] = v
	}
	if published := p.Published(); published > 0 {
		attrs[bus.AttrPublished] = fmt.Sprint(published)
	}
	return attrs
}

// Bury sends a message that cannot be applied to the dead-letter topic, unchanged
// and with the reason as an attribute.
func (b *Bus) Bury(ctx context.Context, p bus.Push, reason string) error {
	attrs := again(p)
	attrs[bus.AttrReason] = truncate(reason, 1000)
	attrs[bus.AttrBuried] = p.BuriedAs()
	attrs["messageId"] = p.Message.MessageID
	attrs["deliveryAttempt"] = fmt.Sprint(p.DeliveryAttempt)
	region, err := b.region(ctx, attrs[bus.AttrApp], attrs[bus.AttrRegion])
	if err != nil {
		return fmt.Errorf("bury a message of %s: %w", attrs[bus.AttrApp], err)
	}
	return b.send(ctx, b.topics[b.cfg.Regions.Named(b.cfg.DeadLetters, region)], p.Message.Data, attrs)
}

// truncate limits an attribute to n bytes of valid UTF-8. Pub/Sub allows 1,024.
func truncate(s string, n int) string {
	return strings.ToValidUTF8(s[:min(n, len(s))], "")
}

// publishTimeout ends a publish that Pub/Sub does not answer before the client of
// the request gives up.
const publishTimeout = 15 * time.Second

func (b *Bus) send(ctx context.Context, to *pubsub.Publisher, data []byte, attrs map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if _, err := to.Publish(ctx, &pubsub.Message{Data: data, Attributes: attrs}).Get(ctx); err != nil {
		return fmt.Errorf("publish to %s: %w", to.String(), err)
	}
	return nil
}
