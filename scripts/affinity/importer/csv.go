package importer

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// table reads the events of a CSV file.
type table struct {
	form    *Form
	rows    rows
	columns map[string]int // by field of the event
}

// columnsError says what is wrong with the line of names of a CSV file.
type columnsError string

func (e columnsError) Error() string { return string(e) }

// newTable reads the line of names. The error is a columnsError if that is wrong.
func newTable(in *bufio.Reader, f *Form) (*table, error) {
	t := &table{form: f, rows: rows{lines: physical{in: in}}, columns: map[string]int{}}
	head, err := t.rows.next()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the names of the columns: %w", err)
	case head.fault != "" || head.tooLong:
		return nil, columnsError("the line of names cannot be read: " + firstOf(head.fault, "it is too long"))
	}
	names := make([]string, len(head.cells))
	for i := range names {
		names[i] = strings.TrimSpace(head.cells[i])
	}
	t.rows.width = len(names)
	t.rows.whole = t.good
	for _, field := range Fields {
		if column, mapped := f.Columns[field]; mapped {
			if t.columns[field] = slices.Index(names, column); t.columns[field] < 0 {
				return nil, columnsError(fmt.Sprintf("--map %s=%s: the columns are %s", field, column, strings.Join(names, ", ")))
			}
			continue
		}
		at := slices.IndexFunc(names, func(name string) bool { return name == field || fields[name] == field })
		if at >= 0 {
			t.columns[field] = at
		}
	}
	for _, needed := range [][]string{{"eventName", "eventType"}, {"userToken"}, {"filters", "objectIDs"}} {
		if !slices.ContainsFunc(needed, func(field string) bool { _, ok := t.columns[field]; return ok }) {
			return nil, columnsError(fmt.Sprintf("no column holds %s: name one with --map, such as --map %s=%s; the "+
				"columns are %s",
				strings.Join(needed, " or "), needed[len(needed)-1], names[0], strings.Join(names, ", ")))
		}
	}
	return t, nil
}

// next returns the next record as an event.
func (t *table) next() (line, error) {
	found, err := t.rows.next()
	if err != nil {
		return line{}, err
	}
	l := line{number: found.first, fault: found.fault, tooLong: found.tooLong}
	if l.fault == "" && !l.tooLong {
		if l.text, err = t.event(found.cells); err != nil {
			l.fault = err.Error()
		}
	}
	return l, nil
}

// good reports whether cells are an event that the engine takes.
func (t *table) good(cells []string) bool {
	text, err := t.event(cells)
	if err == nil {
		_, err = event.Decode(text, event.Rules{Now: time.Now(), Ahead: event.MaxAhead, History: true, Index: "any"})
	}
	return err == nil
}

func (t *table) event(cells []string) ([]byte, error) {
	cell := func(field string) string {
		if at, ok := t.columns[field]; ok && at < len(cells) {
			return strings.TrimSpace(cells[at])
		}
		return ""
	}
	list := func(field string) []string {
		var all []string
		for part := range strings.SplitSeq(cell(field), "|") {
			if part != "" {
				all = append(all, part)
			}
		}
		return all
	}
	r := record{
		EventType: cell("eventType"), EventName: cell("eventName"), UserToken: cell("userToken"), Index: cell("index"),
		ObjectIDs: list("objectIDs"), Filters: list("filters"), occurredAt: cell("timestamp"), EventID: cell("eventId"),
	}
	if err := t.form.setType(&r); err != nil {
		return nil, err
	}
	if r.EventName == "" {
		r.EventName = r.EventType
	}
	return t.form.finish(r)
}
