package measure

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// logBytes are the bytes of rows of the log: as they are, without the copy of the event, without
// what this copy repeats of the row's other cells, and without the filters.
type logBytes struct{ whole, noEvent, noRepeats, noFilters []byte }

const cellTime = "01234567" // eight bytes

func (b *logBytes) add(e store.LogEvent, w *schema.Encoder) {
	original := e.Original
	if o, err := schema.ParseOriginal(original); err != nil || o.ReceivedAt == 0 {
		original = schema.Original{ReceivedAt: e.Time + 1234, Index: "products", Event: original}.Append(nil)
	}
	rest := string(original)
	said := slices.Concat([]string{e.User, fmt.Sprint(e.Time), string(e.Type), e.Name}, e.ObjectIDs)
	for _, c := range e.Counts {
		said = append(said, c.Facet+":"+c.Value)
	}
	for _, s := range said {
		rest = strings.Replace(rest, s, "\x01", 1)
	}
	key := "app," + e.User + "," + fmt.Sprint(e.Time) + "," + e.ID
	objects := "mo" + cellTime + string(schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs}.Append(nil))
	var filters []byte
	for _, c := range w.Append(nil, e.Type, e.Name, e.Counts) {
		filters = append(append(filters, c.Family+c.Qualifier+cellTime...), c.Value...)
	}
	event := "mevent" + cellTime
	b.whole = append(append(b.whole, key+event+string(original)+objects...), filters...)
	b.noEvent = append(append(b.noEvent, key+objects...), filters...)
	b.noRepeats = append(append(b.noRepeats, key+event+rest+objects...), filters...)
	b.noFilters = append(b.noFilters, key+event+string(original)+objects...)
}

// compressed is the size of rows in blocks of 64 KiB, each compressed by Snappy.
func compressed(rows []byte) float64 {
	n := 0
	for block := range slices.Chunk(rows, 64<<10) {
		n += len(s2.EncodeSnappy(nil, block))
	}
	return float64(n)
}

// BenchmarkBytesOfLog reports what a row of the log takes, and the percentages of it that would be
// saved if the event were derived from the other cells (an upper bound: all of it), if it held only
// what they do not say, and if the filters were derived from it. Events by objects of real shops and
// of synthetic users, and events that carry their filters.
func BenchmarkBytesOfLog(b *testing.B) {
	for _, name := range []string{"clickstream", "onlineretail", "objects", "filters"} {
		b.Run(name, func(b *testing.B) {
			d := newDataset(shape{users: 500, events: 50, facets: 8, selected: 3, values: 2})
			if name == "clickstream" || name == "onlineretail" {
				var err error
				if d, err = openReal("../../../../shared/data", name); err != nil {
					b.Skip(err)
				}
			}
			var all logBytes
			w, n := schema.NewEncoder(schema.Wide, schema.Compact), 0
			for b.Loop() {
				all, n = logBytes{}, 0
				for i := 0; i < d.users && n < 100_000; i++ {
					for _, e := range d.rows(i) {
						if name == "filters" {
							e = byFilters(b, e)
						}
						all.add(e, w)
						n++
					}
				}
			}
			whole := compressed(all.whole)
			saved := func(rows []byte) float64 { return 100 * (1 - compressed(rows)/whole) }
			b.ReportMetric(float64(len(all.whole))/float64(n), "B/row")
			b.ReportMetric(whole/float64(n), "compressedB/row")
			b.ReportMetric(saved(all.noEvent), "%event")
			b.ReportMetric(saved(all.noRepeats), "%repeats")
			b.ReportMetric(saved(all.noFilters), "%filters")
		})
	}
}

// byFilters is an event that carries the filters of another one in place of its objects.
func byFilters(b *testing.B, e store.LogEvent) store.LogEvent {
	sent := map[string]any{"eventType": e.Type, "eventName": e.Name, "index": "products", "userToken": e.User, "timestamp": e.Time}
	var filters []string
	for _, c := range e.Counts {
		filters = append(filters, c.Facet+":"+c.Value)
	}
	sent["filters"] = filters
	var err error
	if e.Original, err = json.Marshal(sent); err != nil {
		b.Fatal(err)
	}
	e.Index, e.ObjectIDs = "", nil
	return e
}
