package track_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

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
			api.Event{EventType: "view", EventName: "Product Viewed", UserToken: "ann", Index: "products", ObjectIDs: []string{"1"}, Timestamp: at, EventID: "m1"},
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
		`[]`: track.ErrForm,
		`{"type":"track","event":"Signed Up","userId":"ann"}`:                                                                                                 track.ErrType,
		`{"type":"track","event":"Product Viewed","userId":"ann","properties":{}}`:                                                                            track.ErrObjects,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"yesterday","properties":{"product_id":"1"}}`:                                    event.ErrTimeForm,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":{"at":1},"properties":{"product_id":"1"}}`:                                       event.ErrTimeForm,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":0,"properties":{"product_id":"1"}}`:                                              event.ErrTimeNumber,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"0","originalTimestamp":"2026-11-21T12:00:00Z","properties":{"product_id":"1"}}`: event.ErrTimeNumber,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"1970-01-01T00:00:00Z","properties":{"product_id":"1"}}`:                         event.ErrTimeRange,
		`{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"2026-11-24 02:05:31 EST","properties":{"product_id":"1"}}`:                      event.ErrTimeZone,
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

// A call with a messageId has a time by the engine's clock, if that of the device is wrong.
// Without one, each delivery must give the same event, so that the call stays as it is.
func TestTimesOfDeliveries(t *testing.T) {
	received := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		call, sentAt, want string
		unsure             bool
	}{
		"a right clock":               {`"timestamp":"2026-11-21T11:00:00Z"`, "2026-11-21T11:59:50Z", "11:00:00", false},
		"a clock 3 minutes behind":    {`"timestamp":"2026-11-21T11:00:00Z"`, "2026-11-21T11:57:00Z", "11:00:00", false},
		"nearly 5 minutes behind":     {`"timestamp":"2026-11-21T11:00:00Z"`, "2026-11-21T11:55:10Z", "11:00:00", true},
		"6 minutes behind":            {`"timestamp":"2026-11-21T11:00:00Z"`, "2026-11-21T11:54:00Z", "11:06:00", true},
		"a clock 45 days behind":      {`"timestamp":"2026-10-07T11:00:00Z"`, "2026-10-07T12:00:00Z", "11:00:00", true},
		"a clock two days ahead":      {`"timestamp":"2026-11-23T11:00:00Z"`, "2026-11-23T12:00:00Z", "11:00:00", true},
		"RudderStack's name":          {`"originalTimestamp":"2026-11-20T11:00:00Z"`, "2026-11-20T12:00:00Z", "11:00:00", true},
		"a time of its own":           {`"timestamp":"2026-11-20T11:00:00Z","sentAt":"2026-11-20T12:00:00Z"`, "", "11:00:00", true},
		"ahead, and not said when":    {`"timestamp":"2026-11-23T11:00:00Z"`, "", "12:00:00", true},
		"a little ahead":              {`"timestamp":"2026-11-21T12:04:00Z"`, "2026-11-21T12:00:00Z", "12:04:00", false},
		"no time":                     {`"timestamp":null`, "2026-11-20T12:00:00Z", "12:00:00", true},
		"sent before it happened":     {`"timestamp":"2026-11-21T11:00:00Z"`, "2026-11-21T10:00:00Z", "12:00:00", true},
		"corrected by Segment before": {`"timestamp":"2026-11-21T11:00:00Z","originalTimestamp":"2026-11-20T11:00:00Z"`, "2026-11-20T11:00:01Z", "11:00:00", false},
		"sent at no time":             {`"timestamp":"2026-11-21T11:00:00Z"`, "soon", "11:00:00", false},
	} {
		for _, messageID := range []string{"m1", ""} {
			c, err := track.Parse([]byte(fmt.Sprintf(`{"type":"track","event":"Product Viewed","messageId":%q,%s}`, messageID, test.call)))
			must.Succeed(t, err)
			if c.SentAt == "" {
				c.SentAt = test.sentAt
			}
			got, unsure, err := c.Received(received)
			must.Succeed(t, err)
			if messageID == "" {
				if !cmp.Equal(got, c, cmp.AllowUnexported(track.Call{})) || unsure {
					t.Errorf("%s, without a messageId: %+v", name, got)
				}
				continue
			}
			at, err := event.ParseTime(got.Time)
			if clock := time.UnixMilli(at).UTC().Format("15:04:05"); err != nil || clock != test.want || unsure != test.unsure {
				t.Errorf("%s: %s, unsure %v, %v; want %s, %v", name, clock, unsure, err, test.want, test.unsure)
			}
		}
	}
	bad := track.Call{MessageID: "m1", Time: "1970-01-01T00:00:00Z"}
	if _, _, err := bad.Received(received); !errors.Is(err, event.ErrTimeRange) {
		t.Errorf("a time of 1970: %v", err)
	}
}

// A messageId that is longer than an eventId may be stays one.
func TestLongMessageID(t *testing.T) {
	ids := map[string]bool{}
	for _, end := range []string{"a", "b"} {
		c, err := track.Parse([]byte(`{"type":"track","messageId":"` + strings.Repeat("x", api.MaxEventID) + end + `"}`))
		must.Succeed(t, err)
		if len(c.MessageID) > api.MaxEventID {
			t.Errorf("messageId of %d bytes", len(c.MessageID))
		}
		ids[c.MessageID] = true
	}
	if len(ids) != 2 {
		t.Errorf("%v: want two", ids)
	}
}

func TestCallsCarryConsent(t *testing.T) {
	for context, want := range map[string]map[string]any{
		`{}`:     nil,
		`"page"`: nil,
		`{"consent":{"categoryPreferences":{"Advertising":false,"Analytics":true,"ad_storage":"denied"}}}`: {"Advertising": false, "Analytics": true, "ad_storage": "denied"},
		`{"consent":{"categoryPreferences":{"Advertising":0,"Analytics":"no","Functional":null}}}`:         {},
		`{"consent":{"categoryPreferences":["Advertising"]}}`:                                              nil,
		`{"consentManagement":{"provider":"oneTrust","allowedConsentIds":["C01","C02"],"deniedConsentIds":["C03","C02",7],"resolutionStrategy":"and"}}`: {
			"C01": true, "C02": false, "C03": false,
		},
		`{"consentManagement":{"allowedConsentIds":{"purposes":["C01"]},"deniedConsentIds":"C02"}}`: nil,
		`{"consent":{"categoryPreferences":{"C01":"denied","C02":true}},"consentManagement":{"allowedConsentIds":["C01"],"deniedConsentIds":["C02"]}}`: {
			"C01": "denied", "C02": false,
		},
	} {
		events, err := events(t, `{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":"1"},"context":`+context+`}`)
		if err != nil || len(events) != 1 || !maps.Equal(events[0].Consent, want) {
			t.Errorf("%s: %+v, %v", context, events, err)
		}
	}
}
