package clientscript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/chromium"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// sent is a request with events that a page sent.
type sent struct {
	Beacon bool
	Status int
	Events []api.Event
}

// wire passes requests of pages on to an engine, notes those with events, and answers some itself.
type wire struct {
	engine http.Handler

	mu     sync.Mutex
	answer func(w http.ResponseWriter, r *http.Request) bool // reports whether it has answered
	events []sent
	left   map[string]bool // users of pages that are gone, whose events may arrive late and twice
}

func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the page is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	recorder, status := httptest.NewRecorder(), 0
	note := func() {
		var in api.EventsRequest
		if r.Method != http.MethodPost || r.URL.Path != "/1/events" || json.Unmarshal(body, &in) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if in.Events = slices.DeleteFunc(in.Events, func(e api.Event) bool { return w.left[e.UserToken] }); len(in.Events) == 0 {
			return
		}
		w.events = append(w.events, sent{r.Header.Get("Sec-Fetch-Mode") == "no-cors", status, in.Events})
	}
	defer note()
	if answer == nil || !answer(recorder, r) {
		w.engine.ServeHTTP(recorder, r)
	}
	status = recorder.Code
	for name, values := range recorder.Header() {
		out.Header()[name] = values
	}
	out.WriteHeader(recorder.Code)
	_, _ = out.Write(recorder.Body.Bytes())
}

// set makes the wire answer requests itself; nil: none. It forgets what was sent.
func (w *wire) set(answer func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer, w.events = answer, nil
}

func (w *wire) sent() []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sent(nil), w.events...)
}

// world is an engine, the wire before it, and a browser.
type world struct {
	*wire
	t         *testing.T
	ctx       context.Context
	page, url string
	client    *client.Client
}

// open opens a page with the script. Its times pass twenty times as fast as they are, and it notes
// them and its errors. What the page before sends is not noted any more.
func (w *world) open() {
	w.t.Helper()
	if user := eval[string](w, `window.shop?.userToken ?? ""`); user != "" {
		w.mu.Lock()
		w.left[user] = true
		w.mu.Unlock()
	}
	must.Succeed(w.t, chromedp.Do(w.ctx, chromedp.Navigate(w.page)))
	eval[bool](w, `(() => {
		window.waits = []; window.faults = [];
		const real = setTimeout;
		window.setTimeout = (work, ms) => { waits.push(ms); return real(work, ms / 20); };
		Math.random = () => 0.5;
		addEventListener("error", (e) => faults.push(String(e.message)));
		addEventListener("unhandledrejection", (e) => faults.push(String(e.reason)));
		window.shop = affinity({ app: "demo", key: "pagekey", index: "products" });
		return true;
	})()`)
}

// faultless fails the test if the page has seen an error.
func (w *world) faultless() {
	w.t.Helper()
	if faults := eval[[]string](w, `faults`); len(faults) > 0 {
		w.t.Errorf("the page has the errors %q", faults)
	}
}

// eval evaluates JavaScript in the page.
func eval[T any](w *world, expression string) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// await waits until the events of a request that the engine accepted are there, and returns all requests.
func (w *world) await(accepted int) []sent {
	w.t.Helper()
	w.until(fmt.Sprintf("%d accepted events", accepted), func() bool {
		n := 0
		for _, s := range w.sent() {
			if s.Status == http.StatusOK {
				n += len(s.Events)
			}
		}
		return n >= accepted
	})
	return w.sent()
}

// until waits until something has happened.
func (w *world) until(what string, happened func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !happened(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			var all strings.Builder
			for _, s := range w.sent() {
				fmt.Fprintf(&all, "\n%d %t %q", s.Status, s.Beacon, ids([]sent{s}))
			}
			w.t.Fatalf("%s do not come; sent:%s", what, &all)
		}
	}
}

// ids are the objects of events, in their order.
func ids(requests []sent) (all []string) {
	for _, r := range requests {
		for _, e := range r.Events {
			all = append(all, strings.Join(e.ObjectIDs, " "))
		}
	}
	return all
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := chromium.Open(t, "")
	s, err := stack.Start(t.Context(), stack.Options{RetentionDays: 90, Apps: []stack.App{{ID: "demo", Key: "demokey"}}})
	must.Succeed(t, err)
	must.CloseAtEnd(t, s)
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey", Retry: client.NoRetry})
	must.Succeed(t, err)
	must.Succeed(t, s.Backends.CachedConfig.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("pagekey"), ACL: []string{auth.Search}}))
	must.Succeed(t, s.Backends.CachedConfig.SetBrowserRanking(t.Context(), "demo", true))
	err = c.Strategies().Set(t.Context(), api.Strategy{PersonalizationImpact: 100, EventsScoring: []api.EventScore{{EventName: "Product Clicked", EventType: "click", Score: 5}}, FacetsScoring: []api.FacetScore{{FacetName: "brand", Score: 100}}})
	must.Succeed(t, err)
	_, err = c.Feeds().Set(t.Context(), "news", api.FeedRequest{Index: "products", Date: "publishedAt"})
	must.Succeed(t, err)
	for id, brand := range map[string]string{"a": "Acme", "b": "Kestrel", "c": "Vandal"} {
		record := fmt.Sprintf(`{"objectID":%q,"brand":%q,"publishedAt":%q}`, id, brand, time.Now().Add(-time.Hour).Format(time.RFC3339))
		_, err := c.Catalog().Batch(t.Context(), "products", api.BatchAction{Action: api.ActionAddObject, Body: []byte(record)})
		must.Succeed(t, err)
	}

	target, err := url.Parse(s.URL)
	must.Succeed(t, err)
	w := &world{wire: &wire{engine: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}, left: map[string]bool{}}, t: t, ctx: ctx, client: c}
	engine := httptest.NewServer(w)
	t.Cleanup(engine.Close)
	pages := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(out, `<!doctype html><link rel="icon" href="data:,"><title>shop</title><script src="%s/client.js"></script>`, engine.URL)
	}))
	t.Cleanup(pages.Close)
	w.page, w.url = pages.URL, engine.URL
	return w
}

// In a page of another origin than the engine.
func TestClientScript(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name string
		run  func(*world)
	}{
		{"events go together", eventsGoTogether}, {"a beacon as the visitor leaves", beaconOnLeave},
		{"events are sent again", eventsAreSentAgain}, {"a bad event takes no other one with it", badEventAlone},
		{"storage after consent", storageAfterConsent}, {"who is signed in", signedIn},
		{"order", order}, {"the given order", givenOrder}, {"feeds", feeds}, {"secured key", securedKey}, {"who was anonymous before", anonymousBefore}, {"hostile arguments", hostileArguments},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.t = t
			w.open()
			w.set(nil)
			test.run(w)
		})
	}
}

func eventsGoTogether(w *world) {
	eval[bool](w, `shop.view("a"), shop.click(["b", "b", 3]), shop.buy("c", { value: 5, currency: "EUR" }), true`)
	all := w.await(3)
	user := eval[string](w, `shop.userToken`)
	if len(all) != 1 || all[0].Beacon || !strings.HasPrefix(user, "anonymous-") || len(user) != 42 {
		w.t.Fatalf("%+v of %s, want three events of a random user in one request", all, user)
	}
	kinds := ""
	for _, e := range all[0].Events {
		kinds += fmt.Sprintf("%s %s %v %s %v\n", e.EventType, e.EventName, e.ObjectIDs, e.Index, e.Value)
		if age := time.Since(time.UnixMilli(e.Timestamp)); e.UserToken != user || age < -time.Minute || age > time.Minute || e.AuthenticatedUserToken != "" {
			w.t.Errorf("event %+v, want one of now of %s", e, user)
		}
	}
	if diff := cmp.Diff("view Product Viewed [a] products <nil>\nclick Product Clicked [b 3] products <nil>\nconversion Order Completed [c] products 5\n", kinds); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
	w.set(nil)
	eval[bool](w, `shop.view(Array.from({ length: 2100 }, (_, i) => "p" + i)), true`)
	for _, request := range w.await(105) {
		if len(request.Events) > 50 {
			w.t.Errorf("a request has %d events", len(request.Events))
		}
		for _, e := range request.Events {
			if len(e.ObjectIDs) != 20 {
				w.t.Errorf("an event has %d objects", len(e.ObjectIDs))
			}
		}
	}
}

func beaconOnLeave(w *world) {
	eval[bool](w, `window.setTimeout = () => 0, shop.click("left"), location.replace("about:blank"), true`)
	if all := w.await(1); len(all) != 1 || !all[0].Beacon {
		w.t.Errorf("%+v, want one beacon", all)
	}
}

func eventsAreSentAgain(w *world) {
	tries := 0
	w.set(func(out http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/1/events" {
			return false
		}
		if tries++; tries == 2 || tries == 3 {
			out.Header().Set("Access-Control-Allow-Origin", "*")
			out.Header().Set("Access-Control-Expose-Headers", "retry-after")
		}
		switch tries {
		case 1: // of a proxy, which a page cannot read; Chromium itself repeats a request whose connection breaks
			out.WriteHeader(http.StatusBadGateway)
		case 2:
			out.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			out.Header().Set("Retry-After", "30")
			out.WriteHeader(http.StatusTooManyRequests)
		default:
			return false
		}
		return true
	})
	eval[bool](w, `shop.click("a"), true`)
	all := w.await(1)
	if last := all[len(all)-1]; len(last.Events) != 1 || last.Events[0].ObjectIDs[0] != "a" {
		w.t.Errorf("%+v, want the event again", all)
	}
	// The first 200 ms, then a second, two, and the half minute that the engine asks for; with the factor of chance 0.75.
	if diff := cmp.Diff([]float64{200, 750, 1500, 30000}, eval[[]float64](w, `waits`)); diff != "" {
		w.t.Errorf("waits in ms (-want +got):\n%s", diff)
	}
	w.faultless()
	// An engine that is away for long costs the page 500 events of memory, and those that are under way.
	under, away := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.set(func(out http.ResponseWriter, r *http.Request) bool {
		once.Do(func() { close(under) })
		<-away
		out.WriteHeader(http.StatusInternalServerError)
		return true
	})
	eval[bool](w, `(() => { for (let i = 0; i < 50; i++) shop.view("q" + i); return true })()`)
	select {
	case <-under:
	case <-time.After(20 * time.Second):
		w.t.Error("50 events are not sent")
	}
	eval[bool](w, `(() => { for (let i = 50; i < 900; i++) shop.view("q" + i); return true })()`)
	close(away)
	w.until("events", func() bool { return len(w.sent()) > 0 })
	w.set(nil)
	if got := ids(w.await(550)); got[0] != "q0" || got[50] != "q400" || got[549] != "q899" || len(got) != 550 {
		w.t.Errorf("%d events arrived: %v, want those under way and the newest 500", len(got), got)
	}
}

func badEventAlone(w *world) {
	eval[bool](w, `(() => { for (let i = 0; i < 9; i++) shop.view("g" + i, i === 5 && { eventName: "" }); return true })()`)
	var accepted []string
	for _, s := range w.await(8) {
		if s.Status == http.StatusOK {
			accepted = append(accepted, ids([]sent{s})...)
		}
	}
	if diff := cmp.Diff([]string{"g0", "g1", "g2", "g3", "g4", "g6", "g7", "g8"}, accepted); diff != "" {
		w.t.Errorf("accepted (-want +got):\n%s", diff)
	}
}

func storageAfterConsent(w *world) {
	stored := func(want int) {
		w.t.Helper()
		if got := eval[int](w, `localStorage.length + document.cookie.length`); got != want {
			w.t.Errorf("the page stores %d values, want %d", got, want)
		}
	}
	first := eval[string](w, `shop.userToken`)
	stored(0)
	eval[bool](w, `shop.consent(true), true`)
	stored(1)
	w.open() // another page of the site
	if got := eval[string](w, `shop.userToken`); got == first {
		w.t.Error("the page read its storage without consent")
	}
	if got := eval[string](w, `shop.consent(true), shop.userToken`); got != first {
		w.t.Errorf("the user is %s, want %s", got, first)
	}
	if got := eval[string](w, `shop.consent(false), shop.userToken`); got == first {
		w.t.Error("the user is the same without consent")
	}
	stored(0)
	// Others may write to the storage of the site.
	if got := eval[string](w, `localStorage.setItem("affinity-demo", "a b"), shop.consent(true), shop.userToken`); strings.Contains(got, " ") {
		w.t.Errorf("the user is %q", got)
	}
	eval[bool](w, `shop.consent(false), true`)
}

func signedIn(w *world) {
	user := eval[string](w, `shop.view("a"), shop.user("ann"), shop.view("b"), shop.user(null), shop.view("c"), shop.userToken`)
	var got []string
	for _, s := range w.await(3) {
		for _, e := range s.Events {
			if got = append(got, e.AuthenticatedUserToken); e.UserToken != user {
				w.t.Errorf("%v is of %s, want %s", e.ObjectIDs, e.UserToken, user)
			}
		}
	}
	if diff := cmp.Diff([]string{"", "ann", ""}, got); diff != "" {
		w.t.Errorf("signed in (-want +got):\n%s", diff)
	}
}

func order(w *world) {
	eval[bool](w, `shop.click("c"), true`)
	w.await(1)
	w.until("c, a and b", func() bool {
		return cmp.Equal(eval[[]string](w, `shop.rank(["a", "b", "c", "a"], { timeout: 1e4 })`), []string{"c", "a", "b"})
	})
	if got := eval[string](w, `shop.rank(["a", "b"], { timeout: 1e4 }).then((o) => o.queryID)`); len(got) != 32 {
		w.t.Errorf("the order has the id %q", got)
	}
	if got := eval[[]string](w, `shop.rank(["a", "b", "c"], { timeout: 1e4, limit: 2 })`); !cmp.Equal(got, []string{"c", "a"}) {
		w.t.Errorf("the first two are %v", got)
	}
	if got := eval[[]string](w, `shop.recommend("for-you", { timeout: 1e4, exclude: ["a"] }).then((o) => [...o, o.queryID.length])`+"\n.then((o) => o.map(String))"); !cmp.Equal(got, []string{"c", "b", "32"}) {
		w.t.Errorf("for-you is %v", got)
	}
	if n := eval[int](w, `shop.rank(["__proto__", "constructor", "<script>", "a,b", "\"", "\u202e", "\ud800", "x".repeat(9999), 7], { timeout: 1e4 }).then((o) => new Set(o).size)`); n != 9 {
		w.t.Errorf("%d of 9 odd ids are in the order", n)
	}
	w.faultless()
}

func givenOrder(w *world) {
	given := []string{"c", "a", "b"}
	check := func(what, options string) {
		w.t.Helper()
		if got := eval[[]string](w, `shop.rank(["c", "a", "b"], `+options+`).then((o) => [...o, ...(o.queryID ? [o.queryID] : [])])`); !cmp.Equal(got, given) {
			w.t.Errorf("%s: %v, want the given order", what, got)
		}
	}
	released := make(chan struct{})
	defer close(released)
	w.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/1/rank" {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		return false
	})
	check("a slow engine", `{}`)
	for what, answer := range map[string]string{"no JSON": "<html>", "no items": "{}", "others": `{"items":[{"objectID":"x"},null]}`} {
		w.set(func(out http.ResponseWriter, r *http.Request) bool {
			out.Header().Set("Access-Control-Allow-Origin", "*")
			_, _ = io.WriteString(out, answer)
			return true
		})
		check(what, `{ timeout: 1e4 }`)
	}
	w.set(nil)
	check("an option that the engine refuses", `{ timeout: 1e4, explain: true }`)
	w.set(func(out http.ResponseWriter, _ *http.Request) bool {
		out.WriteHeader(http.StatusInternalServerError)
		return true
	})
	check("an engine that fails", `{ timeout: 1e4 }`)
	eval[bool](w, `shop = affinity({ app: "demo", key: "pagekey", url: "http://127.0.0.1:1" }), true`)
	check("no engine", `null`)
	if n := eval[int](w, `shop.recommend("for-you").then((o) => o.length)`); n != 0 {
		w.t.Errorf("no engine recommends %d objects", n)
	}
	w.faultless()
}

func feeds(w *world) {
	page := func(options string) string {
		return eval[string](w, `shop.feed("news", `+options+`).then((p) => [p.order, p.items.length, p.cursor !== null].join())`)
	}
	w.until("objects of the feed", func() bool { return page(`{ timeout: 1e4, limit: 2, cursor: null }`) == "suggested,2,true" })
	w.set(func(out http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/suggested") {
			return false
		}
		out.WriteHeader(http.StatusForbidden) // without browser ranking
		return true
	})
	if got := page(`{ timeout: 1e4, limit: 2 }`); got != "latest,2,true" {
		w.t.Errorf("without the suggested order: %s", got)
	}
	w.set(nil)
	if got := eval[string](w, `shop.feed("news", { exclude: ["c", "b"], format: "ids" }).then((p) => p.items.join())`); got != "a" {
		w.t.Errorf("without c and b: %s", got)
	}
	if got := eval[string](w, `shop.feed("../../etc").then((p) => JSON.stringify(p))`); got != `{"items":[],"cursor":null}` {
		w.t.Errorf("no feed: %s", got)
	}
	w.faultless()
}

// The user of a secured key is the one that the key names.
func securedKey(w *world) {
	key := client.SecuredKey("demokey", client.Secured{UserToken: "a/b+c=", ValidUntil: time.Now().Add(time.Hour)})
	user := eval[string](w, fmt.Sprintf(`shop = affinity({ app: "demo", key: %q, index: "products", userToken: "other" }), shop.consent(true), shop.click("b"), shop.userToken`, key))
	if user != "a/b+c=" || eval[int](w, `localStorage.length`) != 0 {
		w.t.Errorf("the user is %s", user)
	}
	w.await(1)
	if got := eval[string](w, `shop.rank(["a"], { timeout: 1e4 }).then((o) => o.queryID ?? "")`); got == "" {
		w.t.Error("the key gets no order")
	}
}

// A client with a secured key says who the user was before: the token that a page of before has kept, or that the page gives.
// It stays until the engine has answered.
func anonymousBefore(w *world) {
	var calls, status atomic.Int64
	status.Store(http.StatusInternalServerError)
	said := make(chan string, 10)
	w.set(func(out http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/identify" {
			return false
		}
		var call struct{ AnonymousID, UserID string }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || !strings.HasPrefix(call.AnonymousID, "anonymous-") || call.UserID != "ann" {
			w.t.Errorf("%+v, %v", call, err)
		}
		calls.Add(1)
		out.Header().Set("Access-Control-Allow-Origin", "*")
		out.WriteHeader(int(status.Load()))
		fmt.Fprint(out, `{"success":true}`)
		said <- call.AnonymousID
		return true
	})
	key := client.SecuredKey("demokey", client.Secured{UserToken: "ann", ValidUntil: time.Now().Add(time.Hour)})
	signed := func(options, more string) string {
		return fmt.Sprintf(`ann = affinity({ app: "demo", key: %q, index: "products"%s })%s, true`, key, options, more)
	}
	stored := func(what string, want int) {
		w.t.Helper()
		w.until(what, func() bool { return eval[int](w, `localStorage.length`) == want })
	}
	before := eval[string](w, `shop.consent(true), shop.view("a"), shop.userToken`)
	eval[bool](w, signed("", ""))
	for _, answer := range []int{http.StatusServiceUnavailable, http.StatusForbidden, http.StatusOK} {
		stored("a token in storage", 1)
		status.Store(int64(answer))
		eval[bool](w, signed("", `, ann.consent(true)`))
		if got := <-said; got != before {
			w.t.Errorf("the client says %s, want %s", got, before)
		}
	}
	stored("no token in storage", 0)
	eval[bool](w, signed("", `, ann.consent(true), ann.view("b")`))
	eval[bool](w, signed(`, anonymousToken: shop.userToken`, ""))
	if got := <-said; got != before || calls.Load() != 4 {
		w.t.Errorf("the client says %s with the call %d, want %s with the fourth", got, calls.Load(), before)
	}
	eval[bool](w, `affinity({ app: "demo", key: "pagekey", anonymousToken: shop.userToken }), shop.consent(true), ann.consent(false), true`)
	stored("no token in storage", 0)
	for _, s := range w.await(2) {
		for _, e := range s.Events {
			if want := map[string]string{"a": before, "b": "ann"}[e.ObjectIDs[0]]; e.UserToken != want || e.AuthenticatedUserToken != "" {
				w.t.Errorf("%+v, want it of %s", e, want)
			}
		}
	}
	if calls.Load() != 4 {
		w.t.Errorf("%d calls, want 4", calls.Load())
	}
	w.faultless()
}

func hostileArguments(w *world) {
	eval[bool](w, `(async () => {
		const loop = {}; loop.loop = loop;
		const odd = [undefined, null, 0, NaN, "", [], {}, [null], [[1]], loop, Object.create(null), Symbol("s"), 1n, () => {}, "\ud800", { toString() { throw 1 } }];
		for (const one of odd) {
			for (const client of [shop, affinity(one)]) {
				for (const call of [client.view, client.click, client.buy]) { call(one, one); call("a", { loop: one }); }
				client.user(one); client.user(null); client.consent(one); client.consent(false);
				await client.rank(one, one); await client.recommend(one, one); await client.feed(one, one);
			}
		}
		shop.view("last");
		return true;
	})()`)
	w.until("events after the hostile ones", func() bool { return slices.Contains(ids(w.sent()), "last") })
	w.faultless()
}
