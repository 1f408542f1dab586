package event_test

import (
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestAttribution(t *testing.T) {
	const q1, q2 = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	decode := func(fields string) event.Event {
		t.Helper()
		e, err := event.Decode([]byte(`{"eventName":"E","index":"i","userToken":"u",`+fields+`}`), event.Rules{Now: time.Now()})
		must.Succeed(t, err)
		return e
	}
	order := decode(`"eventType":"conversion","objectIDs":["a","b","c"],"queryID":"` + q1 + `","objectData":[{"queryID":"` + q2 + `"},{},{"queryID":"` + q1 + `"}]`)
	if got := order.Queries(); !slices.Equal(got, []string{q1, q2}) {
		t.Errorf("%q", got)
	}
	click := decode(`"eventType":"click","objectIDs":["a","b"],"queryID":"` + q1 + `","positions":[7,3]`)
	if click.Queries() != nil || click.Position("b") != 3 || click.Position("c") != 0 || order.Position("a") != 0 {
		t.Errorf("%q, %d, %d, %d", click.Queries(), click.Position("b"), click.Position("c"), order.Position("a"))
	}
	if e := decode(`"eventType":"conversion","objectIDs":["a"]`); e.Queries() != nil {
		t.Errorf("%q", e.Queries())
	}
}
