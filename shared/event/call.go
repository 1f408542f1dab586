package event

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// A call of an SDK is one event, however often the SDK delivers it: its messageId says so,
// which is the eventId of its events. The SDK may not know when the call happened, or its
// clock may be wrong, so each delivery proposes a time of its own. The engine keeps the
// time of the first delivery under the ID of the call (store.Calls), and gives it to the
// events of all later ones.

// canonicalCall begins the canonical form of a call. It must differ from the versions of
// events, and must not change while calls are remembered.
const canonicalCall = 'C'

// CallID returns the identity of an event of a call within its user's calls: 64 bits of a
// SHA-256 over its content without the time, as 11 characters of base64url. The content
// has the messageId. It is empty for an event without one.
func (e *Event) CallID() string {
	if e.details == nil || e.details.eventID == "" {
		return ""
	}
	timeless := *e
	timeless.Time, timeless.Received = 0, false
	var space [512]byte
	sum := sha256.Sum256(timeless.appendCanonical(append(space[:0], canonicalCall)))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// At returns the event with another time (ms), also in its JSON.
func (e *Event) At(ms int64) (Event, error) {
	if e.Time == ms && !e.Received {
		return *e, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.Raw, &members); err != nil {
		return Event{}, fmt.Errorf("move an event to %s: %w", FormatTime(ms), err)
	}
	members["timestamp"] = strconv.AppendInt(nil, ms, 10)
	raw, err := json.Marshal(members)
	if err != nil {
		return Event{}, fmt.Errorf("move an event to %s: %w", FormatTime(ms), err)
	}
	moved := *e
	moved.Time, moved.Received, moved.Raw = ms, false, raw
	return moved, nil
}
