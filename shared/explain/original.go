package explain

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
)

// original is what the log keeps of an event beside its filters.
type original struct {
	ReceivedAt     int64           `json:"receivedAt"` // ms
	Index          string          `json:"index"`
	UnknownObjects int             `json:"unknownObjects"`
	Event          json.RawMessage `json:"event"` // as it was sent
}

func readOriginal(b []byte) (original, error) {
	var o original
	if err := json.Unmarshal(b, &o); err != nil {
		return original{}, fmt.Errorf("read the original of an event: %w", err)
	}
	return o, nil
}

// decode reads the event as it was read when it was received. It says false of
// one that cannot be.
func (o original) decode() (event.Event, bool) {
	if len(o.Event) == 0 {
		return event.Event{}, false
	}
	e, err := event.Decode(o.Event, event.Rules{Now: time.UnixMilli(o.ReceivedAt), Index: o.Index, AnySize: true})
	return e, err == nil
}

// pair is the event's type and name, and whether they can be read.
func (o original) pair() (affinity.Pair, bool) {
	e, ok := o.decode()
	return affinity.Pair{Type: string(e.Type), Name: e.Name}, ok
}
