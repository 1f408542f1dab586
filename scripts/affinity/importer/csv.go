package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// table reads the records of a CSV file.
type table struct {
	form    *Form
	reader  *csv.Reader
	columns map[string]int // by field of the event
}

// columnsError says which column of a CSV file is missing.
type columnsError string

func (e columnsError) Error() string { return string(e) }

// newTable reads the line of names. The error is a columnsError if a column is missing.
func newTable(r io.Reader, f *Form) (*table, error) {
	t := &table{form: f, reader: csv.NewReader(r), columns: map[string]int{}}
	t.reader.ReuseRecord, t.reader.LazyQuotes = true, true
	names, err := t.reader.Read()
	if err != nil {
		return nil, fmt.Errorf("read the names of the columns: %w", err)
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
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
			return nil, columnsError(fmt.Sprintf("no column holds %s: name one with --map, such as --map %s=%s; the columns are %s",
				strings.Join(needed, " or "), needed[len(needed)-1], names[0], strings.Join(names, ", ")))
		}
	}
	return t, nil
}

// next returns the next record as an event.
func (t *table) next() (line, error) {
	record, err := t.reader.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return line{number: bad.StartLine, fault: bad.Err.Error()}, nil
	case err != nil:
		return line{}, err
	}
	number, _ := t.reader.FieldPos(0)
	text, err := t.event(record)
	if err != nil {
		return line{number: number, fault: err.Error()}, nil
	}
	return line{number: number, text: text}, nil
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
