package importer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/event"
)

// all returns the lines of a source, each with its number, and the error that ends it.
func all(t *testing.T, f Form, text string) []string {
	t.Helper()
	s := NewSource("x", strings.NewReader(text), -1)
	s.As(f)
	var lines []string
	for {
		l, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return lines
		case err != nil:
			return append(lines, err.Error())
		case l.skipped:
			lines = append(lines, fmt.Sprintf("%d skipped", l.number))
		case l.fault != "":
			lines = append(lines, fmt.Sprintf("%d fault %s", l.number, l.fault))
		default:
			lines = append(lines, fmt.Sprintf("%d %s", l.number, l.text))
		}
	}
}

func TestForms(t *testing.T) {
	const own = `{"eventType":"view","eventName":"Seen","userToken":"u","objectIDs":["1"],"timestamp":1795255200000}`
	types := map[string]string{"cart": "click", "Shared": "conversion"}
	shift := Form{Shift: 24 * time.Hour, Now: time.Date(2026, 11, 22, 11, 55, 0, 0, time.UTC)}
	for name, c := range map[string]struct {
		form Form
		text string
		want []string
	}{
		"events stay as they are": {Form{}, own + "\n" + ` {"a": 1, "eventType": "view" }`, []string{"1 " + own, `2 {"a": 1, "eventType": "view" }`}},
		"what is no JSON too":     {Form{}, "{\"timestamp\":\"x\"\nnonsense\n[", []string{`1 {"timestamp":"x"`, "2 nonsense", "3 ["}},
		"a time that the engine reads": {Form{}, `{"eventType":"view","timestamp":"2026-11-21T10:00:00.5+01:00"}`,
			[]string{`1 {"eventType":"view","timestamp":"2026-11-21T10:00:00.5+01:00"}`}},
		"a time that is shifted":           {shift, `{"eventType":"view","timestamp": "2026-11-21 09:00:00 UTC"}`, []string{`1 {"eventType":"view","timestamp":1795338000000}`}},
		"a number that is shifted":         {shift, `{"eventType":"view","timestamp":1795251600}`, []string{`1 {"eventType":"view","timestamp":1795338000000}`}},
		"no time to shift":                 {shift, `{"eventType":"view","timestamp":null}`, []string{`1 {"eventType":"view","timestamp":null}`}},
		"a time that no shift can read":    {shift, `{"eventType":"view","timestamp":"yesterday"}`, []string{"1 fault " + event.ErrTimeForm.Error()}},
		"a time ahead that is not shifted": {shift, `{"eventType":"view","timestamp":1795348800001}`, []string{"1 fault " + event.ErrTimeAhead.Error()}},
		"a call ahead that is not shifted": {shift, `{"type":"track","event":"Product Viewed","userId":"u","properties":{"sku":"1"},"timestamp":"2026-11-22T12:06:00Z"}`,
			[]string{"1 fault " + event.ErrTimeAhead.Error()}},
		"names with underscores": {Form{}, `{"app_id":"shop","user_token":"u","object_ids":["1"],"timestamp":1795255200000,"event_type":"view","event_name":"Seen"}`,
			[]string{`1 {"eventName":"Seen","eventType":"view","objectIDs":["1"],"timestamp":1795255200000,"userToken":"u"}`}},
		"one object":          {Form{}, `{"user_token":"u","object_id":"1"}`, []string{`1 {"objectIDs":["1"],"userToken":"u"}`}},
		"a type of its own":   {Form{Types: types}, `{"eventType":"cart","userToken":"u"}`, []string{`1 {"eventName":"cart","eventType":"click","userToken":"u"}`}},
		"a name of its own":   {Form{Types: types}, `{"eventName":"Shared","userToken":"u"}`, []string{`1 {"eventName":"Shared","eventType":"conversion","userToken":"u"}`}},
		"a type as a name":    {Form{Types: types}, `{"eventName":"view","userToken":"u"}`, []string{`1 {"eventName":"view","eventType":"view","userToken":"u"}`}},
		"an unknown type":     {Form{Types: types}, `{"eventType":"remove"}`, []string{`1 fault "remove" is no type of event`}},
		"a shift":             {shift, own, []string{"1 " + `{"eventName":"Seen","eventType":"view","objectIDs":["1"],"timestamp":1795341600000,"userToken":"u"}`}},
		"a line of an export": {shift, `{"exportedEvent":{"event":{"timestamp":"2026-11-21T10:00:00Z"}}}`, []string{`1 {"exportedEvent":{"event":{"timestamp":"2026-11-21T10:00:00Z"}}}`}},
		"a track call": {Form{}, `{"type":"track","event":"Product Viewed","anonymousId":"a","properties":{"product_id":"1","sku":"s"},"timestamp":"2026-11-21T09:00:00Z"}`,
			[]string{`1 {"eventType":"view","eventName":"Product Viewed","userToken":"a","timestamp":1795251600000,"objectIDs":["1"]}`}},
		"a track call of an order": {Form{}, `{"type":"track","event":"Order Completed","userId":"u","anonymousId":"a","properties":{"products":[{"sku":"1"},{"product_id":"2"},{"sku":"1"}]}}`,
			[]string{`1 {"eventType":"conversion","eventName":"Order Completed","userToken":"u","objectIDs":["1","2"]}`}},
		"another track call": {Form{Types: types}, `{"type":"track","event":"Shared","userId":"u","properties":{"sku":"1"}}`,
			[]string{`1 {"eventType":"conversion","eventName":"Shared","userToken":"u","objectIDs":["1"]}`}},
		"an unknown track call": {Form{}, `{"type":"track","event":"Signed Up","userId":"u"}`,
			[]string{`1 fault "Signed Up" is no type of event`}},
		"a misspelt track call": {Form{}, `{"type":"track","event":"Prodcut Viewed","userId":"u"}`,
			[]string{`1 fault "Prodcut Viewed" is no type of event`}},
		"a track call whose name is no text": {Form{}, `{"type":"track","event":["Mine"],"userId":"u","properties":{"product_id":"1"}}`,
			[]string{`1 fault The field event of the track call must be a string, not an array`}},
		"a track call in other case": {Form{Types: map[string]string{"product viewed": "click"}}, `{"type":"track","event":"product viewed ","userId":"u","properties":{"product_id":"1"}}`,
			[]string{`1 {"eventType":"click","eventName":"product viewed","userToken":"u","objectIDs":["1"]}`}},
		"a track call without a product": {Form{}, `{"type":"track","event":"Product Viewed","userId":"u"}`, []string{"1 fault " + track.ErrObjects.Error()}},
		"an order of more objects than an event may have": {Form{Shift: time.Hour, Now: shift.Now}, fmt.Sprintf(`{"type":"track","event":"Order Completed","userId":"u","timestamp":"2026-11-21T09:00:00Z","properties":{"products":[{"sku":"1"}%s]}}`+"\n"+own,
			`,{"sku":"2"},{"sku":"3"},{"sku":"4"},{"sku":"5"},{"sku":"6"},{"sku":"7"},{"sku":"8"},{"sku":"9"},{"sku":"10"},{"sku":"11"},{"sku":"12"},{"sku":"13"},{"sku":"14"},{"sku":"15"},{"sku":"16"},{"sku":"17"},{"sku":"18"},{"sku":"19"},{"sku":"20"},{"sku":"21"}`),
			[]string{
				`1 {"eventType":"conversion","eventName":"Order Completed","userToken":"u","timestamp":1795255200000,"objectIDs":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18","19","20"]}`,
				`1 {"eventType":"conversion","eventName":"Order Completed","userToken":"u","timestamp":1795255200000,"objectIDs":["21"]}`,
				`2 {"eventName":"Seen","eventType":"view","objectIDs":["1"],"timestamp":1795258800000,"userToken":"u"}`,
			}},
		"a list":                 {Form{}, " [ " + own + ",\n {\"a\":\n1} ]\n", []string{"1 " + own, `2 {"a":1}`}},
		"a list that is cut off": {Form{}, "[" + own + ",", []string{"1 " + own, "read x beyond line 1 (is it damaged or cut short?): after object 1 of the list: jsontext: unexpected EOF after offset 101"}},
		"an empty list":          {Form{}, "[]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := all(t, c.form, strings.TrimLeft(c.text, " "))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCSV(t *testing.T) {
	const head = "event_time,event_type,product_id,user_id,price\n"
	columns := map[string]string{"timestamp": "event_time", "objectIDs": "product_id", "userToken": "user_id"}
	types := map[string]string{"cart": "click"}
	for name, c := range map[string]struct {
		form Form
		text string
		want []string
	}{
		"mapped": {Form{Columns: columns, Types: types},
			"\ufeff" + head + "2019-10-01 00:00:00 UTC,view,44600062,541312140,35.79\n1569888000,cart,1|2,\"5\",\n",
			[]string{
				`2 {"eventType":"view","eventName":"view","userToken":"541312140","objectIDs":["44600062"],"timestamp":1569888000000}`,
				`3 {"eventType":"click","eventName":"cart","userToken":"5","objectIDs":["1","2"],"timestamp":1569888000000}`,
			}},
		"by their names": {Form{}, "userToken,eventType,eventName,filters\nu,view,Seen,color:Red|size:L\n",
			[]string{`2 {"eventType":"view","eventName":"Seen","userToken":"u","filters":["color:Red","size:L"]}`}},
		"times": {Form{Columns: columns, Shift: time.Hour, Now: time.Date(2019, 10, 1, 0, 0, 0, 0, time.UTC)},
			head + "2019-10-01T02:00:00 +02,view,1,2,3\n1569888000000000,view,1,2,3\n,view,1,2,3\n2019-10-01 EST,view,1,2,3\n2019-10-01 00:00:00 EST,view,1,2,3\n" +
				"0,view,1,2,3\n9999-12-31,view,1,2,3\n2019-10-01 00:05:01,view,1,2,3\n",
			[]string{
				`2 {"eventType":"view","eventName":"view","userToken":"2","objectIDs":["1"],"timestamp":1569891600000}`,
				`3 {"eventType":"view","eventName":"view","userToken":"2","objectIDs":["1"],"timestamp":1569891600000}`,
				`4 {"eventType":"view","eventName":"view","userToken":"2","objectIDs":["1"]}`,
				"5 fault " + event.ErrTimeForm.Error(), "6 fault " + event.ErrTimeZone.Error(), "7 fault " + event.ErrTimeNumber.Error(),
				"8 fault " + event.ErrTimeRange.Error(), "9 fault " + event.ErrTimeAhead.Error(),
			}},
		"bad rows": {Form{Columns: columns}, head + "2019-10-01,view,1\n\"2019-10-01\n\",view,1,2,3\n2019-10-01,steal,1,2,3\n2019-10-01,view,1,2,3\n",
			[]string{
				"2 fault the row has 3 cells, and the line of names has 5",
				`3 {"eventType":"view","eventName":"view","userToken":"2","objectIDs":["1"],"timestamp":1569888000000}`,
				`5 fault "steal" is no type of event`,
				`6 {"eventType":"view","eventName":"view","userToken":"2","objectIDs":["1"],"timestamp":1569888000000}`,
			}},
		"a column that is not there": {Form{Columns: map[string]string{"userToken": "visitor"}}, head,
			[]string{"x: --map userToken=visitor: the columns are event_time, event_type, product_id, user_id, price"}},
		"no user": {Form{}, head,
			[]string{"x: no column holds userToken: name one with --map userToken=user_id; the columns are event_time, event_type, product_id, user_id, price"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, all(t, c.form, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewest(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := io.WriteString(w, `[{"timestamp":"2019-10-01T00:00:05Z"},{"timestamp":1569888007},{"timestamp":"never"},{"timestamp":0},{"a":1},`+
		`{"timestamp":"9999-12-31"},{"timestamp":"2026-11-21T10:05:00.001Z"},{"timestamp":7}]`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := NewSource("x", &zipped, -1)
	s.As(Form{})
	if newest, err := s.Newest(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)); newest != 1_569_888_007_000 || err != nil {
		t.Errorf("%d, %v; want 1569888007000", newest, err)
	}
}
