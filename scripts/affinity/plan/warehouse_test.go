package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// The bytes of a row are those of the model: within a tenth, an event of 500 bytes with 12 filters.
func TestRowsOfTheWarehouse(t *testing.T) {
	row := warehouse.Event{App: "acme_shop", UserToken: "anonymous-0f8fad5b-d9cb-469f-a165", Time: time.UnixMilli(1_795_000_000_123).UTC(),
		ID: "AbCdEfGhIjK", ReceivedAt: time.UnixMilli(1_795_000_000_456).UTC(), WrittenAt: time.UnixMilli(1_795_000_001_456).UTC(),
		Type: "view", Name: "Product Viewed", Index: "products", ObjectIDs: []string{"sku-1029384"},
		Event: `{"eventType":"view","eventName":"Product Viewed","userToken":"anonymous-0f8fad5b-d9cb-469f-a165","index":"products","` +
			strings.Repeat(`k":"0123456789","`, 22) + `"}`}
	stored := 0
	for i := range 12 {
		f := warehouse.Filter{Facet: fmt.Sprint("facet-", i), Value: "Some value", N: 1}
		row.Filters = append(row.Filters, f)
		stored += 2 + len(f.Facet) + 2 + len(f.Value) + 8 // a string takes 2 bytes more, a number 8
	}
	stored += 3*8 + 2*8 + 8*2 + len(row.App+row.UserToken+row.ID+row.Type+row.Name+row.Index+row.ObjectIDs[0]+row.Event)
	text, err := row.Message()
	if err != nil {
		t.Fatal(err)
	}
	w := plan.Workload{EventsPerDay: 1, Users: 1, RetentionDays: 1, EventsPerRequest: 1, Clusters: 1, Peak: 1, Compression: 1, NodeGiB: plan.NodeGiB}
	without := len(plan.Compute(w, plan.Now, price.List(), plan.Push).Lines)
	w.WarehouseDays = 1
	bill := plan.Compute(w, plan.Now, price.List(), plan.Push)
	if len(bill.Lines) != without+4 {
		t.Errorf("the warehouse has %d lines, want 4", len(bill.Lines)-without)
	}
	for _, line := range bill.Lines {
		got := 0.0
		switch line.Price {
		case "pubsub_bigquery":
			got = line.Quantity * (1 << 40) / (730.0 / 24)
			if want := float64(len(text)); got < 0.9*want || got > 1.1*want {
				t.Errorf("the model has %.0f bytes of a message, a row %.0f", got, want)
			}
		case "bigquery_storage":
			got = line.Quantity * (1 << 30)
			if want := float64(stored); got < 0.9*want || got > 1.1*want {
				t.Errorf("the model has %.0f bytes of a stored row, a row %.0f", got, want)
			}
		}
	}
}
