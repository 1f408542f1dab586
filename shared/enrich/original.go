package enrich

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/event"
)

// Original is what the log keeps of an event beside its filters.
type Original struct {
	ReceivedAt int64  `json:"receivedAt"` // ms
	Index      string `json:"index"`
	// UnknownObjects is how many of its objects the catalog did not know.
	UnknownObjects int             `json:"unknownObjects"`
	Event          json.RawMessage `json:"event"` // as it was sent
}

// ReadOriginal reads what LogEvents has written. The event is not decoded yet.
func ReadOriginal(b []byte) (Original, error) {
	var o Original
	if err := json.Unmarshal(b, &o); err != nil {
		return Original{}, fmt.Errorf("read the original of an event: %w", err)
	}
	if len(o.Event) == 0 || o.ReceivedAt <= 0 || o.UnknownObjects < 0 {
		return Original{}, errors.New("read the original of an event: it says not what was received, or when")
	}
	return o, nil
}

// Logged decodes the event, which lies in the log at a place.
func (o Original) Logged(user string, ms int64, id string) (bus.Logged, error) {
	e, err := event.Decode(o.Event, event.Rules{Now: time.UnixMilli(o.ReceivedAt), Index: o.Index, AnySize: true})
	if err != nil {
		return bus.Logged{}, fmt.Errorf("decode the original of an event: %w", err)
	}
	return bus.Logged{User: user, Time: ms, ID: id, ReceivedAt: o.ReceivedAt, Event: e}, nil
}
