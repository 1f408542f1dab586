package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/event"
)

// Form says how the events of a file are written. The zero Form takes events as the engine
// imports them, events with names such as user_token, and track calls of Segment and
// RudderStack, as objects of JSON; and tables whose columns have such names.
type Form struct {
	// Delimiter separates the columns of a table. 0: it is found in the line of names.
	Delimiter byte
	// Columns are, by the field of the event (see Fields), the columns of a table, or the
	// paths in objects of JSON (see path). A field without an entry is where its name is, or its name
	// with underscores. With an entry, nothing of an object but its Fields goes in.
	Columns map[string]string
	// Types are types of events (see EventTypes) by the name that the file has for them, and
	// by AnyKind.
	Types map[string]string
	// HashTokens says that the user tokens are those that event.HashToken returns for the
	// ids of the file.
	HashTokens bool
	// Shift is added to each timestamp. With it, Now is the time of reading: a
	// timestamp that lies ahead of it is refused as it is written, not as it is shifted.
	Shift time.Duration
	Now   time.Time

	parsed paths // of Columns
}

// Fields are the fields of an event that a column or a path can hold. A column of several
// objects or filters separates them by "|".
var Fields = []string{"eventType", "eventName", "userToken", "authenticatedUserToken", "index", "objectIDs", "filters",
	"timestamp", "eventId"}

// fields are the names with underscores.
var fields = map[string]string{
	"event_type": "eventType", "event_name": "eventName", "user_token": "userToken", "index_name": "index",
	"object_ids": "objectIDs", "object_id": "objectIDs", "event_id": "eventId",
	"authenticated_user_token": "authenticatedUserToken",
}

// signs are what an object with names of its own holds.
var signs = [][]byte{[]byte(`"event_type"`), []byte(`"event_name"`), []byte(`"user_token"`),
	[]byte(`"object_ids"`), []byte(`"object_id"`), []byte(`"app_id"`), []byte(`"event_id"`),
	[]byte(`"authenticated_user_token"`)}

// members are those of an object of JSON.
type members map[string]json.RawMessage

// convert returns the events of an object, one each, in the form of the engine. It returns
// what is none of its forms as it is: the engine says what is wrong with that.
func (f *Form) convert(text []byte) ([][]byte, error) {
	var e members
	if text[0] != '{' || bytes.HasPrefix(text, []byte(`{"export`)) || !f.concerns(text) ||
		json.Unmarshal(text, &e) != nil {
		return [][]byte{text}, nil
	}
	var kind string
	if _ = json.Unmarshal(e["type"], &kind); kind == track.Track && e["event"] != nil {
		return f.track(text)
	}
	for name, field := range fields {
		if value, ok := e[name]; ok {
			delete(e, name)
			e[field] = value
		}
	}
	delete(e, "app_id")
	if len(f.Columns) > 0 {
		if err := f.mapped(text, e); err != nil {
			return nil, err
		}
	}
	e.unify()
	if f.HashTokens {
		e.hash("userToken")
		e.hash("authenticatedUserToken")
	}
	if err := f.retype(e); err != nil {
		return nil, err
	}
	if err := f.retime(e); err != nil {
		return nil, err
	}
	if len(f.Columns) > 0 {
		return e.parts()
	}
	line, err := json.Marshal(e)
	return [][]byte{line}, err
}

// concerns reports whether an object may be of another form than that of the engine. It is
// quick, for nearly all are of that.
func (f *Form) concerns(text []byte) bool {
	if f.Shift != 0 || f.HashTokens || len(f.Types) > 0 || len(f.Columns) > 0 {
		return true
	}
	underscored := bytes.IndexByte(text, '_') >= 0 && slices.ContainsFunc(signs, func(sign []byte) bool {
		return bytes.Contains(text, sign)
	})
	if underscored || bytes.Contains(text, []byte(`"track"`)) {
		return true
	}
	if !startsWith(valueOf(text, `"eventType"`), `"view"`, `"click"`, `"conversion"`, `"instantsearch"`) ||
		isNumber(valueOf(text, `"userToken"`)) {
		return true
	}
	ids, list := bytes.CutPrefix(valueOf(text, `"objectIDs"`), []byte("["))
	if !list {
		return len(ids) > 0
	}
	for first := true; first || len(ids) > 0; first = false {
		if ids = bytes.TrimLeft(ids, " \t,"); isNumber(ids) {
			return true
		}
		end := bytes.IndexAny(ids, ",]")
		if end < 0 || ids[end] == ']' {
			return false
		}
		ids = ids[end:]
	}
	return false
}

func startsWith(text []byte, any ...string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return bytes.HasPrefix(text, []byte(s)) })
}

func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9')
}

// mapped replaces the members of an object by the fields of an event.
func (f *Form) mapped(text []byte, e members) error {
	for name := range e {
		if !slices.Contains(Fields, name) {
			delete(e, name)
		}
	}
	var object members
	_ = json.Unmarshal(text, &object) // it has been read once
	for field, p := range f.parsed {
		values := p.of(object)
		delete(e, field)
		switch {
		case len(values) == 0 && field == "userToken":
			return fmt.Errorf("userToken is missing: --map %s leads to nothing here", cli.ShellWord(field+"="+p.text))
		case len(values) == 0:
		case slices.ContainsFunc(values, func(v json.RawMessage) bool { return v[0] == '{' }):
			return fmt.Errorf("--map %s leads to an object: go on to one of its members, as in items[].item_id",
				cli.ShellWord(field+"="+p.text))
		case field == "objectIDs" || field == "filters":
			e[field], _ = json.Marshal(values)
		default:
			e[field] = values[0]
		}
	}
	return nil
}

// unify makes texts of ids that are numbers, and lists of ids that stand alone.
func (e members) unify() {
	for _, field := range []string{"userToken", "authenticatedUserToken", "eventId", "index"} {
		if isNumber(e[field]) {
			e[field] = idValue(e[field])
		}
	}
	ids := e["objectIDs"]
	if isNumber(ids) || len(ids) > 0 && ids[0] == '"' {
		e["objectIDs"] = slices.Concat([]byte("["), idValue(ids), []byte("]"))
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(ids, &list) != nil {
		return // the engine says what is wrong with it
	}
	for i := range list {
		list[i] = idValue(list[i])
	}
	e["objectIDs"], _ = json.Marshal(list)
}

// idValue makes a text of an id that is a number.
func idValue(value json.RawMessage) json.RawMessage {
	if isNumber(value) {
		return strconv.AppendQuote(nil, wholeID(string(value)))
	}
	return value
}

// hash replaces an id by its hash.
func (e members) hash(field string) {
	if id, ok := idText(e[field]); ok && id != "" {
		e[field] = strconv.AppendQuote(nil, event.HashToken(id))
	}
}

// parts returns the event as events of as many objects as one may name.
func (e members) parts() (lines [][]byte, err error) {
	var ids []json.RawMessage
	_ = json.Unmarshal(e["objectIDs"], &ids) // the engine says what is wrong with it
	for begin := 0; begin == 0 || begin < len(ids); begin += api.MaxEventTargets {
		if len(ids) > api.MaxEventTargets {
			e["objectIDs"], _ = json.Marshal(ids[begin:min(begin+api.MaxEventTargets, len(ids))])
		}
		line, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// retype sets the type of an event whose type is a name of the file's own.
func (f *Form) retype(e members) error {
	var was record
	_ = json.Unmarshal(e["eventType"], &was.EventType) // the engine says what is wrong with it
	_ = json.Unmarshal(e["eventName"], &was.EventName)
	_ = json.Unmarshal(e["objectIDs"], &was.ObjectIDs)
	_ = json.Unmarshal(e["filters"], &was.Filters)
	r := was
	if err := f.setType(&r); err != nil {
		return err
	}
	if r.EventType != was.EventType {
		e["eventType"], _ = json.Marshal(r.EventType) // a text is never refused
	}
	if r.EventName != was.EventName {
		e["eventName"], _ = json.Marshal(r.EventName)
	}
	return nil
}

// setType completes the type and the name of an event from each other. The error is
// errSkipped or a *kindError.
func (f *Form) setType(r *record) error {
	other, own := f.Types[AnyKind], firstOf(f.Types[r.EventName], f.Types[r.EventType])
	switch {
	case knownType(r.EventType) && own == "":
	case own != "":
		r.EventName, r.EventType = firstOf(r.EventName, r.EventType), own
	case r.EventType == "" && r.EventName == "":
		return nil // the engine says that they are missing
	case r.EventType == "" && knownType(r.EventName):
		r.EventType = r.EventName
	case other != "":
		r.EventName, r.EventType = firstOf(r.EventName, r.EventType), other
	default:
		return &kindError{firstOf(r.EventType, r.EventName), len(r.ObjectIDs)+len(r.Filters) == 0}
	}
	if r.EventType == Skip {
		return errSkipped
	}
	return nil
}

func knownType(name string) bool {
	return name == api.EventView || name == api.EventClick || name == api.EventConversion ||
		name == api.EventInstantSearch
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
func (f *Form) retime(e members) error {
	text := event.TimeText(e["timestamp"])
	if f.Shift == 0 || text == "" {
		return nil
	}
	ms, err := event.ParseTime(text)
	if err == nil {
		ms, err = f.shifted(ms)
	}
	e["timestamp"] = strconv.AppendInt(nil, ms, 10)
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
	call.EventType = firstOf(f.Types[call.Name], call.EventType, f.Types[AnyKind])
	switch {
	case call.EventType == Skip:
		return nil, errSkipped
	case call.EventType == "" && call.Name != "":
		return nil, &kindError{call.Name, len(call.ObjectIDs) == 0}
	case f.HashTokens && call.UserToken != "":
		call.UserToken = event.HashToken(call.UserToken)
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
