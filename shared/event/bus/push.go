package bus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Push is the envelope in which Pub/Sub delivers a message over HTTP.
type Push struct {
	Message struct {
		Data        []byte            `json:"data"`
		Attributes  map[string]string `json:"attributes"`
		MessageID   string            `json:"messageId"`
		PublishTime time.Time         `json:"publishTime"`
	} `json:"message"`
	Subscription string `json:"subscription"`
	// DeliveryAttempt counts from 1; 0 where the subscription has no dead-letter
	// policy.
	DeliveryAttempt int `json:"deliveryAttempt"`
}

// Decode decodes the message, as DecodeMessage does, with the time of its publish.
func (p Push) Decode() (Message, error) {
	m, err := DecodeMessage(p.Message.Data)
	if err == nil && m.PublishedAt == 0 {
		m.PublishedAt = p.Published()
	}
	return m, err
}

// Published returns when Pub/Sub first took the message (ms), or 0 if nobody knows.
func (p Push) Published() int64 {
	if first, err := strconv.ParseInt(p.Message.Attributes[AttrPublished], 10, 64); err == nil && first > 0 {
		return first
	}
	if p.Message.PublishTime.IsZero() {
		return 0
	}
	return max(p.Message.PublishTime.UnixMilli(), 0)
}

// Returns returns how often the message was published again because it may have ended
// processes.
func (p Push) Returns() int {
	n, err := strconv.Atoi(p.Message.Attributes[AttrReturns])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// BuriedAs returns the id that names the message among the dead letters of its app.
func (p Push) BuriedAs() string { return cmp.Or(p.Message.Attributes[AttrBuried], p.Message.MessageID) }

// MaxPush is the largest envelope: a message in base64, and its attributes.
const MaxPush = MaxMessage*4/3 + 1<<20

// DecodePush reads an envelope.
func DecodePush(body []byte) (Push, error) {
	var p Push
	if err := json.Unmarshal(body, &p); err != nil {
		return Push{}, fmt.Errorf("decode push: %w", err)
	}
	if p.Message.MessageID == "" {
		return Push{}, fmt.Errorf("decode push: message.messageId is missing")
	}
	return p, nil
}
