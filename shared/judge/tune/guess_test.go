package tune

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// guessLog is a log of 60 objects with a brand, a price that two of them share and
// a name of their own.
func guessLog(t *testing.T, events ...backtest.Event) *backtest.Log {
	t.Helper()
	var objects []backtest.Object
	for i := range 60 {
		objects = append(objects, backtest.Object{ID: fmt.Sprint("o", i), Filters: []event.Filter{
			{Facet: "brand", Value: fmt.Sprint(i % 5)}, {Facet: "kind", Value: "thing"}, {Facet: "name", Value: fmt.Sprint(i)},
			{Facet: "price", Value: fmt.Sprint(i / 2)},
		}})
	}
	l, err := backtest.NewLog("p", objects)
	must.Succeed(t, err)
	for i, e := range events {
		e.ID, e.User, e.Index = fmt.Sprint(i), "u", "p"
		l.Add(e)
	}
	return l
}

func TestGuess(t *testing.T) {
	l := guessLog(t,
		backtest.Event{Type: event.View, Name: "Seen", ObjectIDs: []string{"o1"}},
		backtest.Event{Type: event.View, Name: "Seen", ObjectIDs: []string{"o2"}},
		backtest.Event{Type: event.Click, Name: "Clicked", ObjectIDs: []string{"o1"}},
		backtest.Event{Type: event.Conversion, Name: "Bought", ObjectIDs: []string{"o1"}},
		backtest.Event{Type: event.Conversion, Name: "Order Cancelled", ObjectIDs: []string{"o1"}},
		backtest.Event{Type: event.View, Name: "Home", ObjectIDs: []string{"elsewhere"}},
	)
	got, err := Guess(l)
	must.Succeed(t, err)
	// All objects have one kind, and no two one name: neither tells objects apart.
	want := strategy.Strategy{
		EventsScoring: []strategy.EventScore{
			{EventName: "Seen", EventType: event.View, Score: 5}, {EventName: "Clicked", EventType: event.Click, Score: 10},
			{EventName: "Bought", EventType: event.Conversion, Score: 50},
		},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "brand", Score: 50}, {FacetName: "price", Score: 50}},
		PersonalizationImpact: 50,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestGuessRefusesWhatItCannotScore(t *testing.T) {
	var refused *fault.Error
	if _, err := Guess(guessLog(t, backtest.Event{Type: event.View, Name: "Home", ObjectIDs: []string{"elsewhere"}})); !errors.As(err, &refused) {
		t.Errorf("error of a log without known objects = %v", err)
	}
	alone, err := backtest.NewLog("p", []backtest.Object{{ID: "a", Filters: []event.Filter{{Facet: "name", Value: "A"}}}})
	must.Succeed(t, err)
	alone.Add(backtest.Event{User: "u", Type: event.View, Name: "Seen", Index: "p", ObjectIDs: []string{"a"}})
	if _, err := Guess(alone); !errors.As(err, &refused) {
		t.Errorf("error of objects without a shared value = %v", err)
	}
}
