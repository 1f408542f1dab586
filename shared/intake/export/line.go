// Package export is the form of what an app exports of a user, and of a dump of the app:
// lines of JSON, each an object with one member that says what the line is. The first lines
// of an export say who the user is and what their profile was, then comes a line for each
// event of the log that counts, in the order of the log, and the last line says that the
// export is complete. A dump has the events of all users, behind what the app has set. The
// package keeps no data.
//
// A line of an event has the filters that the log counts, so that an import into any
// app restores the event as it was, without the catalog and under the same id.
package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// NewEvent returns the line of a row of the log.
func NewEvent(e affinity.Event, id, original []byte) (api.ExportLine, error) {
	o, err := schema.ParseOriginal(original)
	if err != nil {
		return api.ExportLine{}, err
	}
	l := &api.ExportedEvent{
		Time: e.Time, ID: string(id), ReceivedAt: api.AtMillis(o.ReceivedAt), Index: o.Index,
		UnknownObjects: o.UnknownObjects, LeftOutObjects: o.LeftOutObjects,
		Filters: make([]api.ExportedFilter, len(e.Counts)), Event: o.Event,
	}
	for i, c := range e.Counts {
		l.Filters[i] = api.ExportedFilter{Facet: c.Facet, Value: c.Value, N: c.N}
	}
	return api.ExportLine{Event: l}, nil
}

// Short leaves out of an event what the event itself says: its index and, unless it names
// objects, its filters.
func Short(l *api.ExportedEvent) {
	rules := event.Rules{Now: l.ReceivedAt.Time, AnySize: true}
	e, err := event.Decode(l.Event, rules)
	if err == nil && e.Index == l.Index {
		l.Index = ""
	} else if err != nil { // perhaps it names no index
		rules.Index = l.Index
		e, err = event.Decode(l.Event, rules)
	}
	if err != nil || len(e.ObjectIDs) > 0 || len(e.Filters) != len(l.Filters) {
		return
	}
	for _, f := range e.Filters { // each is there once
		if !slices.Contains(l.Filters, api.ExportedFilter{Facet: f.Facet, Value: f.Value, N: 1}) {
			return
		}
	}
	l.Filters = nil
}

// prefix begins the names of all members of lines. An event may have such a member
// too, which nobody reads: a line of an export has no other.
const prefix = `"export`

// asSent lets events hold what clients may send.
var asSent = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Parse reads a line of an export. own is false if the line is
// a plain event, as a client sends it. The event of the line shares the text's memory.
func Parse(text []byte) (line api.ExportLine, own bool, err error) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte("{"))
	if !ok || !bytes.HasPrefix(bytes.TrimSpace(rest), []byte(prefix)) {
		return api.ExportLine{}, false, nil
	}
	if reason := fault.NotUTF8(text); reason != "" {
		return api.ExportLine{}, true, fault.New(fault.Malformed, "The line of an export is not valid UTF-8: %s", reason)
	}
	d := decoders.Get().(*jsontext.Decoder)
	defer func() {
		d.Reset(nothing)
		decoders.Put(d)
	}()
	d.Reset(bytes.NewBuffer(text), asSent)
	if e := oneEvent(d, text); e != nil {
		return api.ExportLine{Event: e}, true, nil
	}
	d.Reset(bytes.NewBuffer(text), asSent)
	if !oneMember(d) {
		return api.ExportLine{}, false, nil
	}
	return parse(text)
}

func parse(text []byte) (line api.ExportLine, own bool, err error) {
	if err := jsonv2.Unmarshal(text, &line, asSent, jsonv2.RejectUnknownMembers(true)); err != nil {
		return line, true, fault.New(fault.Invalid, "The line of an export cannot be read: %v", err)
	}
	return line, true, nil
}

// decoders are kept for the next lines.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(nothing) }}

var nothing = strings.NewReader("")

// oneEvent reads a line of an event, as almost all lines are, without a second look at its text. It
// returns nil for all others, and for what parse refuses.
func oneEvent(d *jsontext.Decoder, text []byte) *api.ExportedEvent {
	if !next(d, jsontext.KindBeginObject) {
		return nil
	}
	if name, err := d.ReadValue(); err != nil || string(name) != `"exportedEvent"` || !next(d, jsontext.KindBeginObject) {
		return nil
	}
	e := &api.ExportedEvent{}
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if string(name) == `"event"` {
			value, err := d.ReadValue()
			if err != nil {
				return nil
			}
			end := int(d.InputOffset())
			e.Event = text[end-len(value) : end : end]
		} else if of := member(e, string(name)); of == nil || jsonv2.UnmarshalDecode(d, of) != nil {
			return nil
		}
	}
	if !next(d, jsontext.KindEndObject) || !ends(d) {
		return nil
	}
	return e
}

// member returns the place of a member of an event, nil for names that none has.
func member(e *api.ExportedEvent, quoted string) any {
	switch quoted {
	case `"time"`:
		return &e.Time
	case `"id"`:
		return &e.ID
	case `"receivedAt"`:
		return &e.ReceivedAt
	case `"index"`:
		return &e.Index
	case `"unknownObjects"`:
		return &e.UnknownObjects
	case `"leftOutObjects"`:
		return &e.LeftOutObjects
	case `"unresolved"`:
		return &e.Unresolved
	case `"call"`:
		return &e.Call
	case `"purposes"`:
		return &e.Purposes
	case `"filters"`:
		return &e.Filters
	}
	return nil
}

// next reports whether a token of a kind comes next, and reads it.
func next(d *jsontext.Decoder, kind jsontext.Kind) bool {
	token, err := d.ReadToken()
	return err == nil && token.Kind() == kind
}

// ends reports whether the object that a decoder reads ends, and the text with it.
func ends(d *jsontext.Decoder) bool {
	if !next(d, jsontext.KindEndObject) {
		return false
	}
	_, err := d.ReadToken()
	return errors.Is(err, io.EOF)
}

// oneMember reports whether a text is an object of one member.
func oneMember(d *jsontext.Decoder) bool {
	return next(d, jsontext.KindBeginObject) && next(d, jsontext.KindString) && d.SkipValue() == nil && ends(d)
}

const (
	maxObjects = 20 // of an event
	// maxFilters is more than an event of any version counts.
	maxFilters = maxObjects * event.MaxCounted
	maxText    = 100_000 // bytes of a facet, and of a value: those of a record
	few        = 16      // filters: to compare each with the others costs less than a map
)

// validID reports whether a text has the form of the id of an event: 11 characters of base64url.
func validID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(id) == 11
}

// LogEvent returns the row of an exported event that is imported at a time, which is
// that of its receipt. The errors say what is wrong with the line.
func LogEvent(l *api.ExportedEvent, now time.Time) (store.LogEvent, error) {
	if l.Unresolved {
		return store.LogEvent{}, fault.New(fault.Invalid, "An unresolved event can only be imported with receipts=kept")
	}
	row, _, err := logEvent(l, now, now.UnixMilli())
	return row, err
}

// Restored is LogEvent with the time of receipt that the line says, so that a deletion
// of its user since then covers the event. It returns the decoded event too, since the
// row of an unresolved one needs filters.
func Restored(l *api.ExportedEvent, now time.Time) (store.LogEvent, event.Event, error) {
	received := l.ReceivedAt.UnixMilli()
	if received <= 0 || received > now.UnixMilli() {
		return store.LogEvent{}, event.Event{}, fault.New(fault.Invalid,
			"The receipt of a restored event must not be in the future, or before 1970")
	}
	return logEvent(l, now, received)
}

func logEvent(l *api.ExportedEvent, now time.Time, received int64) (store.LogEvent, event.Event, error) {
	e, err := event.Decode(l.Event, event.Rules{Now: now, Ahead: event.MaxAhead, Index: l.Index})
	if err == nil {
		err = check(l, &e, now)
	}
	if err != nil {
		return store.LogEvent{}, e, err
	}
	counts := enrich.Counts(&e, nil)
	if l.Filters != nil {
		counts, err = countsOf(l.Filters)
	}
	if err != nil {
		return store.LogEvent{}, e, err
	}
	named := schema.ObjectsOf(&e)
	original := schema.Original{
		ReceivedAt: received, Index: e.Index, UnknownObjects: l.UnknownObjects, LeftOutObjects: l.LeftOutObjects,
		Event: e.Raw,
	}
	return store.LogEvent{
		User: e.UserToken, Time: l.Time, ID: l.ID, Type: e.Type, Name: e.Name, Index: named.Index, ObjectIDs: named.ObjectIDs,
		Counts: counts, Denied: e.Denied, Receipt: received,
		Original: original.Append(make([]byte, 0, len(e.Raw)+len(e.Index)+64)),
	}, e, nil
}

// check checks an exported event, but for its filters.
func check(l *api.ExportedEvent, e *event.Event, now time.Time) error {
	switch {
	case e.Type == event.InstantSearch:
		return fault.New(fault.Invalid, "An exported event cannot be of type instantsearch")
	case !validID(l.ID):
		return fault.New(fault.Invalid, "The id of an exported event must have 11 characters of base64url")
	case l.Time < event.MinTime || l.Time > now.Add(event.MaxAhead).UnixMilli():
		return fault.New(fault.Invalid, "The time of an exported event must not be in the future, or before 1980")
	case l.UnknownObjects < 0 || l.LeftOutObjects < 0:
		return fault.New(fault.Invalid, "An exported event cannot have fewer than 0 unknown objects")
	}
	return nil
}

// countsOf checks the filters of an exported event. A filter that is there twice would
// count twice.
func countsOf(filters []api.ExportedFilter) ([]affinity.Count, error) {
	if len(filters) > maxFilters {
		return nil, fault.New(fault.Invalid, "An exported event can have at most %d filters", maxFilters)
	}
	counts := make([]affinity.Count, len(filters))
	var seen map[[2]string]bool // of many
	if len(filters) > few {
		seen = make(map[[2]string]bool, len(filters))
	}
	for i, f := range filters {
		of := [2]string{f.Facet, f.Value}
		twice := seen[of]
		if seen == nil {
			twice = slices.ContainsFunc(counts[:i], func(c affinity.Count) bool { return of == [2]string{c.Facet, c.Value} })
		} else {
			seen[of] = true
		}
		if f.Facet == "" || len(f.Facet) > maxText || len(f.Value) > maxText || !utf8.ValidString(f.Facet) ||
			!utf8.ValidString(f.Value) || f.N < 1 || f.N > maxObjects || twice {
			return nil, fault.New(fault.Invalid, "Filter %d of an exported event must have a facet, a number of "+
				"objects from 1 to %d, and be there once", i+1, maxObjects)
		}
		counts[i] = affinity.Count{Facet: f.Facet, Value: f.Value, N: f.N}
	}
	return counts, nil
}

// Refusal returns an error for the lines that an import must not accept, because they say
// that something is missing: a cut, a fault, the header of a dump. It returns nil for all
// others.
func Refusal(l api.ExportLine) error {
	switch {
	case l.Cut != nil:
		return fault.New(fault.Invalid, "The export was cut off here: %.200s", l.Cut.Message)
	case l.App != nil || l.Strategy != nil || l.Settings != nil || l.Feed != nil || l.Segment != nil || l.Object != nil:
		return fault.New(fault.Invalid, "The line is that of a dump: `affinity restore` restores it")
	case l.Fault != nil:
		return fault.New(fault.Invalid, "The export could not read the event %.50s of %d", l.Fault.ID, l.Fault.Time)
	}
	return nil
}

// Encode encodes a line with its end. Records and events stay as the client sent them, but
// for spaces between their tokens.
func Encode(l api.ExportLine) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return nil, fmt.Errorf("encode a line of an export: %w", err)
	}
	return line.Bytes(), nil
}
