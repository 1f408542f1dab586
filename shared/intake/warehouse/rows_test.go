package warehouse_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// column is one of a schema of BigQuery, without its description.
type column struct {
	Name, Type, Mode string
	Fields           []column
}

// columnsOf returns the columns that hold the JSON of a type.
func columnsOf(t reflect.Type) (columns []column) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		c := column{Name: name, Mode: "REQUIRED"}
		of := f.Type
		if options == "omitempty" {
			c.Mode = "NULLABLE"
		}
		if of.Kind() == reflect.Slice {
			c.Mode, of = "REPEATED", of.Elem()
		}
		switch {
		case of == reflect.TypeFor[time.Time]():
			c.Type = "TIMESTAMP"
		case of.Kind() == reflect.String:
			c.Type = "STRING"
		case of.Kind() == reflect.Int64:
			c.Type = "INTEGER"
		case of.Kind() == reflect.Struct:
			c.Type, c.Fields = "RECORD", columnsOf(of)
		}
		columns = append(columns, c)
	}
	return columns
}

// The tables of BigQuery have the columns of the messages.
func TestSchemasAreThoseOfTheRows(t *testing.T) {
	for file, row := range map[string]reflect.Type{
		"event_rows.json": reflect.TypeFor[warehouse.Event](), "deletions.json": reflect.TypeFor[warehouse.Deletion](),
	} {
		text, err := os.ReadFile("../../../terraform/modules/warehouse/" + file)
		must.Succeed(t, err)
		var got []column
		must.Succeed(t, json.Unmarshal(text, &got))
		if diff := cmp.Diff(columnsOf(row), got); diff != "" {
			t.Errorf("%s (-rows +file):\n%s", file, diff)
		}
	}
}

// A message has what the log has of the event, in one order.
func TestEventMessage(t *testing.T) {
	original := schema.Original{ReceivedAt: 1_795_000_000_456, Index: "shoes", UnknownObjects: 1, Event: []byte(
		`{"eventType":"conversion","eventSubtype":"purchase","eventName":"Bought <now>","userToken":"ann","objectIDs":["a","b"],"queryID":"` +
			strings.Repeat("0f", 16) + `","value":9.5,"currency":"EUR"}`)}
	row, err := warehouse.EventOf(warehouse.Logged{App: "shop", Time: 1_795_000_000_123, ID: "AbCdEfGhIjK",
		Counts:   []affinity.Count{{Facet: "size", Value: "4", N: 1}, {Facet: "color", Value: "Red", N: 2}},
		Original: original.Append(nil)}, time.UnixMilli(1_795_000_001_000))
	must.Succeed(t, err)
	got, err := row.Message()
	must.Succeed(t, err)
	want := `{"app":"shop","user_token":"ann","time":"2026-11-18T11:06:40.123Z","id":"AbCdEfGhIjK","received_at":"2026-11-18T11:06:40.456Z",` +
		`"written_at":"2026-11-18T11:06:41Z","type":"conversion","subtype":"purchase","name":"Bought <now>","index_name":"shoes","query_id":"` +
		strings.Repeat("0f", 16) + `","object_ids":["a","b"],"filters":[{"facet":"color","value":"Red","n":2},{"facet":"size","value":"4","n":1}],` +
		`"unknown_objects":1,"left_out_objects":0,"event":"` + strings.ReplaceAll(string(original.Event), `"`, `\"`) + `"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The largest message is one that Pub/Sub and BigQuery take.
func TestLargestMessage(t *testing.T) {
	row := warehouse.Event{Event: strings.Repeat(`"`, event.MaxBody)}
	for range event.MaxCounted {
		row.Filters = append(row.Filters, warehouse.Filter{Facet: "f", Value: strings.Repeat("\x01", event.MaxCountedBytes/event.MaxCounted), N: 20})
	}
	row.Filters = append(row.Filters, warehouse.Filter{Facet: "f", Value: strings.Repeat("\x01", 100_000), N: 20})
	if text, err := row.Message(); err != nil || len(text) > 9_000_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
