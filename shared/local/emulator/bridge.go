package emulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
)

const (
	// unsettledMessages and unsettledBytes bound the messages that a Bridge
	// pushes or holds for another attempt. All others wait in the subscription.
	unsettledMessages = 1000
	unsettledBytes    = 256 << 20
	// maxExtension is how long the client library keeps a message leased:
	// longer than any wait between attempts.
	maxExtension = 7 * 24 * time.Hour
	// lease is the length of each extension, the shortest that Pub/Sub allows.
	// When it expires, Pub/Sub redelivers a message that a closed Bridge or a
	// dead process held.
	lease = 10 * time.Second
	// usualCloseTimeout is how long Close waits for the client library after the
	// Bridge has settled all messages. The library sends the last
	// acknowledgements within 100 ms. Without a server it retries forever.
	usualCloseTimeout = 5 * time.Second
)

// BridgeConfig holds the source, the target and the retries of a Bridge.
type BridgeConfig struct {
	// Subscription is the full name (projects/P/subscriptions/S) of the pull
	// subscription to push from.
	Subscription string
	// Endpoint is the http or https URL that messages are posted to.
	Endpoint string
	// Header is sent with every push, beside Content-Type.
	Header http.Header
	// DeadLetterTopic is the full name (projects/P/topics/T) of the topic for
	// messages that MaxAttempts pushes could not deliver. Without a topic the
	// Bridge pushes a message until it is delivered.
	DeadLetterTopic string
	// MaxAttempts counts the pushes of one message by this Bridge, the first
	// included. Default 5.
	MaxAttempts int
	// MinBackoff is the wait after the first failed push. It doubles with each
	// further failure, up to MaxBackoff. The defaults are 100 ms and 10 s.
	// Pub/Sub's are 10 s and 600 s; here a developer is waiting.
	MinBackoff, MaxBackoff time.Duration
	// Concurrency bounds the pushes under way at one time. Default 16. After failures
	// fewer are under way, as with Pub/Sub.
	Concurrency int
	// Timeout is how long a push may take. Default 10 minutes, the longest that
	// Pub/Sub has.
	Timeout time.Duration
	// Unary takes messages by single requests instead of a stream. Some Pub/Sub
	// emulators, Google's among them, do not notice that a process has ended
	// and continue to deliver to its stream.
	Unary bool
	// PullTimeout ends a unary request that receives nothing; the next one
	// follows at once. A request that waits on a deleted subscription ends no
	// earlier. Default 30 s.
	PullTimeout time.Duration
	// Log gets failed pushes and dead letters. By default the Bridge logs
	// nothing.
	Log *slog.Logger
}

func (c BridgeConfig) withDefaults() BridgeConfig {
	if c.MaxAttempts <= 0 {
		c.MaxAttempts = 5
	}
	if c.MinBackoff <= 0 {
		c.MinBackoff = 100 * time.Millisecond
	}
	if c.MaxBackoff <= 0 {
		c.MaxBackoff = max(10*time.Second, c.MinBackoff)
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 16
	}
	if c.PullTimeout <= 0 {
		c.PullTimeout = 30 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate returns all faults of the configuration.
func (c BridgeConfig) validate() error {
	var faults []error
	if !isName(c.Subscription, "subscriptions") {
		faults = append(faults, fmt.Errorf("subscription %q is not projects/P/subscriptions/S", c.Subscription))
	}
	if c.DeadLetterTopic != "" && !isName(c.DeadLetterTopic, "topics") {
		faults = append(faults, fmt.Errorf("dead-letter topic %q is not projects/P/topics/T", c.DeadLetterTopic))
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		faults = append(faults, fmt.Errorf("endpoint %q is not an http or https URL", c.Endpoint))
	}
	return errors.Join(faults...)
}

// isName reports whether s is projects/P/<collection>/X.
func isName(s, collection string) bool {
	parts := strings.Split(s, "/")
	return len(parts) == 4 && parts[0] == "projects" && parts[1] != "" && parts[2] == collection && parts[3] != ""
}

// Bridge emulates a push subscription on any Pub/Sub server. It pulls a
// subscription and posts each message to an endpoint as Pub/Sub does. It also
// does what Pub/Sub emulators do not: it counts attempts, and forwards dead
// letters with the attributes that Pub/Sub adds. It keeps a message leased from
// the first push until it is settled: delivered, a dead letter, or returned to
// the subscription. So one Bridge counts all attempts of a message. A new Bridge
// starts at 0. Delivery is at least once and in no order.
type Bridge struct {
	cfg          BridgeConfig
	ctx          context.Context // ends every push under way
	http         *http.Client
	deadLetters  *pubsub.Publisher // nil without a dead-letter topic
	window       *pushWindow
	stop         context.CancelFunc
	done         chan struct{} // closed when receiving has ended
	closeTimeout time.Duration // usualCloseTimeout, or less in a test

	changed   signal
	mu        sync.Mutex
	unsettled int // messages received and neither acknowledged nor given back
}

// StartBridge starts pushing. It fails if the configuration is invalid, or if
// the subscription or the dead-letter topic does not exist. The caller keeps
// the client and must close it after the Bridge. The end of ctx cancels running
// pushes; Close does not.
func StartBridge(ctx context.Context, client *pubsub.Client, cfg BridgeConfig) (*Bridge, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start the bridge: %w", err)
	}
	cfg = cfg.withDefaults()
	sub := &pb.GetSubscriptionRequest{Subscription: cfg.Subscription}
	if _, err := client.SubscriptionAdminClient.GetSubscription(ctx, sub); err != nil {
		return nil, fmt.Errorf("start the bridge: look up %s: %w", cfg.Subscription, err)
	}
	b := &Bridge{
		cfg:          cfg,
		ctx:          ctx,
		http:         pushClient(cfg.Concurrency),
		window:       newPushWindow(cfg.Concurrency),
		done:         make(chan struct{}),
		closeTimeout: usualCloseTimeout,
	}
	if cfg.DeadLetterTopic != "" {
		topic := &pb.GetTopicRequest{Topic: cfg.DeadLetterTopic}
		if _, err := client.TopicAdminClient.GetTopic(ctx, topic); err != nil {
			return nil, fmt.Errorf("start the bridge: look up %s: %w", cfg.DeadLetterTopic, err)
		}
		b.deadLetters = client.Publisher(cfg.DeadLetterTopic)
	}
	subscriber := client.Subscriber(cfg.Subscription)
	subscriber.ReceiveSettings.MaxExtension = maxExtension
	subscriber.ReceiveSettings.MaxDurationPerAckExtension = lease
	subscriber.ReceiveSettings.MaxOutstandingMessages = unsettledMessages
	subscriber.ReceiveSettings.MaxOutstandingBytes = unsettledBytes
	receiving, stop := context.WithCancel(ctx)
	b.stop = stop
	if cfg.Unary {
		go b.pull(receiving, client.SubscriptionAdminClient)
	} else {
		go b.receive(receiving, subscriber)
	}
	return b, nil
}

// pushClient makes a client that keeps a connection for every running push. A
// redirect is a failure, as for Pub/Sub.
func pushClient(connections int) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// receive pulls until ctx ends. The client library retries transient failures.
// receive retries the others too (a deleted subscription, say), because the
// server may return.
func (b *Bridge) receive(ctx context.Context, subscriber *pubsub.Subscriber) {
	defer close(b.done)
	for {
		err := subscriber.Receive(ctx, func(ctx context.Context, m *pubsub.Message) {
			b.settle(ctx, held{m, m.Ack, m.Nack})
		})
		if ctx.Err() != nil {
			return
		}
		b.cfg.Log.Error("pulling failed, trying again", "subscription", b.cfg.Subscription, "error", err)
		if gax.Sleep(ctx, b.cfg.MaxBackoff) != nil {
			return
		}
	}
}

// Close stops receiving, and returns when every received message is settled.
// Running pushes complete. Messages that were not delivered return to the
// subscription at once.
func (b *Bridge) Close() {
	b.stop()
	_ = b.Idle(context.Background()) // no error: this context never ends
	select {
	case <-b.done:
	case <-time.After(b.closeTimeout):
		b.cfg.Log.Warn("Pub/Sub is unreachable and may redeliver unacknowledged messages",
			"subscription", b.cfg.Subscription)
	}
	if b.deadLetters != nil {
		b.deadLetters.Stop()
	}
	b.http.CloseIdleConnections()
}

// Idle returns nil when the Bridge holds no message. It does not know the messages
// that the server has not delivered yet; PubSub.Idle does. The only error is the
// end of ctx.
func (b *Bridge) Idle(ctx context.Context) error {
	return b.changed.await(ctx, "the bridge of "+b.cfg.Subscription+" has settled its messages", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.unsettled == 0
	})
}

// add changes the count of unsettled messages.
func (b *Bridge) add(n int) {
	b.mu.Lock()
	b.unsettled += n
	b.mu.Unlock()
	b.changed.broadcast()
}
