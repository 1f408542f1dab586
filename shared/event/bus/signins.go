package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// SignIn says that a user has signed in under an anonymous token. Calls of SDKs say it beside or
// without an event. It is evidence as an event with both tokens is, and in no log.
type SignIn struct {
	User      string `json:"userToken"`
	Known     string `json:"authenticatedUserToken"`
	Time      int64  `json:"timestamp"` // ms
	MessageID string `json:"messageId,omitempty"`
}

// signIns is the body of a message of kind SignedIn.
type signIns struct {
	SignIns []SignIn `json:"signIns"`
}

// NewSignIns returns a message of sign-ins, which came with a key, named by its ID, whose evidence has one strength.
func NewSignIns(app string, received time.Time, evidence Evidence, key string, all []SignIn) (Message, error) {
	body, err := json.Marshal(signIns{all})
	if err != nil {
		return Message{}, fmt.Errorf("encode sign-ins: %w", err)
	}
	return Message{Kind: SignedIn, App: app, ReceivedAt: received.UnixMilli(), Evidence: evidence, Key: key,
		Resolved: true, Body: body}, nil
}

// SignIns decodes a message of sign-ins.
func (m Message) SignIns() ([]SignIn, error) {
	var body signIns
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return nil, fmt.Errorf("decode sign-ins of message: %w", err)
	}
	if len(body.SignIns) == 0 {
		return nil, errors.New("decode sign-ins of message: it holds none")
	}
	return body.SignIns, nil
}
