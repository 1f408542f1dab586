package event_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`)

func FuzzDecodeBatch(f *testing.F) {
	for _, seed := range []string{
		`{"events":[` + goodEvent + `,` + goodEvent + `]}`,
		`{"events":[{"eventType":"click","eventName":"N","index":"i","userToken":"u","timestamp":1.795175e12,"queryID":"43b15df305339e827f0ac0bdc5ebcaa7","objectIDs":["a","a"],"positions":[1,2]}]}`,
		`{"events":[{"eventType":"conversion","eventSubtype":"purchase","eventName":"N","index":"i","userToken":"u","filters":["a%3Ab","\ud800:x"],"objectData":null,"value":"1","currency":"EUR"}]}`,
		`{"events":[{"eventType":"instantsearch","eventName":"N","userToken":"u","agentID":"a","timestamp":-0}]}`,
		`{"events":[{"objectData":[{"price":1e999},null,{}]}],"events":{}}`,
		`[[[[{"":`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rules := event.Rules{Now: receipt, MaxAge: event.MaxEventAge}
		events, err := event.DecodeBatch(body, rules)
		if err != nil {
			checkRefusal(t, asRefusal(t, err))
			return
		}
		if len(events) == 0 || len(events) > event.MaxBatch {
			t.Fatalf("a batch of %d events", len(events))
		}
		again, err := event.DecodeBatch(bytes.Clone(body), rules)
		if err != nil {
			t.Fatalf("refused the second time: %v", err)
		}
		for i := range events {
			checkEvent(t, &events[i])
			alone, err := event.Decode(events[i].Raw, event.Rules{Now: receipt, Ordinal: i})
			if err != nil {
				t.Fatalf("refused alone: %v", err)
			}
			for _, other := range []event.Event{again[i], alone} {
				if other.ID() != events[i].ID() {
					t.Errorf("ID %s, then %s", events[i].ID(), other.ID())
				}
				if diff := cmp.Diff(events[i], other, cmpopts.IgnoreUnexported(event.Event{})); diff != "" {
					t.Errorf("decoded differently the second time: %s", diff)
				}
			}
		}
	})
}

func checkRefusal(t *testing.T, r *event.Refusal) {
	switch r.Kind {
	case fault.Malformed, fault.TooLarge:
		if r.Position != -1 {
			t.Errorf("%v for event %d", r.Kind, r.Position)
		}
	case fault.Invalid:
	default:
		t.Errorf("kind %d", int(r.Kind))
	}
	if (r.Position >= 0) != (r.Event != nil) || r.Message == "" {
		t.Errorf("refusal %+v", r)
	}
}

func checkEvent(t *testing.T, e *event.Event) {
	telemetry := e.Type == event.InstantSearch
	if !telemetry && e.Type != event.View && e.Type != event.Click && e.Type != event.Conversion {
		t.Errorf("type %q", e.Type)
	}
	if e.Name == "" || len(e.Name) > 64 || !event.ValidUserToken(e.UserToken) {
		t.Errorf("name %q, user token %q", e.Name, e.UserToken)
	}
	if !telemetry && (e.Index == "" || (len(e.ObjectIDs) == 0) == (len(e.Filters) == 0)) {
		t.Errorf("index %q, objectIDs %q, filters %q", e.Index, e.ObjectIDs, e.Filters)
	}
	age := receipt.UnixMilli() - e.Time
	if age < 0 || age > event.MaxEventAge.Milliseconds() || e.Received && age != 0 {
		t.Errorf("%d ms old, received %v", age, e.Received)
	}
	for i, id := range e.ObjectIDs {
		if id == "" || len(id) > 512 || slices.Contains(e.ObjectIDs[:i], id) || !utf8.ValidString(id) {
			t.Errorf("objectIDs %q", e.ObjectIDs)
		}
	}
	for i, f := range e.Filters {
		if f.Facet == "" || f.Value == "" || slices.Contains(e.Filters[:i], f) || !utf8.ValidString(f.Facet+f.Value) {
			t.Errorf("filters %q", e.Filters)
		}
	}
	if len(e.ObjectIDs) > 20 || len(e.Filters) > 20 || !idForm.MatchString(e.ID()) {
		t.Errorf("%d objectIDs, %d filters, ID %q", len(e.ObjectIDs), len(e.Filters), e.ID())
	}
}
