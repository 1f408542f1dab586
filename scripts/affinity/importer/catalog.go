package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ObjectForm says how the objects of a file are written. The zero ObjectForm takes objects
// of JSON as the engine does, and tables whose columns have the names of attributes. An
// empty cell is no attribute.
type ObjectForm struct {
	// Delimiter separates the columns of a table. 0: it is found in the line of names.
	Delimiter byte
	// Columns are, by attribute, the columns of a table, or the paths in objects of JSON. A
	// column or a member without an entry has the name of its attribute. An attribute that
	// ends with [] is a list, whose cells separate its values by "|".
	Columns map[string]string

	parsed  paths // of Columns
	numbers []*numbers
}

// ofList ends the name of an attribute whose values are lists.
const ofList = "[]"

func (f *ObjectForm) layout() (byte, func(string) bool) {
	return f.Delimiter, func(name string) bool {
		if isObjectID(name) {
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

func isObjectID(name string) bool { return name == "objectID" || name == "object_id" }

func (f *ObjectForm) prepare() (err error) {
	f.parsed, err = parsePaths(f.Columns)
	return err
}

// convert renames attributes of an object of JSON.
func (f *ObjectForm) convert(text []byte) ([][]byte, error) {
	id := valueOf(text, `"objectID"`)
	fraction := isNumber(id) && bytes.HasPrefix(bytes.TrimLeft(id, "0123456789"), []byte("."))
	var object members
	if len(f.Columns) == 0 && !fraction || json.Unmarshal(text, &object) != nil || object == nil {
		return [][]byte{text}, nil
	}
	found := members{}
	for attribute, p := range f.parsed {
		values := p.of(object)
		name, isList := strings.CutSuffix(attribute, ofList)
		switch {
		case len(values) == 0:
		case isList || len(values) > 1:
			found[name], _ = json.Marshal(values)
		default:
			found[name] = values[0]
		}
	}
	for _, p := range f.parsed {
		delete(object, p.text)
	}
	maps.Copy(object, found)
	if id, ok := object["objectID"]; ok {
		object["objectID"] = idValue(id)
	}
	line, err := json.Marshal(object)
	return [][]byte{line}, err
}

// objectTable reads the objects of a table.
type objectTable struct {
	rows    *rows
	columns []objectColumn
	ahead   []line     // rows that were read to see what columns hold
	cells   [][]string // of them
	err     error      // behind them
	begun   bool
}

// objectColumn is a column that becomes an attribute.
type objectColumn struct {
	at      int
	name    []byte // in quotes
	id      bool
	list    bool
	numbers *numbers
}

func (f *ObjectForm) table(r *rows, names []string) (func() (line, error), error) {
	mapped := map[string][]string{} // attributes by column
	for attribute, column := range f.Columns {
		if !slices.Contains(names, column) {
			return nil, columnsError(fmt.Sprintf("--map %s=%s: %s", attribute, column, listed(names)))
		}
		mapped[column] = append(mapped[column], attribute)
	}
	t := &objectTable{rows: r}
	seen := map[string]bool{}
	_, given := f.Columns["objectID"]
	for at, name := range names {
		attributes := slices.Sorted(slices.Values(mapped[name]))
		switch {
		case len(attributes) > 0:
		case !given && isObjectID(name):
			attributes = []string{"objectID"}
		case name != "":
			attributes = []string{name}
		}
		for _, attribute := range attributes {
			c, err := f.column(at, name, attribute)
			if err != nil {
				return nil, err
			}
			if seen[string(c.name)] {
				return nil, columnsError(fmt.Sprintf("two columns are the attribute %s: give one another name with --map; %s",
					c.name, listed(names)))
			}
			seen[string(c.name)], t.columns = true, append(t.columns, c)
		}
	}
	if !seen[`"objectID"`] {
		return nil, fmt.Errorf("%w. A catalog is a table, or objects of JSON, one a line, each with an objectID",
			missing("objectID", "objectID", names))
	}
	return t.next, nil
}

// column returns a column that becomes an attribute.
func (f *ObjectForm) column(at int, name, attribute string) (objectColumn, error) {
	attribute, isList := strings.CutSuffix(attribute, ofList)
	quoted, err := jsontext.AppendQuote(nil, attribute)
	if err != nil {
		return objectColumn{}, columnsError(err.Error())
	}
	c := objectColumn{at, quoted, attribute == "objectID", isList, &numbers{column: name}}
	if !c.id {
		f.numbers = append(f.numbers, c.numbers)
	}
	return c, nil
}

func (f *ObjectForm) notes() []string {
	var notes []string
	for _, n := range f.numbers {
		notes = append(notes, n.notes()...)
	}
	return notes
}

// Rows that are read to see which columns hold numbers.
const (
	sampleRows  = 1000
	sampleBytes = 1 << 20
)

// next returns the next record as an object.
func (t *objectTable) next() (line, error) {
	if !t.begun {
		t.begun = true
		t.sample()
	}
	if len(t.ahead) > 0 {
		l, cells := t.ahead[0], t.cells[0]
		t.ahead, t.cells = t.ahead[1:], t.cells[1:]
		return t.object(l, cells), nil
	}
	if t.err != nil {
		return line{}, t.err
	}
	l, cells, err := t.read()
	if err != nil {
		return l, err
	}
	return t.object(l, cells), nil
}

func (t *objectTable) read() (line, []string, error) {
	found, err := t.rows.next()
	return line{number: found.first, fault: found.fault, tooLong: found.tooLong}, found.cells, err
}

// sample reads the first rows.
func (t *objectTable) sample() {
	for size := 0; len(t.ahead) < sampleRows && size < sampleBytes; {
		l, cells, err := t.read()
		if err != nil {
			t.err = err
			break
		}
		t.ahead, t.cells = append(t.ahead, l), append(t.cells, slices.Clone(cells))
		if l.reason() != "" {
			continue
		}
		for _, c := range t.columns {
			size += len(cells[c.at])
			for _, value := range c.values(cells) {
				c.numbers.see(value)
			}
		}
	}
	for _, c := range t.columns {
		c.numbers.decide()
	}
}

// values returns the values of a row.
func (c objectColumn) values(cells []string) []string {
	if !c.list {
		return []string{strings.TrimSpace(cells[c.at])}
	}
	values := strings.Split(cells[c.at], "|")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// object makes an object of a good row.
func (t *objectTable) object(l line, cells []string) line {
	if l.reason() != "" {
		return l
	}
	text := []byte("{")
	for _, c := range t.columns {
		values := c.values(cells)
		if len(values) == 0 || values[0] == "" {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(text, c.name...), ':')
		if c.list {
			text = append(text, '[')
		}
		for i, value := range values {
			if i > 0 {
				text = append(text, ',')
			}
			if c.id {
				text, _ = jsontext.AppendQuote(text, wholeID(value)) // rows are UTF-8
			} else {
				text = c.numbers.append(text, value, l.number)
			}
		}
		if c.list {
			text = append(text, ']')
		}
	}
	l.text = append(text, '}')
	return l
}
