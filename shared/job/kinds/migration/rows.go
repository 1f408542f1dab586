package migration

import (
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// decoder decodes the rows of either schema. It is not safe for concurrent use.
type decoder struct{ rows *store.LogDecoder }

func newDecoder() *decoder { return &decoder{store.NewLogDecoder()} }

// event decodes a row completely, so that it can be written in the other
// schema. An error means that the row is damaged.
func (d *decoder) event(e store.Entry) (store.LogEvent, error) {
	if e.Fault != nil {
		return store.LogEvent{}, e.Fault
	}
	ev, err := d.rows.Event(e.LogRow)
	if err != nil {
		return store.LogEvent{}, err
	}
	row := store.LogEvent{
		User: e.User, Time: e.Time, ID: e.ID, Type: ev.Type, Name: ev.Name, Counts: ev.Counts, Original: e.Original,
	}
	row.Receipt = e.Receipt()
	objects, ok := e.Objects()
	row.Index, row.ObjectIDs = objects.Index, objects.ObjectIDs
	if row.Type == "" { // the columns of a wide row without filters do not say its type and name
		row.Type, row.Name = objects.Type, objects.Name
	}
	switch exists := slices.Contains(schema.Narrow.Families(), string(row.Type)); {
	case !ok && (exists || row.Type == ""):
		return row, fmt.Errorf("row %q: the cell of its objects is missing or damaged", e.Key())
	case !exists:
		return row, fmt.Errorf("row %q: event type %q does not exist", e.Key(), row.Type)
	}
	return row, nil
}
