package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/track"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

var (
	errBatch error = fault.New(fault.Malformed, `Bad Request: the body must be {"batch":[..]} with calls of an SDK`)
	errCall  error = fault.New(fault.Malformed, "Bad Request: the body must be a JSON object, one call of an SDK")
	errCalls error = fault.New(fault.Invalid, "Cannot process more than %d calls in a batch", api.MaxCalls)
	errIndex error = fault.New(fault.Invalid,
		"The track call names no index: set properties.search_index, add ?index= to the URL, or use a key that is "+
			"for one index")
	errToken error = fault.New(fault.Invalid,
		"The userId or anonymousId of the track call is no user token, which has 1 to 129 of a-z, A-Z, 0-9 and _=/+-: "+
			"send such a token, or use a key that hashes ids (affinity app key add --hash-tokens)")
)

// ignored are the reasons under which calls are counted that are not about objects, by
// their type.
var ignored = map[string]string{
	track.Identify: "Ignored: identify call", "page": "Ignored: page call", "screen": "Ignored: screen call",
	"group": "Ignored: group call", track.Alias: "Ignored: alias call",
}

// short are the paths of calls of Segment's SDK for browsers: the first letters of their types.
var short = map[string]string{"t": track.Track, "i": track.Identify, "p": "page", "s": "screen", "g": "group",
	"a": track.Alias}

// ignoredOther is the reason for calls of types that SDKs do not have.
const ignoredOther = "Ignored: call of an unknown type"

// readCalls is read for what SDKs send. The key of a request that names none may be in its body: some
// versions of Segment's SDK for browsers send it nowhere else.
func (h handler) readCalls(w http.ResponseWriter, r *http.Request) (request, error) {
	in, missing := h.read(w, r)
	if !errors.Is(missing, auth.ErrMissing) {
		return in, missing
	}
	body, err := httpapi.ReadBody(w, r, api.MaxEventsBody)
	if err == nil {
		err = awaitTurn(r.Context(), body)
	}
	if err != nil {
		return request{}, err
	}
	var sent struct {
		WriteKey string `json:"writeKey"`
	}
	if json.Unmarshal(body, &sent) != nil || sent.WriteKey == "" {
		return request{}, missing
	}
	in, err = h.admit(auth.WithWriteKey(r, sent.WriteKey))
	in.body = body
	return in, err
}

// batch accepts what SDKs of Segment and RudderStack send.
func (h handler) batch(w http.ResponseWriter, r *http.Request) error {
	in, err := h.readCalls(w, r)
	if err != nil {
		return err
	}
	var sent struct {
		Batch  []json.RawMessage `json:"batch"`
		SentAt json.RawMessage   `json:"sentAt"`
	}
	err = json.Unmarshal(in.body, &sent)
	switch {
	case err != nil || sent.Batch == nil:
		return h.refuse(r.Context(), in.app(), in.received, errBatch)
	case len(sent.Batch) > api.MaxCalls:
		return h.refuse(r.Context(), in.app(), in.received, errCalls)
	}
	return h.calls(w, r, in, "", event.TimeText(sent.SentAt), sent.Batch)
}

// call accepts one call, whose type is in the path.
func (h handler) call(w http.ResponseWriter, r *http.Request) error {
	kind := r.PathValue("call")
	if named := short[kind]; named != "" {
		kind = named
	}
	if kind != track.Track && ignored[kind] == "" {
		return httpapi.Errorf(http.StatusNotFound, httpapi.UnknownPath)
	}
	in, err := h.readCalls(w, r)
	if err != nil {
		return err
	}
	if !json.Valid(in.body) {
		return h.refuse(r.Context(), in.app(), in.received, errCall)
	}
	return h.calls(w, r, in, kind, "", []json.RawMessage{in.body})
}

// calls stores the events of calls. Unlike those of POST /1/events, they are not
// accepted all or none: an SDK sends the calls of many users together, drops them all
// after a 4xx, and a site has track calls that are not about products. So a call that
// gives no event is counted, and the others are stored. kind is the type of calls that
// do not name one, sentAt the time of those that do not say when they were sent.
func (h handler) calls(w http.ResponseWriter, r *http.Request, in request, kind, sentAt string,
	calls []json.RawMessage) error {
	index := r.URL.Query().Get("index")
	if index == "" {
		index = in.grant.OnlyIndex()
	}
	set, err := h.CachedConfig.Calls(r.Context(), in.app())
	if err != nil {
		return err
	}
	outcome := outcome{rules: in.rules(), kind: kind, index: index, sentAt: sentAt, names: set.Names,
		links: set.Links, hash: in.grant.HashTokens, ignored: map[string]int64{}}
	for _, raw := range calls {
		outcome.add(raw)
	}
	err = h.permitted(r.Context(), in.grant, slices.Concat(outcome.events, outcome.unsure))
	if err == nil {
		err = h.permittedSignIns(r.Context(), in.grant, outcome.signIns)
	}
	if err != nil {
		return h.refuse(r.Context(), in.app(), in.received, err)
	}
	// Before the events: a sign-in that is sent again changes nothing, and an event without a time counts twice.
	if err := h.publishSignIns(r.Context(), w.Header(), in, outcome.signIns); err != nil {
		return err
	}
	if err := h.storeAll(r.Context(), w.Header(), in, outcome.events); err != nil {
		return err
	}
	in.unsure = true
	if err := h.storeAll(r.Context(), w.Header(), in, outcome.unsure); err != nil {
		return err
	}
	for reason, n := range outcome.ignored {
		h.Refused.Count(in.app(), reason, n)
	}
	for _, refused := range outcome.refused {
		refused.At = in.received
		h.Refused.Record(in.app(), refused)
		if refused.Reason != track.ErrType.Error() { // sites have many calls that are not about products
			h.Usage.Refused(in.app(), 1)
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.CallsAnswer{Success: true})
}

// storeAll stores events in as many messages as they need. A request that fails between
// two of them may be sent again: events with a time count once.
func (h handler) storeAll(ctx context.Context, header http.Header, in request, events []event.Event) error {
	for part := range slices.Chunk(events, api.MaxEvents) {
		if err := h.store(ctx, header, in, bodyOf(part), part); err != nil {
			return err
		}
	}
	return nil
}

// bodyOf is the body of POST /1/events with some events.
func bodyOf(events []event.Event) []byte {
	body := []byte(`{"events":[`)
	for i := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, events[i].Raw...)
	}
	return append(body, `]}`...)
}

// outcome is what became of calls.
type outcome struct {
	rules               event.Rules
	kind, index, sentAt string            // of calls that do not say theirs
	names               map[string]string // types of events that the app has given names of calls
	links               bool              // calls that say who has signed in link tokens
	hash                bool              // the ids of users are no user tokens yet

	events  []event.Event
	unsure  []event.Event // those of calls of which other deliveries may have another time
	signIns []signIn
	refused []store.Refused
	ignored map[string]int64 // by reason
}

// add adds a call.
func (o *outcome) add(raw []byte) {
	call, err := track.Parse(raw)
	if err != nil {
		o.refuse(err, nil) // not the call, which may hold what no profile needs to know of a user
		return
	}
	if o.kind != "" {
		call.Type = o.kind
	}
	if err := call.TypeFault(); call.Type == "" && err != nil {
		o.refuse(err, nil)
		return
	}
	call.SentAt = cmp.Or(call.SentAt, o.sentAt)
	signsIn := o.links && o.addSignIn(call)
	switch {
	case call.Type != track.Track && signsIn:
		return
	case call.Type != track.Track:
		o.ignored[cmp.Or(ignored[call.Type], ignoredOther)]++
		return
	}
	call = call.Typed(o.names)
	if reason := call.Ignored(); reason != "" {
		o.ignored[reason]++
		return
	}
	call.UserToken = o.token(call.UserToken)
	call.Index = cmp.Or(call.Index, o.index)
	var events []api.Event
	call, unsure, err := call.Received(o.rules.Now)
	if err == nil {
		events, err = call.Events()
	}
	switch {
	case err != nil:
	case call.Index == "":
		err = cmp.Or(call.IndexFault(), errIndex)
	case call.UserToken != "" && !event.ValidUserToken(call.UserToken):
		err = errToken
	}
	if err != nil {
		o.refuse(err, encoded(api.Event{EventType: call.EventType, EventName: call.Name, UserToken: call.UserToken}))
		return
	}
	accepted := make([]event.Event, len(events))
	for i, e := range events {
		raw := encoded(e)
		if accepted[i], err = event.Decode(raw, o.rules); err != nil {
			o.refuse(err, raw)
			return
		}
	}
	if unsure {
		o.unsure = append(o.unsure, accepted...)
	} else {
		o.events = append(o.events, accepted...)
	}
}

// token returns the user token of the id in a call.
func (o *outcome) token(id string) string {
	if o.hash && id != "" {
		return event.HashToken(id)
	}
	return id
}

func (o *outcome) refuse(cause error, raw []byte) {
	_, reason := httpapi.Status(cause)
	var refusal *event.Refusal
	if errors.As(cause, &refusal) {
		reason = refusal.Reason()
	}
	o.refused = append(o.refused, store.Refused{Reason: reason, Field: field(cause), Event: recorded(raw)})
}

// hint says what an unknown name of a track call may be meant to be, and how to give it a
// type; empty for other refusals. own are the names that the app has given one.
func hint(of store.Refused, own map[string]string) string {
	var e api.Event
	if of.Reason != track.ErrType.Error() || json.Unmarshal(of.Event, &e) != nil || e.EventName == "" {
		return ""
	}
	if kind := own[e.EventName]; kind != "" {
		return "the name has got the type " + kind + " since: calls that come now count"
	}
	text, kind := "", api.EventClick
	if closest, itsKind := track.Closest(e.EventName, own); closest != "" {
		text, kind = fmt.Sprintf("the closest name with a type is %q (%s). ", closest, itsKind), itsKind
	}
	if notVisible := func(c rune) bool { return c < ' ' || c > '~' }; len(e.EventName) > api.MaxEventName ||
		strings.ContainsFunc(e.EventName, notVisible) {
		return fmt.Sprintf("%sThe name of an event has 1 to %d visible ASCII characters: give the call such a name", text,
			api.MaxEventName)
	}
	body, _ := json.Marshal(api.TrackNames{Names: map[string]string{e.EventName: kind}}) // texts can be encoded
	return fmt.Sprintf("%sPUT /1/track-names %s, or `affinity events names`, gives this one a type", text, body)
}

// encoded is an event in JSON.
func encoded(e api.Event) []byte {
	raw, _ := json.Marshal(e) // texts and numbers can be encoded
	return raw
}
