package schema_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

var kinds = []loggedEvent{
	{event.View, "Product Viewed", nil}, {event.View, "Category Viewed", nil}, {event.View, "Review Read", nil},
	{event.Click, "Product Clicked", nil}, {event.Click, "Banner Clicked", nil}, {event.Click, "Filter Clicked", nil},
	{event.Click, "Wishlist Clicked", nil}, {event.Conversion, "Product Added to Cart", nil},
	{event.Conversion, "Order Completed", nil}, {event.Conversion, "Newsletter Ordered", nil},
}

// benchEvents are of ten kinds, each with one or two values of eight facets
// from a vocabulary of 100.
func benchEvents() []loggedEvent {
	facets := []string{"brand", "category", "color", "material", "size", "style", "season", "price"}
	r := rand.New(rand.NewPCG(42, 1))
	events := make([]loggedEvent, 1000)
	for i := range events {
		events[i] = kinds[r.IntN(len(kinds))]
		for _, facet := range facets {
			first := r.IntN(100)
			for v := range 1 + r.IntN(2) {
				value := fmt.Sprintf("%s %02d", facet, (first+v)%100)
				events[i].counts = append(events[i].counts, affinity.Count{Facet: facet, Value: value, N: 1})
			}
		}
	}
	return events
}

// row is the cells of an event with what a reader of rows knows of their
// columns.
type row struct {
	cells   []schema.Cell
	columns []schema.Column
}

func benchRows(b *testing.B, n schema.Name, e schema.Encoding) (rows []row) {
	encoder := schema.NewEncoder(n, e)
	for _, l := range benchEvents() {
		r := row{cells: encoder.Append(nil, l.typ, l.name, l.counts)}
		for _, cell := range r.cells {
			column, err := schema.ParseColumn(cell.Family, cell.Qualifier)
			must.Succeed(b, err)
			r.columns = append(r.columns, column)
		}
		rows = append(rows, r)
	}
	return rows
}

// decoder reads rows into memory that is used again: names of facets are known,
// values are new texts.
type decoder struct {
	facets map[string]string
	counts []affinity.Count
}

func (d *decoder) read(r row) error {
	d.counts = d.counts[:0]
	for i, cell := range r.cells {
		err := schema.EachCount(cell.Family, cell.Value, func(facet, value []byte, n int) {
			name := r.columns[i].Facet
			if facet != nil {
				known := false
				if name, known = d.facets[string(facet)]; !known {
					name = string(facet)
					d.facets[name] = name
				}
			}
			d.counts = append(d.counts, affinity.Count{Facet: name, Value: string(value), N: n})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// perCore runs a benchmark of rounds over the events, and reports how many of
// them a second of the processor is enough for.
func perCore(b *testing.B, events int, round func(i int) error) {
	b.ReportAllocs()
	before, i := cpu.Time(), 0
	for b.Loop() {
		must.Succeed(b, round(i%events))
		i++
	}
	b.ReportMetric(float64(i)/(cpu.Time()-before).Seconds(), "events/s")
}

func eachForm(fn func(n schema.Name, e schema.Encoding, name string)) {
	for _, n := range schema.Names {
		for _, e := range []schema.Encoding{schema.JSON, schema.Compact} {
			fn(n, e, fmt.Sprintf("%s-%s", n, e))
		}
	}
}

// BenchmarkTransform is what copying rows from one schema to the other does in
// memory.
func BenchmarkTransform(b *testing.B) {
	eachForm(func(from schema.Name, e schema.Encoding, name string) {
		eachForm(func(to schema.Name, into schema.Encoding, toName string) {
			if from == to {
				return
			}
			b.Run(name+"/"+toName, func(b *testing.B) {
				rows := benchRows(b, from, e)
				d, encoder := decoder{facets: map[string]string{}}, schema.NewEncoder(to, into)
				var cells []schema.Cell
				perCore(b, len(rows), func(i int) error {
					err := d.read(rows[i])
					column := rows[i].columns[0]
					cells = encoder.Append(cells[:0], event.Type(column.Type), column.Name, d.counts)
					return err
				})
			})
		})
	})
}

func BenchmarkDecode(b *testing.B) {
	eachForm(func(n schema.Name, e schema.Encoding, name string) {
		b.Run(name, func(b *testing.B) {
			rows := benchRows(b, n, e)
			filters := 0
			count := func(_, _ []byte, n int) { filters += n }
			perCore(b, len(rows), func(i int) error {
				for _, cell := range rows[i].cells {
					if err := schema.EachCount(cell.Family, cell.Value, count); err != nil {
						return err
					}
				}
				return nil
			})
			if filters == 0 {
				b.Error("no filters are read")
			}
		})
	})
}

func BenchmarkEncode(b *testing.B) {
	eachForm(func(n schema.Name, e schema.Encoding, name string) {
		b.Run(name, func(b *testing.B) {
			values, columns := 0, 0
			for _, r := range benchRows(b, n, e) {
				for _, cell := range r.cells {
					values += len(cell.Value)
					columns += len(cell.Family) + len(":") + len(cell.Qualifier)
				}
			}
			events, encoder := benchEvents(), schema.NewEncoder(n, e)
			var cells []schema.Cell
			perCore(b, len(events), func(i int) error {
				cells = encoder.Append(cells[:0], events[i].typ, events[i].name, events[i].counts)
				return nil
			})
			b.ReportMetric(float64(values)/float64(len(events)), "valueB/event")
			b.ReportMetric(float64(columns)/float64(len(events)), "columnB/event")
		})
	})
}
