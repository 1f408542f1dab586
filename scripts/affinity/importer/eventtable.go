package importer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// record is an event on its way to the form of the engine.
type record struct {
	EventType  string          `json:"eventType"`
	EventName  string          `json:"eventName"`
	UserToken  string          `json:"userToken"`
	Known      string          `json:"authenticatedUserToken,omitempty"`
	Index      string          `json:"index,omitempty"`
	ObjectIDs  []string        `json:"objectIDs,omitempty"`
	Filters    []string        `json:"filters,omitempty"`
	Timestamp  json.RawMessage `json:"timestamp,omitempty"`
	EventID    string          `json:"eventId,omitempty"`
	occurredAt string          // instead of Timestamp, as the file has it
}

// eventTable reads the events of a table.
type eventTable struct {
	form    *Form
	rows    *rows
	columns map[string]int // by field of the event
}

func (f *Form) layout() (byte, func(string) bool) {
	return f.Delimiter, func(name string) bool {
		if slices.Contains(Fields, name) || fields[name] != "" {
			return true
		}
		for _, column := range f.Columns {
			if column == name {
				return true
			}
		}
		return false
	}
}

func (f *Form) prepare() (err error) {
	f.parsed, err = parsePaths(f.Columns)
	return err
}

func (f *Form) table(r *rows, names []string) (func() (line, error), error) {
	found, err := columns(names, Fields, f.Columns, func(name, field string) bool {
		return name == field || fields[name] == field
	})
	if err != nil {
		return nil, err
	}
	for _, needed := range [][]string{{"eventName", "eventType"}, {"userToken"}, {"filters", "objectIDs"}} {
		if !slices.ContainsFunc(needed, func(field string) bool { _, ok := found[field]; return ok }) {
			return nil, missing(strings.Join(needed, " or "), needed[len(needed)-1], names)
		}
	}
	t := &eventTable{f, r, found}
	r.whole = t.good
	return t.next, nil
}

// next returns the next record as an event.
func (t *eventTable) next() (line, error) {
	found, err := t.rows.next()
	if err != nil {
		return line{}, err
	}
	l := line{number: found.first, fault: found.fault, tooLong: found.tooLong}
	if l.fault == "" && !l.tooLong {
		if l.text, err = t.event(found.cells); err != nil {
			l = l.failed(err)
		}
	}
	return l, nil
}

// good reports whether cells are an event that the engine takes.
func (t *eventTable) good(cells []string) bool {
	text, err := t.event(cells)
	if err == nil {
		_, err = event.Decode(text, event.Rules{Now: time.Now(), Ahead: event.MaxAhead, History: true, Index: "any"})
	}
	return err == nil
}

func (t *eventTable) event(cells []string) ([]byte, error) {
	cell := func(field string) string {
		if at, ok := t.columns[field]; ok && at < len(cells) {
			return strings.TrimSpace(cells[at])
		}
		return ""
	}
	list := func(field string, text func(string) string) []string {
		var all []string
		for part := range strings.SplitSeq(cell(field), "|") {
			if part != "" {
				all = append(all, text(part))
			}
		}
		return all
	}
	r := record{
		EventType: cell("eventType"), EventName: cell("eventName"), UserToken: wholeID(cell("userToken")),
		Known: wholeID(cell("authenticatedUserToken")), Index: cell("index"), ObjectIDs: list("objectIDs", wholeID),
		Filters: list("filters", strings.Clone), occurredAt: cell("timestamp"), EventID: cell("eventId"),
	}
	if err := t.form.setType(&r); err != nil {
		return nil, err
	}
	r.EventName = firstOf(r.EventName, r.EventType)
	for _, token := range []*string{&r.UserToken, &r.Known} {
		if t.form.HashTokens && *token != "" {
			*token = event.HashToken(*token)
		}
	}
	if r.occurredAt != "" {
		ms, err := event.ParseTime(r.occurredAt)
		if err == nil {
			ms, err = t.form.shifted(ms)
		}
		if err != nil {
			return nil, err
		}
		r.Timestamp = strconv.AppendInt(nil, ms, 10)
	}
	return json.Marshal(r)
}
