package ingest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	domain "github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const success = `{"success":true}`

// viewed is a track call of now.
func viewed(user, product string) string {
	return fmt.Sprintf(`{"type":"track","event":"Product Viewed","userId":%q,"timestamp":%q,"properties":{"product_id":%q,"search_index":"shoes"}}`,
		user, time.Now().Format(time.RFC3339Nano), product)
}

func batch(calls ...string) string { return `{"batch":[` + strings.Join(calls, ",") + `]}` }

// counts are the refused and ignored calls by reason.
func counts(t *testing.T, s *stack.Stack) map[string]int64 {
	t.Helper()
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
	_, counts, err := s.Backends.Store.Refused.ReadRefused(t.Context(), functiontest.App, s.Backends.Now())
	must.Succeed(t, err)
	return counts
}

func TestCallsAreStored(t *testing.T) {
	s, h := started(t)
	again := viewed("ann", "1")
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/v1/batch", batch(again, again, viewed("bob", "1"), `{"type":"identify","userId":"eve"}`), 200, success),
		functiontest.Ask("search", "POST", "/v1/batch", batch(again), 200, success),
		functiontest.Ask("search", "POST", "/v1/track", viewed("cid", "1"), 200, success),
		functiontest.Ask("search", "POST", "/v1/batch", batch(), 200, success),
	)
	must.Succeed(t, s.Idle(t.Context()))
	p := profiles.New(s.Backends.ForProfiles())
	functiontest.Check(t, p,
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":1`), // sent three times
		functiontest.Ask("recommendation", "GET", "/1/explain/bob", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/explain/cid", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/profiles/eve", "", 404, ""),
	)
}

// An SDK sends calls of many kinds in one batch. Those that give no event are counted by
// reason, and hinder no other.
func TestOtherCallsAreCounted(t *testing.T) {
	s, h := started(t)
	old := `{"type":"track","event":"Product Viewed","userId":"ann","timestamp":"2020-01-01T00:00:00Z","properties":{"product_id":"1","search_index":"i"}}`
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/v1/batch", batch(
			`{"type":"page","userId":"ann"}`, `{"type":"page","userId":"ann"}`, `{"type":"screen","userId":"ann"}`, `{"type":"vote","userId":"ann"}`, `5`,
			`{"type":"track","event":"Signed Up","userId":"ann","properties":{"email":"ann@shop.example"}}`,
			`{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":"1"}}`,
			viewed("ann@shop.example", "1"), old, viewed("ann", "1")), 200, success),
		functiontest.Ask("search", "POST", "/v1/group", `{"userId":"ann","groupId":"g"}`, 200, success),
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `"event":{"eventType":"","eventName":"Signed Up","userToken":"ann"}`),
	)
	want := map[string]int64{
		"Ignored: page call": 2, "Ignored: screen call": 1, "Ignored: group call": 1, "Ignored: call of an unknown type": 1,
		"The call is not a JSON object with the fields of a track call": 1,
		"The name of the track call has no type of event: use a name of Segment's e-commerce specification, or set properties.event_type to view, click or conversion": 1,
		"The track call names no index: set properties.search_index, add ?index= to the URL, or use a key that is for one index":                                       1,
		"UserToken must contain only alphanumeric, equal, plus, slash, hyphen, or underscore characters, and be between 1 and 128 characters long":                     1,
		"The timestamp is too far in the past": 1,
	}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	must.Succeed(t, s.Idle(t.Context()))
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()), functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":1`))
}

// A call with a time that is none is refused, however often it is sent: it does not become
// an event of now. One whose clock is ahead does, and one without a time.
func TestTimesOfCalls(t *testing.T) {
	s, h := started(t)
	call := func(user, timestamp string) string {
		return fmt.Sprintf(`{"type":"track","event":"Product Viewed","userId":%q,"timestamp":%s,"properties":{"product_id":"1","search_index":"shoes"}}`, user, timestamp)
	}
	at := s.Backends.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	bad := []string{
		call("bad", `"1970-01-01T00:00:00Z"`), call("bad", `0`), call("bad", `"0"`), call("bad", `20261121`),
		call("bad", `"`+at.Format("2006-01-02 15:04:05")+` EST"`), call("bad", `"yesterday"`), call("bad", `{"at":1}`),
	}
	good := []string{
		call("good", fmt.Sprint(at.Unix())), call("good", fmt.Sprint(at.UnixMicro())), call("good", fmt.Sprintf("%q", at.In(time.FixedZone("", -5*3600)).Format("2006-01-02 15:04:05-07"))),
		call("good", fmt.Sprintf("%q", at.Format(http.TimeFormat))),
	}
	ahead := call("ahead", fmt.Sprintf("%q", at.Add(49*time.Hour).Format(time.RFC3339)))
	calls := append(append(bad, good...), ahead, call("none", "null"))
	functiontest.Check(t, h, functiontest.Ask("search", "POST", "/v1/batch", batch(calls...), 200, success))
	want := map[string]int64{domain.ErrTimeRange.Error(): 1, domain.ErrTimeNumber.Error(): 3, domain.ErrTimeZone.Error(): 1, domain.ErrTimeForm.Error(): 2}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	must.Succeed(t, s.Idle(t.Context()))
	p := profiles.New(s.Backends.ForProfiles())
	functiontest.Check(t, p,
		functiontest.Ask("recommendation", "GET", "/1/profiles/bad", "", 404, ""),
		functiontest.Ask("recommendation", "GET", "/1/explain/good", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/explain/ahead", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/explain/none", "", 200, `"accepted":1`),
	)
}

// spoiled is a call about a product whose id is not text.
func spoiled(product string) string {
	return strings.Replace(viewed("ann", "spoiled"), "spoiled", product, 1)
}

// A call that is not UTF-8 is refused alone, and nothing of it is stored.
func TestCallsThatAreNotUTF8(t *testing.T) {
	s, h := started(t)
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/v1/batch", batch(viewed("ann", "1"), spoiled("caf\xe9"), spoiled("\x83V\x83\x83"), viewed("ann", "2")), 200, success),
		functiontest.Ask("search", "POST", "/v1/track", spoiled("caf\xe9"), 200, success),
		functiontest.Ask("search", "POST", "/v1/identify", "{\"userId\":\"caf\xe9\"}", 200, success),
		functiontest.Ask("search", "POST", "/v1/track", "\ufeff"+viewed("ann", "3"), 200, success),
		functiontest.Ask("search", "POST", "/1/events", "\ufeff{\"events\":[{\"eventType\":\"view\",\"eventName\":\"V\",\"userToken\":\"ann\",\"index\":\"shoes\",\"objectIDs\":[\"4\"]}]}", 200, "OK"),
	)
	want := map[string]int64{}
	for reason, n := range map[string]int64{"WINDOWS-1252": 3, "SHIFT_JIS": 1} {
		want["The call is not valid UTF-8: it is probably "+reason+", which `iconv -f "+reason+" -t UTF-8 FILE` converts"] = n
	}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	must.Succeed(t, s.Idle(t.Context()))
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()), functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":4`))
}

func TestRequestsOfSDKsAreRefused(t *testing.T) {
	_, h := started(t)
	many := batch(strings.Repeat(`{"type":"page"},`, api.MaxCalls) + `{"type":"page"}`)
	functiontest.Check(t, h,
		functiontest.Ask("", "POST", "/v1/batch", batch(), 401, "Invalid credentials"),
		functiontest.Ask("admin", "POST", "/v1/track", viewed("ann", "1"), 403, "Method not allowed with this API key"),
		functiontest.Ask("search", "POST", "/v1/batch", `{"batch":[`, 400, "Bad Request: the body must be"),
		functiontest.Ask("search", "POST", "/v1/batch", viewed("ann", "1"), 400, "Bad Request: the body must be"),
		functiontest.Ask("search", "POST", "/v1/track", `{"`, 400, "Bad Request: the body must be"),
		functiontest.Ask("search", "POST", "/v1/batch", many, 422, "Cannot process more than 1000 calls in a batch"),
		functiontest.Ask("search", "POST", "/v1/batch", strings.Repeat(" ", api.MaxEventsBody+1), 413, "Request Entity Too Large"),
		functiontest.Ask("search", "POST", "/v1/import", batch(), 404, "Path not supported"),
		functiontest.Ask("search", "POST", "/v1/batch?source=1", batch(), 422, "Unknown query option"),
		functiontest.Ask("search", "GET", "/v1/batch", "", 405, "Method Not Allowed"),
	)
}

// sendBasic sends a request as SDKs do: a write key as the user name, a body in gzip.
func sendBasic(h http.Handler, writeKey, path, body string) *httptest.ResponseRecorder {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(body)) // a buffer takes everything
	_ = w.Close()
	r := httptest.NewRequest("POST", path, &packed)
	r.SetBasicAuth(writeKey, "")
	r.Header.Set("Content-Encoding", "gzip")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

// The index of calls that name none is that of the URL, else the only one of the key.
func TestIndexOfCalls(t *testing.T) {
	s, h := started(t)
	for key, indexes := range map[string][]string{"one": {"shoes"}, "two": {"shoes", "hats"}, "any": {"shoes*"}} {
		must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, config.Key{Hash: auth.Hash(key), ACL: []string{auth.Search}, Indexes: indexes}))
	}
	call := func(user string) string {
		return `{"type":"track","event":"Product Viewed","userId":"` + user + `","properties":{"product_id":"1"}}`
	}
	for _, test := range []struct {
		key, path, user string
		status          int
		stored          bool
	}{
		{"one", "/v1/batch", "u1", 200, true},
		{"two", "/v1/batch", "u2", 200, false},
		{"any", "/v1/batch", "u3", 200, false},
		{"two", "/v1/batch?index=hats", "u4", 200, true},
		{"one", "/v1/batch?index=hats", "u5", 403, false},
	} {
		if w := sendBasic(h, functiontest.App+":"+test.key, test.path, batch(call(test.user))); w.Code != test.status {
			t.Errorf("%s of key %s: %d %s", test.path, test.key, w.Code, w.Body)
		}
		must.Succeed(t, s.Idle(t.Context()))
		_, answer := functiontest.Call(profiles.New(s.Backends.ForProfiles()), "recommendation", "GET", "/1/explain/"+test.user, "")
		if stored := strings.Contains(answer, `"accepted":1`); stored != test.stored {
			t.Errorf("%s of key %s: the event is stored: %v", test.path, test.key, stored)
		}
	}
}

// SDKs wait as long as Retry-After says.
func TestLimitOfCalls(t *testing.T) {
	s, h := started(t)
	must.Succeed(t, s.Backends.CachedConfig.SetLimits(t.Context(), functiontest.App, limit.Numbers{EventsPerSecond: 1}))
	many := batch(strings.Repeat(viewed("ann", "1")+",", api.MaxCalls-1) + viewed("ann", "2"))
	if w := sendBasic(h, functiontest.App+":search", "/v1/batch", many); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := sendBasic(h, functiontest.App+":search", "/v1/batch", many); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
}

// Orders of many products need several messages.
func TestBatchOfManyEvents(t *testing.T) {
	s, h := started(t)
	var products []string
	for i := range 50 * api.MaxEventTargets {
		products = append(products, fmt.Sprintf(`{"sku":"%d"}`, i))
	}
	order := `{"type":"track","event":"Order Completed","userId":"ann","properties":{"search_index":"shoes","products":[` + strings.Join(products, ",") + `]}}`
	orders := make([]string, api.MaxEvents/50+1)
	for i := range orders {
		orders[i] = order // without a time, so each counts
	}
	functiontest.Check(t, h, functiontest.Ask("search", "POST", "/v1/batch", batch(orders...), 200, success))
	must.Succeed(t, s.Idle(t.Context()))
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()),
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, fmt.Sprintf(`"accepted":%d`, 50*len(orders))))
}

// An SDK delivers a call again: with its messageId it is one event, whatever its time and
// the clock of the device. Calls with two messageIds are two, also in one moment.
func TestDeliveriesOfCall(t *testing.T) {
	s, h := started(t)
	now := s.Backends.Now().UTC()
	call := func(user, messageID, times string) string {
		return fmt.Sprintf(`{"type":"track","event":"Product Viewed","userId":%q,"messageId":%q,%s"properties":{"product_id":"1","search_index":"shoes"}}`, user, messageID, times)
	}
	at := func(d time.Duration) string { return fmt.Sprintf("%q", now.Add(d).Format(time.RFC3339Nano)) }
	for i := range 3 {
		attempt := time.Duration(i) * time.Second
		sent := func(user string, off time.Duration) string { // by a clock that is off
			return fmt.Sprintf(`{"sentAt":%s,"batch":[%s]}`, at(off+attempt), call(user, "m1", `"timestamp":`+at(off-time.Hour)+`,`))
		}
		functiontest.Check(t, h,
			functiontest.Ask("search", "POST", "/v1/batch", batch(
				call("none", "m1", ""), call("ahead", "m1", `"timestamp":`+at(48*time.Hour)+`,`),
				call("two", "m1", `"timestamp":`+at(-time.Hour)+`,`), call("two", "m2", `"timestamp":`+at(-time.Hour)+`,`)), 200, success),
			functiontest.Ask("search", "POST", "/v1/batch", sent("behind", -45*24*time.Hour), 200, success),
			functiontest.Ask("search", "POST", "/v1/batch", sent("early", 48*time.Hour), 200, success),
			functiontest.Ask("search", "POST", "/v1/track", call("one", "m1", ""), 200, success),
		)
		must.Succeed(t, s.Idle(t.Context()))
	}
	if got := counts(t, s); len(got) != 0 {
		t.Errorf("refused: %v", got)
	}
	p := profiles.New(s.Backends.ForProfiles())
	for user, events := range map[string]int{"none": 1, "ahead": 1, "two": 2, "behind": 1, "early": 1, "one": 1} {
		functiontest.Check(t, p, functiontest.Ask("recommendation", "GET", "/1/explain/"+user, "", 200, fmt.Sprintf(`"accepted":%d`, events)))
	}
	functiontest.Check(t, p, functiontest.Ask("recommendation", "GET", "/1/explain/behind", "", 200, now.Add(-time.Hour).Format("2006-01-02T15:")))
}
