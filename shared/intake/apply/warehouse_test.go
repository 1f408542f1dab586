package apply_test

import (
	"context"
	"errors"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/store"
)

// A warehouse that takes no rows fails the delivery, after the profile counts the events. The next delivery gives it
// the rows again and changes nothing else.
func TestWarehouseThatFails(t *testing.T) {
	h := newHarness(t)
	var given [][]store.LogEvent
	failing := errors.New("the topic does not exist")
	h.Warehouse = func(_ context.Context, app config.App, events []store.LogEvent, excluded bool) error {
		if app.ID != appID || excluded {
			t.Errorf("rows of %s, excluded %t", app.ID, excluded)
		}
		given = append(given, events)
		return failing
	}
	for attempt := range 3 {
		if attempt == 2 {
			failing = nil
		}
		result, err := h.Deliver(t.Context(), h.push(seen(both), attempt+1))
		if want := map[bool]apply.Fate{true: apply.Retried, false: apply.Applied}[failing != nil]; result.Fate != want || !errors.Is(err, failing) {
			t.Fatalf("delivery %d: %+v, %v", attempt+1, result, err)
		}
		h.wantColors("Blue", "Red")
	}
	if rows := h.rows(); len(rows) != 1 {
		t.Errorf("the log has %d rows", len(rows))
	}
	for _, rows := range given {
		if len(rows) != 1 || rows[0].User != user || len(rows[0].Counts) != 2 || rows[0].ID != given[0][0].ID {
			t.Errorf("the warehouse got %+v", rows)
		}
	}
	if len(given) != 3 {
		t.Errorf("the warehouse got the rows %d times", len(given))
	}
}
