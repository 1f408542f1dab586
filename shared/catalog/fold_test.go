package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
)

// oneByOne applies each action as a batch of its own, and returns the records
// afterwards, or what refuses one.
func oneByOne(actions []catalog.Action, stored map[string][]byte) (map[string]string, string) {
	records := maps.Clone(stored)
	for _, a := range actions {
		plan, err := catalog.NewPlan([]catalog.Action{a}, records, catalog.Settings{})
		if err != nil {
			return nil, refusal(err)
		}
		apply(records, plan)
	}
	return text(records), ""
}

func apply(records map[string][]byte, plan catalog.Plan) {
	if plan.Clear {
		clear(records)
	}
	for _, o := range plan.Put {
		records[o.ID] = o.Record
	}
	for _, id := range plan.Remove {
		delete(records, id)
	}
}

func text(records map[string][]byte) map[string]string {
	all := map[string]string{}
	for id, record := range records {
		all[id] = string(record)
	}
	return all
}

// refusal is the message of an error without the place of the action.
func refusal(err error) string {
	var refused *fault.Error
	if !errors.As(err, &refused) {
		return "fault: " + err.Error()
	}
	_, message, _ := strings.Cut(refused.Message, ": ")
	return message
}

// randomAction returns an action on one of three objects. Some have an attribute so
// long that a record has room for one of them.
func randomAction(t *testing.T, r *rand.Rand) catalog.Action {
	kinds := []catalog.Kind{catalog.AddObject, catalog.UpdateObject, catalog.PartialUpdateObject, catalog.PartialUpdateObject,
		catalog.PartialUpdateObject, catalog.PartialUpdateObjectNoCreate, catalog.DeleteObject, catalog.Clear}
	kind := kinds[r.IntN(len(kinds)-r.IntN(2))]
	if kind == catalog.Clear {
		return catalog.Action{Kind: kind}
	}
	body := fmt.Sprintf(`{"objectID":"%c"`, 'x'+rune(r.IntN(3)))
	names := []string{"a", "b", `\u00e4`, `\"`, `q\"`, `\ud800`, "", "c"}
	for n, i := range r.Perm(len(names))[:r.IntN(4)] {
		name := names[i]
		value := fmt.Sprint(r.IntN(1_000_000))
		if n == 0 && r.IntN(4) == 0 {
			value = `"` + strings.Repeat("v", catalog.MaxRecord*3/5) + `"`
		}
		body += fmt.Sprintf(`, "%s": %s`, name, value)
	}
	return decodeBatch(t, fmt.Sprintf(`{"action":%q,"body":%s}}`, kind, body))[0]
}

// A batch leaves the records that its actions leave one by one, and is refused if
// one of them is.
func TestBatchEqualsItsActionsOneByOne(t *testing.T) {
	const batches = 40
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range batches {
		stored := map[string][]byte{}
		if r.IntN(2) == 0 {
			stored["x"] = []byte(`{"objectID":"x","b":[1,{"c":2}],"ä":true}`)
		}
		actions := make([]catalog.Action, r.IntN(30))
		for i := range actions {
			actions[i] = randomAction(t, r)
		}
		want, wantRefusal := oneByOne(actions, stored)
		plan, err := catalog.NewPlan(actions, stored, catalog.Settings{})
		if err != nil {
			refused++
			if got := refusal(err); got != wantRefusal {
				t.Fatalf("refused with %q, one by one with %q", got, wantRefusal)
			}
			continue
		}
		apply(stored, plan)
		if diff := cmp.Diff(want, text(stored)); diff != "" || wantRefusal != "" {
			t.Fatalf("records (-one by one +batch), refused one by one with %q:\n%s", wantRefusal, diff)
		}
	}
	if refused == 0 || refused > batches/2 {
		t.Errorf("%d of %d batches are refused, want some", refused, batches)
	}
}

// updates returns n partial updates of one attribute each, and a stored record
// that is nearly as large as may be.
func updates(tb testing.TB, n int) ([]catalog.Action, map[string][]byte) {
	tb.Helper()
	var sent []string
	for i := range n {
		sent = append(sent, fmt.Sprintf(`{"action":"partialUpdateObject","body":{"objectID":"x","n%d":%d}}`, i%10, i))
	}
	actions, err := catalog.DecodeBatch([]byte(`{"requests":[` + strings.Join(sent, ",") + `]}`))
	if err != nil {
		tb.Fatal(err)
	}
	var large strings.Builder
	for i := range 4_000 {
		fmt.Fprintf(&large, `,"attribute%d":%d`, i, i)
	}
	return actions, map[string][]byte{"x": []byte(`{"objectID":"x"` + large.String() + `}`)}
}

// Many updates of one object do not cost its record each.
func TestUpdatesCostWhatTheySend(t *testing.T) {
	actions, stored := updates(t, 3_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := catalog.NewPlan(actions, stored, catalog.Settings{AttributesForFaceting: []string{"n1"}, Version: 1}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 100*uint64(len(stored["x"])) {
		t.Errorf("3,000 updates of a record of %d bytes allocate %d bytes", len(stored["x"]), allocated)
	}
}

func BenchmarkUpdatesOfOneObject(b *testing.B) {
	for _, n := range []int{300, 3_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			actions, stored := updates(b, n)
			for b.Loop() {
				if _, err := catalog.NewPlan(actions, stored, catalog.Settings{AttributesForFaceting: []string{"n1"}, Version: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
