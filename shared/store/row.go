package store

import (
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// LogRow is an event read from the log, with the filters that the read asked for.
// The caller may keep it.
type LogRow struct {
	schema.Pos
	key     string
	filters []bigtable.ReadItem
	objects []byte // schema.Objects; nil if it was not read
	receipt int64  // ms; the time of the event if it was not read
	fault   error  // of the key: the row is none of the log
}

// Event decodes the row. Type and name come from the columns of the filters or, if
// the row was read without filters, from the cell of the objects. Without either
// they are empty. The event names no objects if Objects returns false. An error names
// the damaged cell.
func (r LogRow) Event() (affinity.Event, error) { return NewLogDecoder().Event(r) }

// Size returns roughly how many bytes of memory the row takes.
func (r LogRow) Size() int {
	size := len(r.key) + len(r.objects) + 88
	for _, item := range r.filters {
		size += len(item.Value) + len(item.Column) + 96
	}
	return size
}

// Objects returns the kind and the objects of the event. It returns false if the row
// was read without them, or if their cell is damaged.
func (r LogRow) Objects() (schema.Objects, bool) {
	o, err := schema.ParseObjects(r.objects)
	return o, err == nil
}

// cutColumn returns the family and the qualifier of a cell.
func cutColumn(item bigtable.ReadItem) (family, qualifier string) {
	family, qualifier, _ = strings.Cut(item.Column, ":")
	return family, qualifier
}

// keptColumns bounds the names that a decoder or scorer remembers.
const keptColumns = 1 << 14

// LogDecoder decodes many rows. It is not safe for concurrent use.
type LogDecoder struct {
	columns map[string]schema.Column
	facets  map[string]string
}

// NewLogDecoder makes a LogDecoder.
func NewLogDecoder() *LogDecoder {
	return &LogDecoder{map[string]schema.Column{}, map[string]string{}}
}

// Event decodes a row as LogRow.Event does.
func (d *LogDecoder) Event(r LogRow) (affinity.Event, error) {
	ev := affinity.Event{Time: r.Time}
	if r.fault != nil {
		return ev, r.fault
	}
	for i, item := range r.filters {
		c, err := d.column(item)
		if err == nil && i > 0 && (event.Type(c.Type) != ev.Type || c.Name != ev.Name) {
			err = fmt.Errorf("column %q belongs to another event than column %q", item.Column, r.filters[0].Column)
		}
		if err != nil {
			return ev, fmt.Errorf("row %q: %w", r.key, err)
		}
		ev.Type, ev.Name = event.Type(c.Type), c.Name
		family, _ := cutColumn(item)
		err = schema.EachCount(family, item.Value, func(facet, value []byte, n int) {
			name := c.Facet
			if family != schema.FamilyWide {
				name = d.facet(facet)
			}
			ev.Counts = append(ev.Counts, affinity.Count{Facet: name, Value: string(value), N: n})
		})
		if err != nil {
			return ev, fmt.Errorf("row %q column %q: %w", r.key, item.Column, err)
		}
	}
	if o, ok := r.Objects(); ok {
		ev.Index, ev.ObjectIDs = o.Index, o.ObjectIDs
		if len(r.filters) == 0 {
			ev.Type, ev.Name = o.Type, o.Name
		}
	}
	return ev, nil
}

func (d *LogDecoder) column(item bigtable.ReadItem) (schema.Column, error) {
	c, known := d.columns[item.Column]
	if known {
		return c, nil
	}
	c, err := schema.ParseColumn(cutColumn(item))
	if err == nil {
		if len(d.columns) >= keptColumns {
			clear(d.columns)
		}
		d.columns[item.Column] = c
	}
	return c, err
}

func (d *LogDecoder) facet(b []byte) string {
	name, known := d.facets[string(b)]
	if !known {
		if len(d.facets) >= keptColumns {
			clear(d.facets)
		}
		name = string(b)
		d.facets[name] = name
	}
	return name
}

// LogScorer adds log rows to scorers of one strategy. It is not safe for concurrent
// use.
type LogScorer struct {
	c       *affinity.Compiled
	columns map[string]*scoredColumn
}

// scoredColumn is the section that a wide column scores in, or the sections of the
// facets in a narrow one.
type scoredColumn struct {
	family string
	schema.Column
	section  affinity.Section
	sections map[string]affinity.Section
}

// NewLogScorer makes a LogScorer of a strategy.
func NewLogScorer(c *affinity.Compiled) *LogScorer {
	return &LogScorer{c, map[string]*scoredColumn{}}
}

// Score adds a row to a scorer of the same strategy. After an error part of the
// row may have been added.
func (ls *LogScorer) Score(r LogRow, sc *affinity.Scorer) error {
	if r.fault != nil {
		return r.fault
	}
	if !sc.Begin(r.Time) {
		return nil
	}
	for _, item := range r.filters {
		col, err := ls.column(item, sc)
		if err != nil {
			return fmt.Errorf("row %q: %w", r.key, err)
		}
		if col.sections == nil && !col.section.OK() {
			continue
		}
		err = schema.EachCount(col.family, item.Value, func(facet, value []byte, n int) {
			section := col.section
			if col.sections != nil {
				section = col.sections[string(facet)]
			}
			sc.Add(section, value, n)
		})
		if err != nil {
			return fmt.Errorf("row %q column %q: %w", r.key, item.Column, err)
		}
	}
	return nil
}

// Kind returns the type and name of the event of a row that was read with objects. An
// error of the row is left to Score.
func (ls *LogScorer) Kind(r LogRow, sc *affinity.Scorer) affinity.Pair {
	if len(r.filters) == 0 {
		o, _ := r.Objects()
		return affinity.Pair{Type: string(o.Type), Name: o.Name}
	}
	col, err := ls.column(r.filters[0], sc)
	if err != nil {
		return affinity.Pair{}
	}
	return affinity.Pair{Type: col.Type, Name: col.Name}
}

func (ls *LogScorer) column(item bigtable.ReadItem, sc *affinity.Scorer) (*scoredColumn, error) {
	if col, known := ls.columns[item.Column]; known {
		return col, nil
	}
	family, qualifier := cutColumn(item)
	parsed, err := schema.ParseColumn(family, qualifier)
	if err != nil {
		return nil, err
	}
	col := &scoredColumn{family: family, Column: parsed}
	if family == schema.FamilyWide {
		col.section = sc.Section(parsed.Type, parsed.Name, parsed.Facet)
	} else {
		for _, facet := range ls.c.Facets() {
			if section := sc.Section(parsed.Type, parsed.Name, facet); section.OK() {
				if col.sections == nil {
					col.sections = map[string]affinity.Section{}
				}
				col.sections[facet] = section
			}
		}
	}
	if len(ls.columns) >= keptColumns {
		clear(ls.columns)
	}
	ls.columns[item.Column] = col
	return col, nil
}

// logRow returns the newest cells of a row. Older cells do not count: they belong to
// a copy (see Copy) below an appended row.
func logRow(r bigtable.Row, at schema.Pos) LogRow {
	row := LogRow{Pos: at, key: r.Key()}
	newest := bigtable.Timestamp(-1)
	cells, same := 0, true
	for family, items := range r {
		for i := range items {
			if family == familyOriginal && isObjects(items[i]) {
				continue // its timestamp is the receipt
			}
			same = same && (cells == 0 || items[i].Timestamp == newest)
			newest = max(newest, items[i].Timestamp)
			cells++
		}
	}
	for family, items := range r {
		switch {
		case family == familyOriginal:
			row.objects, row.receipt = newestOf(items, columnObjects), receiptOf(items, at.Time)
		case same && row.filters == nil:
			row.filters = items
		default:
			for _, item := range items {
				if item.Timestamp == newest {
					row.filters = append(row.filters, item)
				}
			}
		}
	}
	return row
}

// original returns the event as the client sent it: the newest cell.
func original(r bigtable.Row) []byte { return newestOf(r[familyOriginal], columnOriginal) }

// newestOf returns the newest cell of a column of familyOriginal. The caller may
// keep it.
func newestOf(items []bigtable.ReadItem, qualifier string) []byte {
	var value []byte
	newest := bigtable.Timestamp(-1)
	for _, item := range items {
		if _, q := cutColumn(item); q == qualifier && item.Timestamp > newest {
			newest, value = item.Timestamp, item.Value
		}
	}
	return value
}
