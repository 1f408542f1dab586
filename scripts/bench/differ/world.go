package differ

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	minute = int64(60_000)
	hour   = 60 * minute
	day    = 24 * hour

	// ahead is how long after receipt the time of an event may lie.
	ahead = 5 * minute
	// settle is how long functions may use a configuration, or an object, that they have read.
	settle = 5300 * time.Millisecond
)

// world is an app of the engine, its model, and what happens to both.
type world struct {
	*caller
	operator *caller
	model
	r       *rand.Rand
	tally   *tally
	step    int
	base    int64   // ms: when the campaign began
	moments []int64 // times that many events have
	sent    []batch // that may be sent again
	marks   int
	edges   int // users that were made for an edge
	copies  []string
}

// batch is a request of events that was accepted.
type batch struct {
	path string
	body []byte
	add  func(spans []span)
	free bool // sent again, its events count again
}

var (
	types  = []string{"view", "click", "conversion"}
	names  = []string{"Product Viewed", "Product Clicked", "Order Completed", "Seen", "Put into the cart ~ 100%"}
	points = []int{1, 2, 5, 10, 20, 50, 100}
	facets = []string{"color", "brand", "cat", "price", "edge", "all", "größe", "many"}
	// values are awkward in JSON, in filters, in URLs, in CSV or in keys.
	values = []string{"Red", "red", "Rot & Weiß", "a:b", "100%", "a%3Ab", "<0", "e\u0301", "\u00e9", "😀",
		`"quoted"`, "a,b", "tab\tand\nline",
		"'; --", " space ", "/slash/", "+", "?x=1&y=2", strings.Repeat("long", 60), "\\", "0", "null", "Blue",
		"Green", "Black"}
	halfLives = []halfLife{{"1", float64(day)}, {"7", 7 * float64(day)}, {"30", 30 * float64(day)},
		{"12h", 12 * float64(hour)},
		{"45m", 45 * float64(minute)}, {"1m", float64(minute)}, {"3650", 3650 * float64(day)}, {"90d", 90 * float64(day)}}
	trackNames = map[string]string{"Product Viewed": "view", "Product Clicked": "click", "Order Completed": "conversion"}
)

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// tokens are the users of a world. The first are sent more events.
func tokens() []string {
	all := []string{"a/b", "x=1", "A_b-c+d", strings.Repeat("0", 129)}
	for n := range 16 {
		all = append(all, fmt.Sprintf("user-%d", n))
	}
	return all
}

var allTokens = tokens()

func (w *world) token() string {
	if w.r.IntN(2) == 0 {
		return allTokens[w.r.IntN(6)]
	}
	return pick(w.r, allTokens)
}

// value prefers the first values, so that many users share them.
func (w *world) value() string { return values[min(w.r.IntN(len(values)), w.r.IntN(len(values)))] }

// time picks the time of an event, 0 for none. Imports may be of any age.
func (w *world) time(imported bool) int64 {
	now := time.Now().UnixMilli()
	switch w.r.IntN(10) {
	case 0:
		return 0
	case 1:
		return now + w.r.Int64N(ahead)
	case 2, 3, 4: // a time that others have
		if t := pick(w.r, w.moments); t <= now+ahead && (imported || t > now-30*day+hour) {
			return t
		}
		return now - hour
	case 5: // the edge of the window: it leaves now, or soon
		if edge := now - w.retention + pick(w.r, []int64{-1, 0, 1, 1000, 3000, 10_000, 30_000}); w.retention > 0 &&
			(imported || edge > now-30*day+hour) {
			return edge
		}
		return now - w.r.Int64N(29*day)
	case 6:
		if imported {
			return now - w.r.Int64N(120*day)
		}
		return now - w.r.Int64N(29*day)
	case 7:
		return now - w.r.Int64N(2*day)
	default:
		return now - w.r.Int64N(hour)
	}
}

// event makes an event as it is sent, and as the model counts it.
func (w *world) event(token string, imported bool) (map[string]any, event) {
	e := event{Type: pick(w.r, types), Name: pick(w.r, names),
		Index: pick(w.r, []string{"shop", "shop", "priced", "later"}), Time: w.time(imported)}
	if kind, is := trackNames[e.Name]; is && w.r.IntN(2) == 0 {
		e.Type = kind
	}
	m := map[string]any{"eventType": e.Type, "eventName": e.Name, "index": e.Index, "userToken": token}
	if w.r.IntN(2) == 0 {
		e.Objects = w.objectIDs(e.Index, 1+w.r.IntN(1+w.r.IntN(8)))
		m["objectIDs"] = e.Objects
		e.Objects = distinct(e.Objects)
	} else {
		var sent []string
		for range 1 + w.r.IntN(1+w.r.IntN(6)) {
			f := w.filter()
			e.Filters = append(e.Filters, f)
			sent = append(sent, w.encode(f))
		}
		if merged := w.merged(); len(merged) > 0 && w.r.IntN(3) == 0 {
			for _, f := range merged {
				e.Filters = append(e.Filters, f)
				sent = append(sent, w.encode(f))
			}
		}
		m["filters"] = sent
		e.Filters = distinct(e.Filters)
	}
	w.stamp(m, &e)
	if imported && w.r.IntN(8) == 0 {
		e.ID = fmt.Sprint("id-", w.r.IntN(3))
		m["eventId"] = e.ID
	}
	return m, e
}

// merged returns two filters that an alias counts as one, or none.
func (w *world) merged() []filter {
	var pairs [][]filter
	for _, facet := range slices.Sorted(maps.Keys(w.Aliases)) {
		for _, from := range slices.Sorted(maps.Keys(w.Aliases[facet])) {
			pairs = append(pairs, []filter{{facet, from}, w.target(filter{facet, from})})
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return pick(w.r, pairs)
}

// stamp sets the time of a sent event. Now and then it is too far ahead: an import refuses the
// event, and elsewhere it counts as one without a time.
func (w *world) stamp(m map[string]any, e *event) {
	switch {
	case e.Time != 0:
		m["timestamp"] = e.Time
	case w.r.IntN(4) == 0:
		m["timestamp"] = time.Now().UnixMilli() + 3*ahead
	}
}

func distinct[T comparable](all []T) []T {
	var kept []T
	for _, one := range all {
		if !slices.Contains(kept, one) {
			kept = append(kept, one)
		}
	}
	return kept
}

func (w *world) filter() filter {
	switch facet := pick(w.r, facets); facet {
	case "all":
		return filter{facet, "everybody"}
	case "edge":
		return filter{facet, fmt.Sprint(w.r.IntN(6))}
	case "price":
		return filter{facet, pick(w.r, []string{"10-20", "<10", "20+", "50-100"})}
	case "many":
		return filter{facet, fmt.Sprint("v", w.r.IntN(2000))}
	default:
		return filter{facet, w.value()}
	}
}

// encode writes a filter as clients do: percent-encoded whole, in parts, or not at all.
func (w *world) encode(f filter) string {
	switch {
	case w.r.IntN(3) == 0:
		return strings.ReplaceAll(url.PathEscape(f.Facet)+":"+url.PathEscape(f.Value), ":", "%3A")
	case strings.Contains(f.Value, "%") || w.r.IntN(2) == 0:
		return url.PathEscape(f.Facet) + ":" + url.PathEscape(f.Value)
	}
	return f.String()
}

const (
	objects = 12 // of each index
	leaving = 6  // further ones of shop, which are deleted one by one
	listed  = 22 // further ones of shop: more than an event may name
)

func (w *world) objectIDs(index string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("object ", w.r.IntN(objects))
		if index == "shop" && w.r.IntN(6) == 0 {
			ids[i] = fmt.Sprint("leaving ", w.r.IntN(leaving))
		}
	}
	return ids
}

// mark names an event without a time in exports. It is a queryID, and a click with one needs
// positions.
func (w *world) mark(m map[string]any, e *event) string {
	w.marks++
	mark := fmt.Sprintf("%032x", uint64(w.marks)<<16|0xd1ff)
	m["queryID"] = mark
	if e.Type == "click" && len(e.Objects) > 0 {
		m["positions"] = slices.Repeat([]int{1}, len(m["objectIDs"].([]string)))
	}
	return mark
}

// added is an event of a request and what it does to the model.
type added struct {
	token string
	event
	mark string
}

// add adds the accepted events of a request.
func (w *world) add(all []added, late bool) func([]span) {
	return func(spans []span) {
		for _, a := range all {
			u := w.user(a.token)
			if a.mark != "" {
				w.acceptUntimed(u, a.event, a.mark, spans)
			} else {
				w.accept(u, a.event)
			}
			u.late = u.late || late
			if len(spans) > 1 {
				u.tried = time.Now().UnixMilli()
			}
		}
	}
}

// steps are what may happen, and how often.
var steps = []struct {
	name  string
	often int
	do    func(*world) error
}{
	{"events", 30, (*world).sendEvents},
	{"repeated requests", 10, (*world).repeat},
	{"imports", 8, (*world).importEvents},
	{"calls of SDKs", 6, (*world).track},
	{"users on an edge", 8, (*world).edge},
	{"deletions", 4, (*world).deleteUser},
	{"opt-outs", 4, (*world).optOut},
	{"opt-ins", 4, (*world).optIn},
	{"users on the edge of the window", 4, (*world).windowEdge},
	{"users of many values", 1, (*world).hoard},
	{"recomputes", 2, (*world).recompute},
	{"segment builds", 2, (*world).buildSegments},
	{"refused requests", 2, (*world).refused},
	{"reads between", 12, (*world).peek},
}

func (w *world) act() error {
	total := 0
	for _, s := range steps {
		total += s.often
	}
	n := w.r.IntN(total)
	for _, s := range steps {
		if n -= s.often; n < 0 {
			w.tally.did(s.name)
			return s.do(w)
		}
	}
	return nil
}

// post sends a request of events, and keeps it so that it can be sent again.
func (w *world) post(path string, body []byte, all []added, late bool) (*answer, error) {
	a, err := w.want(http.MethodPost, path, body, http.StatusOK)
	if err != nil {
		return a, err
	}
	b := batch{path: path, body: body, add: w.add(all, late),
		free: slices.ContainsFunc(all, func(a added) bool { return a.mark != "" })}
	b.add(a.spans)
	if w.sent = append(w.sent, b); len(w.sent) > 60 {
		w.sent = w.sent[1:]
	}
	return a, nil
}

func (w *world) sendEvents() error {
	var sent []map[string]any
	var all []added
	for range 1 + w.r.IntN(1+w.r.IntN(20)) {
		token := w.token()
		m, e := w.event(token, false)
		a := added{token: token, event: e}
		if e.Time == 0 {
			a.mark = w.mark(m, &e)
		}
		sent, all = append(sent, m), append(all, a)
		for e.Time != 0 && w.r.IntN(6) == 0 { // an equal event, which is the same
			sent = append(sent, m)
		}
	}
	body, err := json.Marshal(map[string]any{"events": sent})
	if err != nil {
		return err
	}
	if _, err = w.post("/1/events", body, all, true); err == nil && w.r.IntN(3) == 0 {
		err = w.again(w.sent[len(w.sent)-1]) // while the engine still applies the first
	}
	return err
}

// repeat sends an earlier request again, as a client does that has not seen the answer.
func (w *world) repeat() error {
	if len(w.sent) == 0 {
		return nil
	}
	return w.again(pick(w.r, w.sent))
}

func (w *world) again(b batch) error {
	if b.free { // its events without a time would have the mark of other ones
		return nil
	}
	a, err := w.want(http.MethodPost, b.path, b.body, http.StatusOK)
	if err == nil {
		b.add(a.spans)
	}
	return err
}

func (w *world) importEvents() error {
	var body bytes.Buffer
	var all []added
	bad, out, deleted, received, ids := 0, 0, 0, 0, map[string]bool{}
	for range 1 + w.r.IntN(1+w.r.IntN(80)) {
		switch w.r.IntN(30) {
		case 0:
			body.WriteString("\n")
			continue
		case 1:
			bad++
			body.WriteString(pick(w.r, []string{"{\"eventType\":\"view\"}\n", "nonsense\n", "[]\n", "{\"userToken\":\"u u\"\n"}))
			continue
		}
		token := w.token()
		m, e := w.event(token, true)
		if _, tooFar := m["timestamp"]; tooFar && e.Time == 0 {
			line, err := json.Marshal(m)
			if err != nil {
				return err
			}
			bad++
			body.Write(append(line, '\n'))
			continue
		}
		a := added{token: token, event: e}
		if e.Time == 0 {
			a.mark = w.mark(m, &e)
			received++
		}
		if u := w.user(token); u.out[e.Type] {
			out++
		} else if e.Time != 0 && e.Time <= u.deleted {
			deleted++
		}
		ids[e.identity()] = true
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		body.Write(append(line, '\n'))
		all = append(all, a)
	}
	a, err := w.post("/1/events/import?index=shop", body.Bytes(), all, false)
	if err != nil {
		return err
	}
	var got struct {
		Accepted, Received, Deleted, OptedOut int
		Refused                               []json.RawMessage
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	if got.Accepted != len(all) || got.Received != received || len(got.Refused) != bad || got.OptedOut != out ||
		got.Deleted != deleted {
		return a.differs("counts of an import", string(a.body),
			fmt.Sprintf("accepted %d, received %d, deleted %d, opted out %d, refused %d", len(all), received, deleted, out, bad))
	}
	w.tally.compared("imports", 1)
	return nil
}

// track sends calls of an SDK. One that names more than 20 objects is several events.
func (w *world) track() error {
	var calls []map[string]any
	var all []added
	for range 1 + w.r.IntN(5) {
		token, name := w.token(), pick(w.r, slices.Sorted(maps.Keys(trackNames)))
		now := time.Now().UnixMilli()
		at := now - w.r.Int64N(3*hour)
		if w.r.IntN(3) == 0 {
			if at = pick(w.r, w.moments); at > now || at <= now-30*day+hour { // a call is never ahead of its receipt
				at = now
			}
		}
		ids := w.objectIDs("shop", 1+w.r.IntN(4))
		if w.r.IntN(5) == 0 {
			for n := range listed {
				ids = append(ids, fmt.Sprint("listed ", n))
			}
		}
		var products []map[string]any
		for n, id := range ids {
			key := "product_id"
			if n%3 == 2 {
				key = "sku"
			}
			products = append(products, map[string]any{key: id})
		}
		messageID := fmt.Sprint(w.r.Uint64())
		call := map[string]any{"type": "track", "event": name,
			"timestamp": time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z07:00"),
			"messageId": messageID, "properties": map[string]any{"products": products, "search_index": "shop"}}
		call[pick(w.r, []string{"userId", "anonymousId"})] = token
		calls = append(calls, call)
		if w.r.IntN(4) == 0 { // the SDK sends it again
			calls = append(calls, call)
		}
		for part := range slices.Chunk(distinct(ids), 20) {
			all = append(all, added{token: token, event: event{Type: trackNames[name], Name: name, Index: "shop",
				Objects: part, Time: at, ID: messageID}})
		}
		if w.r.IntN(6) == 0 {
			calls = append(calls, map[string]any{"type": "identify", "userId": token})
		}
	}
	body, err := json.Marshal(map[string]any{"batch": calls})
	if err != nil {
		return err
	}
	_, err = w.post("/v1/batch", body, all, true)
	return err
}

// edge makes a user whose newest event is ahead of the clock, so that the scores of the profile are
// whole numbers: 1, 2 or 5 times a power of ten, where buckets of a histogram begin.
func (w *world) edge() error {
	w.edges++
	token := fmt.Sprint("edge-", w.edges)
	e := event{Type: "conversion", Name: "Order Completed", Index: "shop",
		Filters: []filter{{"edge", fmt.Sprint(w.r.IntN(6))}}}
	if w.r.IntN(3) == 0 {
		e.Filters = append(e.Filters, filter{"all", "everybody"})
	}
	e.Time = time.Now().UnixMilli() + minute + w.r.Int64N(3*minute)
	if w.r.IntN(4) == 0 {
		e.Time = time.Now().UnixMilli() + 1 + w.r.Int64N(2000)
	}
	var sent []any
	var all []added
	for n := range pick(w.r, []int{1, 1, 2, 5}) {
		one := e
		one.Index = fmt.Sprint("shop", n) // another event of the same instant
		m := map[string]any{"eventType": one.Type, "eventName": one.Name, "index": one.Index, "userToken": token,
			"timestamp": one.Time}
		var texts []string
		for _, f := range one.Filters {
			texts = append(texts, f.String())
		}
		m["filters"] = texts
		sent, all = append(sent, m), append(all, added{token: token, event: one})
	}
	body, err := json.Marshal(map[string]any{"events": sent})
	if err != nil {
		return err
	}
	_, err = w.post("/1/events", body, all, true)
	return err
}

// windowEdge makes a user whose profile is as of an event ahead of the clock, with events whose times
// lie a millisecond around the start of the window of that instant.
func (w *world) windowEdge() error {
	if w.retention == 0 {
		return nil
	}
	w.edges++
	token, at := fmt.Sprint("window-", w.edges), time.Now().UnixMilli()+2*minute+w.r.Int64N(2*minute)
	var body bytes.Buffer
	var all []added
	for n, t := range []int64{at - w.retention - 1, at - w.retention, at - w.retention + 1, at} {
		e := event{Type: "conversion", Name: "Order Completed", Index: "shop", Time: t,
			Filters: []filter{{"edge", fmt.Sprint(n)}, {"all", "everybody"}}}
		line, err := json.Marshal(map[string]any{"eventType": e.Type, "eventName": e.Name, "index": e.Index,
			"userToken": token,
			"filters":   []string{e.Filters[0].String(), e.Filters[1].String()}, "timestamp": t})
		if err != nil {
			return err
		}
		body.Write(append(line, '\n'))
		all = append(all, added{token: token, event: e})
	}
	_, err := w.post("/1/events/import", body.Bytes(), all, false)
	if err != nil {
		return err
	}
	return w.exact(token)
}

// importOne imports an event of now, so that the next answer computes the profile of its user.
func (w *world) importOne() error {
	token := w.token()
	e := event{Type: "conversion", Name: "Order Completed", Index: "shop", Time: time.Now().UnixMilli() - 1,
		Filters: []filter{{"all", "everybody"}}}
	line, err := json.Marshal(map[string]any{"eventType": e.Type, "eventName": e.Name, "index": e.Index,
		"userToken": token,
		"filters":   []string{e.Filters[0].String()}, "timestamp": e.Time})
	if err != nil {
		return err
	}
	_, err = w.post("/1/events/import", line, []added{{token: token, event: e}}, false)
	return err
}

// hoard gives a user more values of a facet than a profile lists.
func (w *world) hoard() error {
	var body bytes.Buffer
	var all []added
	token := pick(w.r, allTokens[:8])
	from, at := w.r.IntN(1500), time.Now().UnixMilli()-2*day-w.r.Int64N(18*day)
	for n := range 62 {
		e := event{Type: "view", Name: "Seen", Index: "shop", Time: at + int64(n)*hour%(2*day)}
		var sent []string
		for k := range 20 {
			f := filter{"many", fmt.Sprint("v", from+20*n+k)}
			e.Filters, sent = append(e.Filters, f), append(sent, f.String())
		}
		line, err := json.Marshal(map[string]any{"eventType": e.Type, "eventName": e.Name, "index": e.Index,
			"userToken": token, "filters": sent, "timestamp": e.Time})
		if err != nil {
			return err
		}
		body.Write(append(line, '\n'))
		all = append(all, added{token: token, event: e})
	}
	_, err := w.post("/1/events/import", body.Bytes(), all, false)
	return err
}

func (w *world) deleteUser() error {
	token := w.token()
	path, want := "/1/profiles/", http.StatusOK
	if w.r.IntN(3) == 0 {
		path, want = "/1/usertokens/", http.StatusNoContent
	}
	a, err := w.want(http.MethodDelete, path+url.PathEscape(token), nil, want)
	if err != nil {
		return err
	}
	until := struct{ DeletedUntil time.Time }{}
	if want == http.StatusOK {
		err = a.decode(&until)
	} else {
		var state *answer // the other route does not say up to when
		if state, err = w.want(http.MethodGet, "/1/optouts/"+url.PathEscape(token), nil, http.StatusOK); err == nil {
			err = state.decode(&until)
		}
	}
	if err != nil {
		return err
	}
	if got := until.DeletedUntil.UnixMilli(); got < a.spans[0].from || got > a.done()+1 {
		return a.differs("time of a deletion", until.DeletedUntil.String(), fmt.Sprintf("within %v of the request", a.spans))
	}
	u := w.user(token)
	u.delete(until.DeletedUntil.UnixMilli())
	time.Sleep(5 * time.Millisecond) // what is received now is not covered
	return w.around(token, until.DeletedUntil.UnixMilli())
}

// around sends events whose times lie around that of a deletion: some are deleted with what was
// received before, some begin a new profile.
func (w *world) around(token string, until int64) error {
	if w.r.IntN(2) == 0 {
		return w.exact(token)
	}
	var sent []map[string]any
	var all []added
	for _, at := range []int64{until - 2, until - 1, until, until + 1, until + minute} {
		m, e := w.event(token, false)
		delete(m, "timestamp")
		e.Time = at
		m["timestamp"] = at
		sent, all = append(sent, m), append(all, added{token: token, event: e})
	}
	body, err := json.Marshal(map[string]any{"events": sent})
	if err != nil {
		return err
	}
	if _, err = w.post("/1/events", body, all, true); err != nil {
		return err
	}
	return nil
}

func (w *world) optOut() error {
	token := w.token()
	body, out := []byte(nil), types
	switch w.r.IntN(3) {
	case 0:
		body, out = []byte(`{"eventTypes":["view"]}`), []string{"view"}
	case 1:
		body, out = []byte(`{"eventTypes":["click","conversion"]}`), []string{"click", "conversion"}
	}
	return w.opt(http.MethodPut, token, body, out)
}

func (w *world) optIn() error {
	out := slices.DeleteFunc(slices.Clone(allTokens), func(token string) bool { return len(w.user(token).out) == 0 })
	if len(out) == 0 {
		out = allTokens
	}
	return w.opt(http.MethodDelete, pick(w.r, out), nil, nil)
}

func (w *world) opt(method, token string, body []byte, out []string) error {
	a, err := w.want(method, "/1/optouts/"+url.PathEscape(token), body, http.StatusOK)
	if err != nil {
		return err
	}
	var got struct {
		OptedOut     bool
		EventTypes   []string
		DeletedUntil time.Time
	}
	if err := a.decode(&got); err != nil {
		return err
	}
	slices.Sort(got.EventTypes)
	if want := slices.Sorted(slices.Values(out)); got.OptedOut != (len(out) > 0) || !slices.Equal(got.EventTypes, want) {
		return a.differs("opt-out", string(a.body), fmt.Sprint(want))
	}
	u := w.user(token)
	before := u.out
	u.out = map[string]bool{}
	for _, kind := range out {
		u.out[kind] = true
	}
	// A change deletes, and so does an opt-out of all types. Anything else changes nothing.
	if !maps.Equal(before, u.out) || len(out) == len(types) {
		if got.DeletedUntil.UnixMilli() < a.spans[0].from {
			return a.differs("time of an opt-out", string(a.body),
				fmt.Sprintf("deletes what was received until the request, %v", a.spans))
		}
		u.delete(got.DeletedUntil.UnixMilli())
	}
	time.Sleep(5 * time.Millisecond)
	return w.exact(token)
}

// exact compares what must hold at once, of a user who waits for nothing.
func (w *world) exact(token string) error {
	if u := w.user(token); u.late || u.unsure() {
		return nil
	}
	return w.compareProfile(token)
}

func (w *world) recompute() error {
	body := pick(w.r, []string{`{"onlyStale":true,"fold":true}`, `{"full":true}`, `{"fold":true}`, `{}`})
	_, err := w.want(http.MethodPost, "/1/recomputes", []byte(body), http.StatusOK)
	return err
}

func (w *world) buildSegments() error {
	_, err := w.want(http.MethodPost, "/1/segments/refresh", nil, http.StatusOK)
	return err
}

// refused sends what the engine must not take.
func (w *world) refused() error {
	m, e := w.event(w.token(), false)
	switch w.r.IntN(4) {
	case 0:
		m["timestamp"] = time.Now().UnixMilli() - 30*day - hour
	case 1:
		m["userToken"] = "two words"
	case 2:
		m["eventType"] = "stare"
	case 3:
		delete(m, "eventName")
	}
	good := maps.Clone(m)
	maps.Copy(good, map[string]any{"userToken": "nobody", "eventType": e.Type, "eventName": e.Name,
		"timestamp": time.Now().UnixMilli()})
	body, err := json.Marshal(map[string]any{"events": []any{good, m}})
	if err != nil {
		return err
	}
	a, err := w.do(http.MethodPost, "/1/events", body)
	if err != nil {
		return err
	}
	if a.status < 400 || a.status >= 500 {
		return a.differs("a bad event", fmt.Sprintf("%d %s", a.status, a.body), "refused")
	}
	return w.exact("nobody") // the request is accepted whole or not at all
}

// peek reads between events: reads store what they compute.
func (w *world) peek() error {
	token := w.token()
	if u := w.user(token); !u.late && !u.unsure() {
		return w.compareProfile(token)
	}
	_, err := w.do(http.MethodGet, "/1/profiles/"+url.PathEscape(token), nil)
	return err
}

// configure changes the strategy, the catalog and settings. What depends on them settles after
// that.
func (w *world) configure(first bool) error {
	if first || w.r.IntN(2) == 0 {
		if err := w.setStrategy(); err != nil {
			return err
		}
	}
	if first {
		for _, name := range []string{"shop", "priced", "later"} {
			w.indexes[name] = &index{objects: map[string]map[string]any{}}
		}
	}
	if err := w.changeCatalog(first); err != nil {
		return err
	}
	if !first && w.r.IntN(3) == 0 {
		w.tally.did("write windows")
		if err := w.limits(pick(w.r, []int{0, 300, 2000})); err != nil {
			return err
		}
	}
	return nil
}

// limits sets the limits of the app so high that none is met, and its write window.
func (w *world) limits(window int) error {
	_, err := w.operator.send(http.MethodPost, "/local/apps/limits",
		map[string]any{"app": map[string]any{"ID": w.app, "Limits": map[string]int{
			"eventsPerSecond": 100_000, "importsPerSecond": 1_000_000, "readsPerSecond": 100_000, "jobsPerHour": 100_000,
			"strategiesPerHour": 100_000, "userEventsPerDay": 10_000_000, "writeWindowMs": window,
		}}}, http.StatusOK)
	return err
}

func (w *world) setStrategy() error {
	w.tally.did("strategies")
	s := strategy{Impact: pick(w.r, []int{0, 30, 50, 100}),
		Events: []eventScore{{"Order Completed", "conversion", pick(w.r, points)}}}
	for _, name := range names {
		for _, kind := range types {
			if (name != "Order Completed" || kind != "conversion") && w.r.IntN(3) > 0 {
				s.Events = append(s.Events, eventScore{name, kind, pick(w.r, append(points, 0, 3, 7))})
			}
		}
	}
	for _, facet := range facets {
		if facet == "edge" || facet == "all" || w.r.IntN(4) > 0 {
			s.Facets = append(s.Facets, facetScore{facet, pick(w.r, points)})
		}
	}
	if w.r.IntN(4) == 0 {
		s.Facets = append(s.Facets, facetScore{"nothing has it", 0})
	}
	all := slices.Clone(halfLives)
	w.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.HalfLives = all[:pick(w.r, []int{0, 1, 1, 1, 2, 3, 5})]
	if w.r.IntN(2) == 0 {
		s.Aliases = map[string]map[string]string{}
		for range 1 + w.r.IntN(3) {
			facet := pick(w.r, []string{"color", "brand", "cat", "größe"})
			if s.Aliases[facet] == nil {
				s.Aliases[facet] = map[string]string{}
			}
			// One step: the first values lead to later ones, which lead nowhere.
			s.Aliases[facet][values[w.r.IntN(5)]] = values[5+w.r.IntN(len(values)-5)]
		}
	}
	s.Ignored = pick(w.r, [][]string{nil, nil, nil, {}, {"RED", "😀", "none of them"}})
	if w.r.IntN(4) == 0 {
		s.Allowed = map[string][]string{pick(w.r, []string{"color", "brand"}): values[:5+w.r.IntN(len(values)-5)]}
	}
	s.Ranking = ranking{Contrast: "none", Session: session{pick(w.r,
		[]halfLife{{"30m", 30 * float64(minute)}, {"1", float64(day)}}), pick(w.r, []int{0, 20, 100})}}
	if _, err := w.send(http.MethodPost, "/1/strategies/personalization", s, http.StatusOK); err != nil {
		return err
	}
	w.strategy = s
	return nil
}

// changeCatalog changes objects and settings. Events of the index shop keep the filters of the time
// when they came. Those of priced get the bands of today when the numeric bands change, and those of
// later the filters of objects that came after them.
func (w *world) changeCatalog(first bool) error {
	if first {
		if err := w.fillCatalog(); err != nil {
			return err
		}
	} else if err := w.changeShop(); err != nil {
		return err
	}
	stale := false
	if first || w.r.IntN(3) == 0 {
		w.tally.did("numeric bands")
		w.indexes["priced"].bands = map[string][]float64{"price": pick(w.r,
			[][]float64{{10, 20}, {0, 10, 20, 50}, {19.99}, {-5, 0.5, 100}})}
		if err := w.setIndex("priced"); err != nil {
			return err
		}
		stale = true
	}
	if !first && w.r.IntN(2) == 0 { // objects that events have named before
		w.tally.did("late objects")
		var ids []string
		for range 3 {
			if id := fmt.Sprint("object ", w.r.IntN(objects)); w.indexes["later"].objects[id] == nil {
				ids = append(ids, id)
			}
		}
		if err := w.addObjects("later", ids); err != nil {
			return err
		}
		stale = true
	}
	if first || !stale {
		return nil
	}
	return w.reenrich()
}

// fillCatalog makes the indexes. later has no objects at first.
func (w *world) fillCatalog() error {
	var ids, all []string
	for n := range objects {
		ids = append(ids, fmt.Sprint("object ", n))
	}
	all = slices.Clone(ids)
	for n := range listed {
		all = append(all, fmt.Sprint("listed ", n))
	}
	for n := range leaving {
		all = append(all, fmt.Sprint("leaving ", n))
	}
	w.indexes["shop"].facets = []string{"color", "brand", "cat"}
	w.indexes["priced"].facets = []string{"price", "brand"}
	w.indexes["later"].facets = []string{"color", "brand"}
	for _, name := range []string{"shop", "priced", "later"} {
		if err := w.setIndex(name); err != nil {
			return err
		}
	}
	if err := w.addObjects("priced", ids); err != nil {
		return err
	}
	return w.addObjects("shop", all)
}

func (w *world) changeShop() error {
	shop := w.indexes["shop"]
	if w.r.IntN(3) == 0 {
		shop.facets = pick(w.r, [][]string{{"color", "brand", "cat"}, {"color", "brand", "cat", "größe"}, {"color", "cat"}})
		if err := w.setIndex("shop"); err != nil {
			return err
		}
	}
	// An object that came back would be one that events did not know: it would change them.
	if id := fmt.Sprint("leaving ", w.r.IntN(leaving)); shop.objects[id] != nil {
		delete(shop.objects, id)
		if err := w.batchObjects("shop", []map[string]any{{"action": "deleteObject", "objectID": id}}); err != nil {
			return err
		}
	}
	return w.addObjects("shop", distinct([]string{fmt.Sprint("object ", w.r.IntN(objects)),
		fmt.Sprint("object ", w.r.IntN(objects)),
		fmt.Sprint("listed ", w.r.IntN(listed)), fmt.Sprint("object ", w.r.IntN(objects))}))
}

// addObjects makes records and stores them.
func (w *world) addObjects(index string, ids []string) error {
	var requests []map[string]any
	for _, id := range ids {
		record := w.record(id)
		w.indexes[index].objects[id] = record
		requests = append(requests, map[string]any{"action": "addObject", "body": record})
	}
	return w.batchObjects(index, requests)
}

// reenrich gives earlier events the filters of today.
func (w *world) reenrich() error {
	w.tally.did("re-enrichments")
	time.Sleep(settle)
	a, err := w.want(http.MethodPost, "/1/reenrich", []byte(`{"numericBands":true}`), http.StatusOK)
	if err != nil {
		return err
	}
	if err := w.await(a, "/1/reenrich/"); err != nil {
		return err
	}
	for _, name := range []string{"priced", "later"} {
		w.enrich(name)
	}
	for _, u := range w.users {
		u.late = true
	}
	return nil
}

// await waits until a job has ended.
func (w *world) await(a *answer, path string) error {
	for end := time.Now().Add(busyTimeout); ; time.Sleep(100 * time.Millisecond) {
		var job struct{ ID, State string }
		if err := a.decode(&job); err != nil {
			return err
		}
		switch job.State {
		case "planning", "running":
		case "done", "superseded":
			return nil
		default:
			return a.differs("job", string(a.body), "done")
		}
		if time.Now().After(end) {
			return a.differs("job", string(a.body), "done after "+busyTimeout.String())
		}
		var err error
		if a, err = w.want(http.MethodGet, path+job.ID, nil, http.StatusOK); err != nil {
			return err
		}
	}
}

func (w *world) setIndex(name string) error {
	settings := map[string]any{"attributesForFaceting": w.indexes[name].facets}
	if w.indexes[name].bands != nil {
		settings["numericBands"] = w.indexes[name].bands
	}
	_, err := w.send(http.MethodPut, "/1/indexes/"+name+"/settings", settings, http.StatusOK)
	return err
}

func (w *world) record(id string) map[string]any {
	record := map[string]any{"objectID": id, "color": w.value(), "größe": w.value(), "title": "not a facet",
		"price": pick(w.r, []any{10.0, 19.99, "20", "-0.5", "ask us", 0.0, "1e1", 100.0, "", "99.90"})}
	switch w.r.IntN(4) {
	case 0:
		record["brand"] = ""
	case 1:
		record["brand"] = nil
	default:
		record["brand"] = w.value()
	}
	cat := []any{}
	for range w.r.IntN(4) {
		cat = append(cat, w.value())
	}
	record["cat"] = cat
	return record
}

func (w *world) batchObjects(index string, requests []map[string]any) error {
	if len(requests) == 0 {
		return nil
	}
	_, err := w.send(http.MethodPost, "/1/indexes/"+index+"/batch", map[string]any{"requests": requests}, http.StatusOK)
	return err
}

// copyApp moves the data of the app to an empty one, and compares that with the model.
func (w *world) copyApp() error {
	if len(w.copies) == 0 {
		return nil
	}
	to := *w.caller
	to.app, w.copies = w.copies[0], w.copies[1:]
	other := *w
	other.caller = &to
	if err := other.limits(0); err != nil {
		return err
	}
	kind := "exported and imported users"
	var err error
	if w.r.IntN(2) == 0 {
		kind = "dumped and restored users"
		err = w.dump(to.app)
	} else {
		err = w.export(&to)
	}
	if err != nil {
		return err
	}
	if err := other.settled(); err != nil {
		return err
	}
	for token := range w.users {
		if err := other.compareProfile(token); err != nil {
			return err
		}
	}
	w.tally.compared(kind, len(w.users))
	return nil
}

// dump dumps the app and restores it by the command line.
func (w *world) dump(to string) error {
	file := filepath.Join(w.engine.folder, to+".ndjson")
	for _, args := range [][]string{
		{"dump", "--app", w.app, "--out", file},
		{"restore", "--app", to, file},
	} {
		if err := w.engine.ready(); err != nil {
			return err
		}
		args = append(args, "--url", "http://"+w.engine.addr, "--key", w.key)
		if out, err := w.command(args); err != nil {
			return &Difference{What: args[0], Request: strings.Join(append([]string{"affinity"}, args...), " "),
				Engine: fmt.Sprintf("%v: %s", err, out), Model: "succeeds"}
		}
	}
	return nil
}

// command runs a command, and again if the engine was ended during it: the command says
// itself that this continues it.
func (w *world) command(args []string) (out []byte, err error) {
	for range 5 {
		starts := w.engine.count()
		c := exec.Command(w.engine.program, args...)
		c.Env = w.engine.environment
		if out, err = c.CombinedOutput(); err == nil {
			return out, nil
		}
		if w.engine.count() == starts {
			return out, err
		}
		if err := w.engine.ready(); err != nil {
			return nil, err
		}
	}
	return out, err
}

// export exports each user and imports the lines.
func (w *world) export(to *caller) error {
	if _, err := to.send(http.MethodPost, "/1/strategies/personalization", w.strategy, http.StatusOK); err != nil {
		return err
	}
	for token := range w.users {
		a, err := w.exported(w.caller, token)
		if err != nil {
			return err
		}
		for lines := range slices.Chunk(bytes.SplitAfter(a.body, []byte("\n")), 2000) {
			if _, err := to.want(http.MethodPost, "/1/events/import", bytes.Join(lines, nil), http.StatusOK); err != nil {
				return err
			}
		}
	}
	return nil
}
