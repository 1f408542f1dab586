package bus

import (
	"encoding/json"
	"fmt"
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
