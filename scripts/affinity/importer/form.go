package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/event"
)

// Form says how the events of a file are written. The zero Form takes lines, or a list,
// of JSON objects: events as the engine imports them, events with names such as
// user_token, and track calls of Segment and RudderStack.
type Form struct {
	// CSV says that the file is CSV with a line of names.
	CSV bool
	// Columns are the columns of a CSV file by the field of the event: see Fields. A
	// field without an entry is in the column of its name, or of its name with
	// underscores, if there is one.
	Columns map[string]string
	// Types are types of events by the name that the file has for them.
	Types map[string]string
	// Shift is added to each timestamp. With it, Now is the time of reading: a
	// timestamp that lies ahead of it is refused as it is written, not as it is shifted.
	Shift time.Duration
	Now   time.Time
}

// Fields are the fields of an event that a column can hold. A column of several objects
// or filters separates them by "|".
var Fields = []string{"eventType", "eventName", "userToken", "index", "objectIDs", "filters", "timestamp", "eventId"}

// fields are the names with underscores.
var fields = map[string]string{
	"event_type": "eventType", "event_name": "eventName", "user_token": "userToken", "index_name": "index",
	"object_ids": "objectIDs", "object_id": "objectIDs", "filters": "filters", "timestamp": "timestamp",
	"event_id": "eventId",
}

// record is an event on its way to the form of the engine.
type record struct {
	EventType  string          `json:"eventType"`
	EventName  string          `json:"eventName"`
	UserToken  string          `json:"userToken"`
	Index      string          `json:"index,omitempty"`
	ObjectIDs  []string        `json:"objectIDs,omitempty"`
	Filters    []string        `json:"filters,omitempty"`
	Timestamp  json.RawMessage `json:"timestamp,omitempty"`
	EventID    string          `json:"eventId,omitempty"`
	occurredAt string          // instead of Timestamp, as the file has it
}

// convert returns the events of a line, one each, in the form of the engine. The error
// says what is wrong with the line. It returns a line that is none of its forms as it is:
// the engine says what is wrong with that.
func (f *Form) convert(text []byte) ([][]byte, error) {
	var members map[string]json.RawMessage
	if text[0] != '{' || json.Unmarshal(text, &members) != nil {
		return [][]byte{text}, nil
	}
	if _, own := members["event"]; own && len(members) == 1 {
		return [][]byte{text}, nil // a line of an export
	}
	var kind string
	if _ = json.Unmarshal(members["type"], &kind); kind == track.Track && members["event"] != nil {
		return f.track(text)
	}
	for name, field := range fields {
		if value, ok := members[name]; ok && name != field {
			delete(members, name)
			members[field] = value
		}
	}
	delete(members, "app_id")
	if ids := bytes.TrimSpace(members["objectIDs"]); len(ids) > 0 && ids[0] == '"' { // one object
		members["objectIDs"] = append(append(json.RawMessage("["), ids...), ']')
	}
	if err := f.retype(members); err != nil {
		return nil, err
	}
	if err := f.retime(members); err != nil {
		return nil, err
	}
	event, err := json.Marshal(members)
	return [][]byte{event}, err
}

// concerns reports whether a line may be of another form than that of the engine. It is
// quick, for nearly all lines are.
func (f *Form) concerns(text []byte) bool {
	if f.Shift != 0 || len(f.Types) > 0 {
		return true
	}
	for _, sign := range []string{`"track"`, `"event_type"`, `"event_name"`, `"user_token"`, `"object_ids"`,
		`"object_id"`, `"app_id"`, `"event_id"`} {
		if bytes.Contains(text, []byte(sign)) {
			return true
		}
	}
	return false
}

// retype sets the type of an event whose type is a name of the file's own.
func (f *Form) retype(members map[string]json.RawMessage) error {
	var r record
	_ = json.Unmarshal(members["eventType"], &r.EventType) // the engine says what is wrong with it
	_ = json.Unmarshal(members["eventName"], &r.EventName)
	was := r
	if err := f.setType(&r); err != nil {
		return err
	}
	for name, value := range map[string][2]string{"eventType": {was.EventType, r.EventType},
		"eventName": {was.EventName, r.EventName}} {
		if value[0] != value[1] {
			members[name], _ = json.Marshal(value[1]) // a text is never refused
		}
	}
	return nil
}

// setType completes the type and the name of an event from each other.
func (f *Form) setType(r *record) error {
	switch {
	case knownType(r.EventType) && (f.Types[r.EventName] == "" || r.EventName == ""):
	case f.Types[r.EventName] != "":
		r.EventType = f.Types[r.EventName]
	case f.Types[r.EventType] != "":
		r.EventName, r.EventType = firstOf(r.EventName, r.EventType), f.Types[r.EventType]
	case r.EventType == "" && r.EventName == "":
		return nil // the engine says that they are missing
	case r.EventType == "" && knownType(r.EventName):
		r.EventType = r.EventName
	default:
		name := firstOf(r.EventType, r.EventName)
		return fmt.Errorf("%q is no type of event: say which it is, such as --event %q", name, name+"=click")
	}
	return nil
}

func knownType(name string) bool {
	return name == string(event.View) || name == string(event.Click) || name == string(event.Conversion)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// retime shifts the timestamp. Without a shift, the engine reads it.
func (f *Form) retime(members map[string]json.RawMessage) error {
	text := event.TimeText(members["timestamp"])
	if f.Shift == 0 || text == "" {
		return nil
	}
	ms, err := event.ParseTime(text)
	if err == nil {
		ms, err = f.shifted(ms)
	}
	members["timestamp"] = strconv.AppendInt(nil, ms, 10)
	return err
}

// shifted shifts a time in ms.
func (f *Form) shifted(ms int64) (int64, error) {
	if f.Shift != 0 && time.UnixMilli(ms).Sub(f.Now) > event.MaxAhead {
		return 0, event.ErrTimeAhead
	}
	return ms + f.Shift.Milliseconds(), nil
}

// track converts a track call of Segment, which RudderStack shares. One with many products
// is several events.
func (f *Form) track(text []byte) ([][]byte, error) {
	call, err := track.Parse(text)
	if err != nil {
		return nil, err
	}
	call = call.Typed(f.Types) // by the name as it is written
	if own := f.Types[call.Name]; own != "" {
		call.EventType = own
	}
	if call.EventType == "" && call.Name != "" {
		like := ""
		if closest, _ := track.Closest(call.Name, f.Types); closest != "" {
			like = fmt.Sprintf(" (the closest name with one is %q)", closest)
		}
		return nil, fmt.Errorf("the track call %q has no type of event%s: say which it is, such as --event %q", call.Name, like,
			call.Name+"=click")
	}
	events, err := call.Events()
	if err != nil {
		return nil, err
	}
	lines := make([][]byte, len(events))
	for i := range events {
		if events[i].Timestamp != 0 { // it has one
			if events[i].Timestamp, err = f.shifted(events[i].Timestamp); err != nil {
				return nil, err
			}
		}
		if lines[i], err = json.Marshal(events[i]); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// finish encodes an event.
func (f *Form) finish(r record) ([]byte, error) {
	if r.occurredAt != "" {
		ms, err := event.ParseTime(r.occurredAt)
		if err == nil {
			ms, err = f.shifted(ms)
		}
		if err != nil {
			return nil, err
		}
		r.Timestamp = strconv.AppendInt(nil, ms, 10)
	}
	return json.Marshal(r)
}
