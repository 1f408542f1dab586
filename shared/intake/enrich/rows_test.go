package enrich_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// holder holds the users with an even number in one store and the others in another one.
type holder struct {
	mu     sync.Mutex
	stores [2]*store.Store
	asked  map[string]int
}

func (h *holder) StoreOf(_ context.Context, _ config.App, user string) (*store.Store, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[user]++
	return h.stores[(user[0]-'0')%2], nil
}

// A message with many events of few users looks for each user once, and finds the rows where
// the users are.
func TestRowsLookForEachUserOnce(t *testing.T) {
	h := &holder{stores: [2]*store.Store{storetest.New(t), storetest.New(t)}, asked: map[string]int{}}
	a := config.App{ID: "shop", Log: schema.Default()}
	var places []enrich.Place
	for i := range 60 {
		e := store.LogEvent{User: fmt.Sprint(i % 6), Time: int64(1_000 + i), ID: fmt.Sprintf("id%09d", i), Type: event.View, Name: "Seen", Original: []byte("{}")}
		if err := h.stores[i%6%2].Events.Log(a.ID, a.Log).Append(t.Context(), []store.LogEvent{e}); err != nil {
			t.Fatal(err)
		}
		places = append(places, enrich.PlaceOf(&e))
	}
	rows, err := enrich.Rows(t.Context(), h, a, slices.Values(places))
	if err != nil || len(rows) != len(places) {
		t.Errorf("%d rows of %d events, %v", len(rows), len(places), err)
	}
	for user, n := range h.asked {
		if n != 1 {
			t.Errorf("user %s was looked for %d times", user, n)
		}
	}
}
