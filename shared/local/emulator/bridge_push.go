package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/googleapis/gax-go/v2"
)

// push is the body of a wrapped push. Pub/Sub writes two of the names in both
// styles.
type push struct {
	Message         pushMessage `json:"message"`
	Subscription    string      `json:"subscription"`
	DeliveryAttempt int         `json:"deliveryAttempt"`
}

type pushMessage struct {
	Data         []byte            `json:"data,omitempty"`
	Attributes   map[string]string `json:"attributes,omitempty"`
	MessageID    string            `json:"messageId"`
	MessageID2   string            `json:"message_id"`
	PublishTime  string            `json:"publishTime"`
	PublishTime2 string            `json:"publish_time"`
	OrderingKey  string            `json:"orderingKey,omitempty"`
}

// timeFormat is how Pub/Sub writes times.
const timeFormat = "2006-01-02T15:04:05.999Z07:00"

func newPush(m *pubsub.Message, subscription string, attempt int) push {
	published := m.PublishTime.UTC().Format(timeFormat)
	return push{
		Message: pushMessage{
			Data:         m.Data,
			Attributes:   m.Attributes,
			MessageID:    m.ID,
			MessageID2:   m.ID,
			PublishTime:  published,
			PublishTime2: published,
			OrderingKey:  m.OrderingKey,
		},
		Subscription:    subscription,
		DeliveryAttempt: attempt,
	}
}

// held is a message that the Bridge holds, and the two ways to settle it.
type held struct {
	*pubsub.Message
	ack, nack func()
}

// settle pushes a message until it is delivered or a dead letter, or until ctx
// ends and settle returns the message to the subscription. The receiver of the
// message keeps it leased.
func (b *Bridge) settle(ctx context.Context, m held) {
	b.add(1)
	defer b.add(-1)
	backoff := b.cfg.MinBackoff
	for attempt := 1; ; attempt++ {
		err := b.attempt(ctx, m, attempt)
		if err == nil {
			m.ack()
			return
		}
		if ctx.Err() != nil {
			m.nack()
			return
		}
		b.cfg.Log.Warn("push failed", "subscription", b.cfg.Subscription, "message", m.ID, "attempt", attempt, "error", err)
		if b.deadLetters != nil && attempt >= b.cfg.MaxAttempts {
			b.deadLetter(ctx, m, attempt)
			return
		}
		if gax.Sleep(ctx, backoff) != nil {
			m.nack()
			return
		}
		backoff = min(2*backoff, b.cfg.MaxBackoff)
	}
}

// attempt pushes a message once, when the window has room.
func (b *Bridge) attempt(ctx context.Context, m held, attempt int) error {
	round, err := b.window.enter(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(newPush(m.Message, b.cfg.Subscription, attempt))
	if err != nil {
		b.window.leave(round, true)
		return fmt.Errorf("encode push: %w", err)
	}
	err = b.post(body)
	b.window.leave(round, err == nil)
	return err
}

// post sends a push. Only its timeout or the end of the Bridge's context
// cancels it; Close does not.
func (b *Bridge) post(body []byte) error {
	ctx, cancel := context.WithTimeout(b.ctx, b.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.cfg.Endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("push to %s: %w", b.cfg.Endpoint, err)
	}
	maps.Copy(req.Header, b.cfg.Header)
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.http.Do(req)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	answer, err := readAnswer(resp)
	if delivered(resp.StatusCode) {
		return nil // Pub/Sub reads only the status
	}
	return errors.Join(fmt.Errorf("push to %s: answer %s: %s", b.cfg.Endpoint, resp.Status, answer), err)
}

// delivered reports whether a status acknowledges a message for Pub/Sub.
func delivered(status int) bool {
	switch status {
	case http.StatusProcessing, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return true
	}
	return false
}

// readAnswer reads and closes a response's body, so that the client can reuse the
// connection. It returns the beginning of the body.
func readAnswer(resp *http.Response) (string, error) {
	defer resp.Body.Close()
	const maxShown, maxRead = 200, 1 << 20
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxRead))
	return strings.TrimSpace(string(answer[:min(len(answer), maxShown)])), err
}

// deadLetter publishes a message to the dead-letter topic, then acknowledges it.
// It retries until the publish succeeds, so that no message is lost.
func (b *Bridge) deadLetter(ctx context.Context, m held, attempts int) {
	for {
		dead := &pubsub.Message{Data: m.Data, Attributes: b.deadLetterAttributes(m.Message, attempts)}
		// Close cancels neither a push nor this publish.
		id, err := b.deadLetters.Publish(b.ctx, dead).Get(b.ctx)
		if err == nil {
			b.cfg.Log.Error("message is a dead letter", "subscription", b.cfg.Subscription, "message", m.ID, "deadLetter", id)
			m.ack()
			return
		}
		b.cfg.Log.Error("publishing a dead letter failed", "topic", b.cfg.DeadLetterTopic, "message", m.ID, "error", err)
		if gax.Sleep(ctx, b.cfg.MaxBackoff) != nil {
			m.nack()
			return
		}
	}
}

// deadLetterAttributes returns the message's attributes and those that Pub/Sub
// adds when it forwards a dead letter.
func (b *Bridge) deadLetterAttributes(m *pubsub.Message, attempts int) map[string]string {
	name := strings.Split(b.cfg.Subscription, "/")
	attrs := map[string]string{}
	maps.Copy(attrs, m.Attributes)
	attrs["CloudPubSubDeadLetterSourceDeliveryCount"] = strconv.Itoa(attempts)
	attrs["CloudPubSubDeadLetterSourceSubscription"] = name[3]
	attrs["CloudPubSubDeadLetterSourceSubscriptionProject"] = name[1]
	attrs["CloudPubSubDeadLetterSourceTopicPublishTime"] = m.PublishTime.UTC().Format(time.RFC3339Nano)
	return attrs
}
