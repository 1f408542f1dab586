package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// Original is the value of the cell m:event, which rows of both schemas have:
// the event as the app sent it, with the values that Decode needs. The value is
// JSON:
//
//	{"receivedAt":1700000000000,"index":"products","unknownObjects":2,"event":{...}}
type Original struct {
	ReceivedAt int64  `json:"receivedAt"` // ms
	Index      string `json:"index"`      // of an event that does not name one
	// UnknownObjects is how many of the event's objects the catalog did not
	// know. The value has the member only if the number is above 0.
	UnknownObjects int `json:"unknownObjects"`
	// LeftOutObjects is how many of the event's objects do not count, because all
	// of them have too many filters: see package enrich. It is written like
	// UnknownObjects. Releases that do not know it ignore it.
	LeftOutObjects int `json:"leftOutObjects"`
	// Bands is the version of the index's numeric bands under which the filters of the
	// event's objects were derived. It is written like UnknownObjects. Releases that do
	// not know it ignore it.
	Bands int64           `json:"numericBands"`
	Event json.RawMessage `json:"event"` // as the app sent it
}

// Append appends the value of the cell.
func (o Original) Append(dst []byte) []byte {
	index, _ := json.Marshal(o.Index)
	dst = strconv.AppendInt(append(dst, `{"receivedAt":`...), o.ReceivedAt, 10)
	dst = append(append(dst, `,"index":`...), index...)
	if o.UnknownObjects > 0 {
		dst = strconv.AppendInt(append(dst, `,"unknownObjects":`...), int64(o.UnknownObjects), 10)
	}
	if o.LeftOutObjects > 0 {
		dst = strconv.AppendInt(append(dst, `,"leftOutObjects":`...), int64(o.LeftOutObjects), 10)
	}
	if o.Bands > 0 {
		dst = strconv.AppendInt(append(dst, `,"numericBands":`...), o.Bands, 10)
	}
	dst = append(dst, `,"event":`...)
	return append(append(dst, o.Event...), '}')
}

// ParseOriginal reads a value that Append made. It does not decode the event. A
// value is damaged if it is not JSON, or lacks the event or the time of its
// receipt. For a damaged value ParseOriginal returns an error and the members
// that it could read.
func ParseOriginal(b []byte) (Original, error) {
	var o Original
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("read the original of an event: %w", err)
	}
	if len(o.Event) == 0 || o.ReceivedAt <= 0 || o.UnknownObjects < 0 {
		return o, errors.New("read the original of an event: the event or the time of its receipt is missing")
	}
	return o, nil
}

// Decode decodes the event as ingest did when it received the event.
func (o Original) Decode() (event.Event, error) {
	e, err := event.Decode(o.Event, event.Rules{Now: time.UnixMilli(o.ReceivedAt), Index: o.Index, AnySize: true})
	if err != nil {
		return event.Event{}, fmt.Errorf("decode the original of an event: %w", err)
	}
	return e, nil
}

// Objects returns the kind of the event and the objects that it names, as the
// cell m:o holds them.
func (o Original) Objects() (Objects, error) {
	e, err := o.Decode()
	if err != nil {
		return Objects{}, err
	}
	return ObjectsOf(&e), nil
}
