package event_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

func ExampleDecodeBatch() {
	body := []byte(`{"events": [{
		"eventType": "view", "eventName": "Product Viewed", "index": "products",
		"userToken": "user-1", "timestamp": 1795348800000,
		"filters": ["color:Red", "brand%3AAcme"]
	}]}`)
	received := time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)
	events, err := event.DecodeBatch(body, event.Rules{Now: received, MaxAge: event.MaxEventAge})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events {
		fmt.Println(e.UserToken, e.Type, e.Filters, time.UnixMilli(e.Time).UTC().Format(time.RFC3339))
	}
	// Output: user-1 view [{color Red} {brand Acme}] 2026-11-22T12:00:00Z
}

// A refusal names the event, the kind of fault and the reason.
func ExampleRefusal() {
	_, err := event.DecodeBatch([]byte(`{"events": [{"eventType": "view", "eventName": "Product Viewed"}]}`),
		event.Rules{Now: time.Now()})
	var refusal *event.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Kind, refusal.Position, refusal.Message)
	}
	// Output: invalid 0 The index field is required
}

// A retry with equal content and timestamp has the same ID, however the client
// wrote the JSON.
func ExampleEvent_ID() {
	decode := func(raw string) event.Event {
		e, err := event.Decode([]byte(raw), event.Rules{Now: time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)})
		if err != nil {
			log.Fatal(err)
		}
		return e
	}
	first := decode(`{"eventType":"click","eventName":"Clicked","index":"products","userToken":"u","timestamp":1795348800000,"objectIDs":["1"]}`)
	retry := decode(`{"timestamp":1795348800000, "userToken":"u", "index":"products", "objectIDs":["1"], "eventName":"Clicked", "eventType":"click"}`)
	fmt.Println(len(first.ID()), first.ID() == retry.ID())
	// Output: 11 true
}

func ExampleParseFilter() {
	for _, s := range []string{"brand:Acme", "brand%3AAcme", "discount:10%25", "brand"} {
		f, err := event.ParseFilter(s)
		fmt.Printf("%q %q %v\n", f.Facet, f.Value, err)
	}
	// Output:
	// "brand" "Acme" <nil>
	// "brand" "Acme" <nil>
	// "discount" "10%" <nil>
	// "" "" read a filter: Filters must be of the form attribute:value
}
