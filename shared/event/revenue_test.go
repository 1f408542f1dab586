package event_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestRevenue(t *testing.T) {
	for _, tt := range []struct {
		fields   string
		amount   float64
		currency string
	}{
		{`"eventSubtype":"purchase","objectData":[{"price":9.5,"quantity":2},{"price":"1.25"}],"currency":"usd"`, 20.25, "USD"},
		{`"objectData":[{"price":"8$","discount":"30%"},{"price":"EUR 2.50","quantity":4}],"value":99`, 18, ""},
		{`"objectData":[{"price":3,"quantity":-2},{}]`, -6, ""},
		{`"objectData":[{"price":0},{}],"value":5`, 0, ""},
		{`"objectData":[{"price":5,"quantity":0},{}],"value":5`, 0, ""},
		{`"objectData":[{"quantity":2},{}],"value":"19.90 EUR","currency":"EUR"`, 19.9, "EUR"},
		{`"value":"1,299.50"`, 0, ""},
		{`"value":"9,50"`, 0, ""},
		{`"value":"2 for 3"`, 0, ""},
		{`"value":"free"`, 0, ""},
		{`"value":"-4.5"`, -4.5, ""},
		{`"eventSubtype":"addToCart","objectData":[{"price":9.5},{"price":1}],"currency":"USD"`, 0, ""},
		{`"eventSubtype":"purchase"`, 0, ""},
	} {
		json := fmt.Sprintf(`{"eventType":"conversion","eventName":"Bought","index":"shop","userToken":"u",`+
			`"objectIDs":["a","b"],%s}`, tt.fields)
		e, err := event.Decode([]byte(json), event.Rules{Now: receipt})
		must.Succeed(t, err)
		if amount, currency := e.Revenue(); amount != tt.amount || currency != tt.currency {
			t.Errorf("%s: %v %q, want %v %q", tt.fields, amount, currency, tt.amount, tt.currency)
		}
	}
}
