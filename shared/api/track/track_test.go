package track_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

func events(t *testing.T, call string) ([]api.Event, error) {
	t.Helper()
	c, err := track.Parse([]byte(call))
	if err != nil {
		return nil, err
	}
	return c.Events()
}

func TestCallsAreEvents(t *testing.T) {
	at := int64(1795262400123)
	for name, test := range map[string]struct {
		call string
		want api.Event
	}{
		"of Segment": {
			`{"type":"track","event":"Product Viewed","userId":"ann","anonymousId":"a1","timestamp":"2026-11-21T12:00:00.123Z",
			  "messageId":"m1","sentAt":"2026-11-21T13:00:00Z","context":{"ip":"192.0.2.1"},"properties":{"product_id":"1","sku":"s1","price":9.5,"search_index":"products"}}`,
			api.Event{EventType: "view", EventName: "Product Viewed", UserToken: "ann", Index: "products", ObjectIDs: []string{"1"}, Timestamp: at},
		},
		"of RudderStack": {
			`{"type":"track","event":"Product Added","anonymousId":"a1","originalTimestamp":"2026-11-21T13:00:00.123+01:00","properties":{"sku":"s1"}}`,
			api.Event{EventType: "click", EventName: "Product Added", UserToken: "a1", ObjectIDs: []string{"s1"}, Timestamp: at},
		},
		"with a time in seconds": {
			`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":1795262400.123,"properties":{"product_id":"1"}}`,
			api.Event{EventType: "view", EventName: "Product Viewed", UserToken: "ann", ObjectIDs: []string{"1"}, Timestamp: at},
		},
		"without a time": {
			`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":null,"originalTimestamp":"","properties":{"product_id":"1"}}`,
			api.Event{EventType: "view", EventName: "Product Viewed", UserToken: "ann", ObjectIDs: []string{"1"}},
		},
		"with ids that are numbers": {
			`{"type":"track","event":"Order Completed","userId":17,"properties":{"products":[{"product_id":5},{"product_id":"6"},{"product_id":5}]}}`,
			api.Event{EventType: "conversion", EventName: "Order Completed", UserToken: "17", ObjectIDs: []string{"5", "6"}},
		},
		"with a type of its own": {
			`{"type":"track","event":"Song Played","userId":"ann","properties":{"event_type":"conversion","product_id":"1"}}`,
			api.Event{EventType: "conversion", EventName: "Song Played", UserToken: "ann", ObjectIDs: []string{"1"}},
		},
		"without a type of call": {
			`{"event":"Product Clicked","userId":"ann","properties":{"product_id":"1"}}`,
			api.Event{EventType: "click", EventName: "Product Clicked", UserToken: "ann", ObjectIDs: []string{"1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events(t, test.call)
			must.Succeed(t, err)
			if diff := cmp.Diff([]api.Event{test.want}, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// An order of more objects than an event may have becomes several events.
func TestLargeOrderIsSeveralEvents(t *testing.T) {
	var products []string
	for i := range api.MaxEventTargets + 1 {
		products = append(products, fmt.Sprintf(`{"product_id":"p%d"}`, i))
	}
	got, err := events(t, `{"type":"track","event":"Order Completed","userId":"ann","properties":{"products":[`+strings.Join(products, ",")+`]}}`)
	must.Succeed(t, err)
	if len(got) != 2 || len(got[0].ObjectIDs) != api.MaxEventTargets || len(got[1].ObjectIDs) != 1 {
		t.Errorf("%+v: want events of %d objects and of 1", got, api.MaxEventTargets)
	}
}

func TestCallsThatAreNoEvents(t *testing.T) {
	for call, want := range map[string]error{
		`[]`:                              track.ErrForm,
		`{"type":"track","properties":5}`: track.ErrForm,
		`{"type":"track","event":"Signed Up","userId":"ann"}`:                                                                                                 track.ErrType,
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{}}`:                                                                            track.ErrObjects,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"yesterday","properties":{"product_id":"1"}}`:                                    event.ErrTimeForm,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":{"at":1},"properties":{"product_id":"1"}}`:                                       event.ErrTimeForm,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":0,"properties":{"product_id":"1"}}`:                                              event.ErrTimeNumber,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"0","originalTimestamp":"2026-11-21T12:00:00Z","properties":{"product_id":"1"}}`: event.ErrTimeNumber,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"1970-01-01T00:00:00Z","properties":{"product_id":"1"}}`:                         event.ErrTimeRange,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"2026-11-24 02:05:31 EST","properties":{"product_id":"1"}}`:                      event.ErrTimeZone,
		`{"type":"track","event":"Product Viewed","userId":["ann"],"properties":{"product_id":"1"}}`:                                                          track.ErrForm,
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"products":{"product_id":"1"}}}`:                                               track.ErrForm,
	} {
		if got, err := events(t, call); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", call, got, err, want)
		}
	}
}

// Properties of other calls are of no concern.
func TestOtherCallsAreRead(t *testing.T) {
	c, err := track.Parse([]byte(`{"type":"page","userId":"ann","properties":"home"}`))
	if err != nil || c.Type != "page" || c.UserToken != "ann" {
		t.Errorf("%+v, %v", c, err)
	}
}
