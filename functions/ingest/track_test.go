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
	"github.com/affinityengine/affinity/shared/api/track"
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
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `"hint":"PUT /1/track-names {\"names\":{\"Signed Up\":\"click\"}}, or `+"`affinity events names`"+`, gives this one a type"`),
	)
	want := map[string]int64{
		"Ignored: page call": 2, "Ignored: screen call": 1, "Ignored: group call": 1, "Ignored: call of an unknown type": 1,
		"The call is not a JSON object with the fields of a track call": 1,
		track.ErrType.Error(): 1,
		"The track call names no index: set properties.search_index, add ?index= to the URL, or use a key that is for one index":                                                                            1,
		"The userId or anonymousId of the track call is no user token, which has 1 to 129 of a-z, A-Z, 0-9 and _=/+-: send such a token, or use a key that hashes ids (affinity app key add --hash-tokens)": 1,
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

// putKey gives the app a key with the permission search.
func putKey(t *testing.T, s *stack.Stack, k config.Key, text string) {
	t.Helper()
	k.Hash, k.ACL = auth.Hash(text), []string{auth.Search}
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, k))
}

// Calls follow the names that the app has given a type, in a batch and alone.
func TestNamesOfTheApp(t *testing.T) {
	s, h := started(t)
	call := func(user, name string) string { return strings.Replace(viewed(user, "1"), "Product Viewed", name, 1) }
	both := batch(call("ann", "Recipe Saved"), call("ann", "Coupon Entered"))
	functiontest.Check(t, h, functiontest.Ask("search", "POST", "/v1/batch", both, 200, success))
	want := map[string]int64{track.ErrType.Error(): 1, "Ignored: Coupon Entered call: it is about a coupon and not about a product": 1}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	functiontest.Check(t, h, // no event can have this name
		functiontest.Ask("search", "POST", "/v1/track", call("eve", "Käufe"), 200, success),
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `"hint":"The name of an event has 1 to 64 visible ASCII characters: give the call such a name"`),
	)
	want[track.ErrType.Error()]++
	names, err := s.Backends.CachedConfig.SetTrackNames(t.Context(), functiontest.App, config.TrackNames{"Recipe Saved": "conversion", "Coupon Entered": "click"})
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/v1/batch", both, 200, success),
		functiontest.Ask("search", "POST", "/v1/track", call("bob", " Recipe  Saved "), 200, success),
	)
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	must.Succeed(t, s.Idle(t.Context()))
	p := profiles.New(s.Backends.ForProfiles())
	functiontest.Check(t, p,
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":2`),
		functiontest.Ask("recommendation", "GET", "/1/explain/bob", "", 200, `conversion \"Recipe Saved\" (1)`),
	)
}

// With a key that hashes tokens any id of a user is good, and each is hashed: also one that
// is a token. The id itself is kept nowhere, and other keys hash nothing.
func TestKeyThatHashesTokens(t *testing.T) {
	s, h := started(t)
	putKey(t, s, config.Key{HashTokens: true}, "hashing")
	ids := []string{"ann@shop.example", "auth0|5f7c", "us-east-1:0b1a", "1234567890.1609459200", "gid://shopify/Customer/1", "ann", "é", strings.Repeat("x", 500), " "}
	var calls []string
	for _, id := range ids {
		calls = append(calls, viewed(id, "1"))
	}
	anonymous := strings.Replace(viewed("anonymous@shop.example", "1"), "userId", "anonymousId", 1)
	unknown := strings.Replace(viewed("cid@shop.example", "1"), "Product Viewed", "Mine", 1)
	functiontest.Check(t, h,
		functiontest.Ask("hashing", "POST", "/v1/batch", batch(append(calls, unknown)...), 200, success),
		functiontest.Ask("hashing", "POST", "/v1/track", anonymous, 200, success),
		functiontest.Ask("hashing", "POST", "/v1/batch", batch(`{"type":"track","event":"Product Viewed","properties":{"product_id":"1","search_index":"shoes"}}`), 200, success),
		functiontest.Ask("search", "POST", "/v1/batch", batch(viewed("bob", "1"), viewed("bob@shop.example", "1")), 200, success),
	)
	must.Succeed(t, s.Idle(t.Context()))
	p := profiles.New(s.Backends.ForProfiles())
	for _, id := range append(ids, "anonymous@shop.example") {
		functiontest.Check(t, p, functiontest.Ask("recommendation", "GET", "/1/explain/"+domain.HashToken(id), "", 200, `"accepted":1`))
	}
	functiontest.Check(t, p,
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":0`),
		functiontest.Ask("recommendation", "GET", "/1/explain/bob", "", 200, `"accepted":1`),
		functiontest.Ask("recommendation", "GET", "/1/explain/"+domain.HashToken(""), "", 200, `"accepted":0`),
	)
	// What the page about keys prints, which programs in other languages compute.
	if got := domain.HashToken("ann@example.com"); got != "cdT1X3L6Eo37RooaOQFQfIBLdDFkiHRNdp1_SxZpZHY" || !domain.ValidUserToken(got) {
		t.Errorf("the hash is %s", got)
	}
	_, refused := functiontest.Call(h, "recommendation", "GET", "/1/events/refused", "")
	for text, there := range map[string]bool{domain.HashToken("cid@shop.example"): true, "cid@shop.example": false, "affinity app key add --hash-tokens": true, "The userToken field is required": true} {
		if strings.Contains(refused, text) != there {
			t.Errorf("%q is in the refused list: %v, want %v\n%s", text, !there, there, refused)
		}
	}
}

// What such a key cannot hash it refuses: no user has two profiles because of it.
func TestKeyThatHashesTokensSendsNoEvents(t *testing.T) {
	s, h := started(t)
	putKey(t, s, config.Key{HashTokens: true}, "hashing")
	one := `{"events":[{"eventType":"view","eventName":"V","userToken":"ann","index":"shoes","objectIDs":["4"]}]}`
	functiontest.Check(t, h,
		functiontest.Ask("hashing", "POST", "/1/events", one, 403, "This API key hashes the ids of users"),
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, "This API key hashes the ids of users"),
		functiontest.Ask("search", "POST", "/1/events", one, 200, "OK"),
	)
}

// A value of the wrong type is named beside the reason, which is that of the Insights API.
func TestRefusalsNameTheField(t *testing.T) {
	_, h := started(t)
	for field, change := range map[string][2]string{
		"userToken":           {`"userToken":"ann"`, `"userToken":7`},
		"eventName":           {`"eventName":"V"`, `"eventName":true`},
		"timestamp":           {`"eventName":"V"`, `"eventName":"V","timestamp":"now"`},
		"objectIDs":           {`["4"]`, `[4]`},
		"positions":           {`"eventName":"V"`, `"eventName":"V","positions":["1"]`},
		"objectData":          {`"eventName":"V"`, `"eventName":"V","objectData":[{"price":1},7]`},
		"objectData.quantity": {`"eventName":"V"`, `"eventName":"V","objectData":[{},{"price":1,"quantity":"2"}]`},
	} {
		body := `{"events":[` + strings.Replace(`{"eventType":"view","eventName":"V","userToken":"ann","index":"shoes","objectIDs":["4"]}`, change[0], change[1], 1) + `]}`
		functiontest.Check(t, h,
			functiontest.Ask("search", "POST", "/1/events", body, 422, `"message":"Invalid type for field events: expected `),
			functiontest.Ask("search", "POST", "/1/events", body, 422, `,"field":"`+field+`"}`),
			functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `,"field":"`+field+`","event":`),
		)
	}
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/1/events", `{"events":[7]}`, 422, `"field":"events"`),
		functiontest.Ask("search", "POST", "/1/events", `{"events":7}`, 422, `"field":"events"`),
		functiontest.Ask("search", "POST", "/v1/batch", batch(strings.Replace(viewed("ann", "1"), `"ann"`, `["ann"]`, 1)), 200, success),
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200,
			`"reason":"The field userId of the track call must be a string or a number, not an array","field":"userId","event":{"eventType":"view","eventName":"Product Viewed"`),
	)
}
