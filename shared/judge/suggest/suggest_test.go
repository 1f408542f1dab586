package suggest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/judge/suggest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// shop returns objects with what shops have: a brand and colours, a name and a link of their own, exact prices, stars, a
// number of sales, one currency, and a label that few share.
func shop(n int) *suggest.Objects {
	var objects suggest.Objects
	for i := range n {
		filters := []event.Filter{
			{Facet: "brand", Value: fmt.Sprint("brand ", i%7)}, {Facet: "colours", Value: "red"},
			{Facet: "currency", Value: "EUR"}, {Facet: "imageUrl", Value: fmt.Sprint("https://shop.example/", i/2)},
			{Facet: "model", Value: fmt.Sprint("m", i)}, {Facet: "name", Value: fmt.Sprint("shoe ", i)}, {Facet: "price.now", Value: fmt.Sprintf("%d.99", i)},
			{Facet: "sold", Value: fmt.Sprint(i * 3)}, {Facet: "stars", Value: fmt.Sprint(i % 5)},
		}
		if i%2 == 0 {
			filters = slices.Insert(filters, 2, event.Filter{Facet: "colours", Value: fmt.Sprint("shade ", i)})
		}
		if i < 6 {
			filters = append(filters, event.Filter{Facet: "story", Value: fmt.Sprint("part ", i%3)})
		}
		objects.Add(filters)
	}
	return &objects
}

func TestFind(t *testing.T) {
	kinds := []suggest.Kind{
		{event.Conversion, "Bought", 20}, {event.View, "Seen", 900}, {event.Click, "Removed From Cart", 30},
		{event.Click, "Clicked", 100}, {event.InstantSearch, "Searched", 5_000}, {event.View, "Never", 0},
	}
	seen := map[string]int64{"brand": 50, "season": 70, "page_title": 60}
	got, err := suggest.Find(kinds, shop(400), seen)
	must.Succeed(t, err)
	want := strategy.Strategy{
		EventsScoring: []strategy.EventScore{
			{EventName: "Seen", EventType: event.View, Score: 5}, {EventName: "Clicked", EventType: event.Click, Score: 10},
			{EventName: "Bought", EventType: event.Conversion, Score: 50},
		},
		FacetsScoring: []strategy.FacetScore{{FacetName: "stars", Score: 50}, {FacetName: "brand", Score: 50},
			{FacetName: "colours", Score: 50}, {FacetName: "price.now", Score: 50}, {FacetName: "season", Score: 50}},
		PersonalizationImpact: 50, Ranking: strategy.SuggestedRanking(),
	}
	if diff := cmp.Diff(want, got.Strategy); diff != "" {
		t.Error(diff)
	}
	must.Succeed(t, got.Strategy.Validate())
	for name, text := range map[string]string{
		"Seen": "900 events: a view says little", "Removed From Cart": "users turn away",
		"brand": "7 values on 400 objects: objects share them", "currency": "it tells no objects apart",
		"imageUrl": "which object it is", "name": "400 values on 400 objects: by its name", "model": "most objects have a value of their own", "sold": "numbers, each of which",
		"price.now": "numbers from 0.99 to 399.99 are a taste only as bands", "story": "3 values on 6 objects of 400",
		"season": "70 events had it", "page_title": "which object it is",
	} {
		i := slices.IndexFunc(got.Reasons, func(r suggest.Reason) bool { return r.Name == name })
		if i < 0 || !strings.Contains(got.Reasons[i].Text, text) {
			t.Errorf("the reason of %s is not %q: %v", name, text, got.Reasons)
		}
	}
	if diff := cmp.Diff(map[string][]float64{"price.now": {0, 80, 150, 250, 300}}, shop(400).Bands()); diff != "" {
		t.Error(diff)
	}
}

// A few objects are enough to begin with.
func TestFindWithThreeObjects(t *testing.T) {
	var objects suggest.Objects
	for i, brand := range []string{"Acme", "Bolt", "Acme"} {
		objects.Add([]event.Filter{{Facet: "brand", Value: brand}, {Facet: "name", Value: fmt.Sprint(i)}})
	}
	got, err := suggest.Find([]suggest.Kind{{event.View, "Viewed", 1}}, &objects, nil)
	must.Succeed(t, err)
	if diff := cmp.Diff([]strategy.FacetScore{{FacetName: "brand", Score: 50}}, got.Strategy.FacetsScoring); diff != "" {
		t.Error(diff)
	}
}

func TestFindRefuses(t *testing.T) {
	views := []suggest.Kind{{event.View, "Viewed", 1}}
	var alone suggest.Objects
	alone.Add([]event.Filter{{Facet: "name", Value: "A"}})
	for name, test := range map[string]struct {
		kinds   []suggest.Kind
		objects *suggest.Objects
		says    string
	}{
		"no events":            {nil, shop(20), "no view, click or conversion has been seen"},
		"events of turning":    {[]suggest.Kind{{event.Conversion, "Refunded", 9}}, shop(20), "no view, click or conversion"},
		"nothing in common":    {views, &alone, "no attribute of the objects has a value"},
		"neither of the parts": {views, &suggest.Objects{}, "no attribute of the objects"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := suggest.Find(test.kinds, test.objects, nil)
			if refused, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(refused.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

// Whatever was seen, a suggestion is a valid strategy whose every score has a reason, bands are
// valid, and the order in which objects and kinds come does not matter.
func TestFindProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "brand", "price", ".name", "0", "-5", "1e3", "NaN", "12.5"}),
			rapid.StringN(1, 200, 400))
		kinds := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) suggest.Kind {
			return suggest.Kind{Type: rapid.SampledFrom([]event.Type{event.View, event.Click, event.Conversion, event.InstantSearch}).Draw(t, "type"),
				Name: rapid.StringMatching(`[ -~]{1,64}`).Draw(t, "name"), Count: rapid.Int64Range(0, 50).Draw(t, "count")}
		}), func(k suggest.Kind) string { return string(k.Type) + k.Name }).Draw(t, "kinds")
		objects := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) event.Filter {
			return event.Filter{Facet: "f" + text.Draw(t, "facet"), Value: text.Draw(t, "value")}
		}), 0, 8, rapid.ID[event.Filter]), 0, 40).Draw(t, "objects")
		var there, back suggest.Objects
		for _, o := range objects {
			slices.SortFunc(o, func(a, b event.Filter) int {
				return strings.Compare(a.Facet+"\x00"+a.Value, b.Facet+"\x00"+b.Value)
			})
			there.Add(o)
		}
		for _, o := range slices.Backward(objects) {
			back.Add(o)
		}
		got, err := suggest.Find(kinds, &there, nil)
		slices.Reverse(kinds)
		other, otherErr := suggest.Find(kinds, &back, nil)
		if diff := cmp.Diff(got, other); diff != "" || (err == nil) != (otherErr == nil) {
			t.Fatalf("in the other order: %s, %v and %v", diff, err, otherErr)
		}
		if err != nil {
			return
		}
		if err := got.Strategy.Validate(); err != nil {
			t.Fatal(err)
		}
		scored := 0
		for _, r := range got.Reasons {
			if r.Score > 0 {
				scored++
			}
			if r.Text == "" {
				t.Fatalf("no reason of %q", r.Name)
			}
		}
		if want := len(got.Strategy.EventsScoring) + len(got.Strategy.FacetsScoring); scored != want {
			t.Fatalf("%d reasons of %d scores", scored, want)
		}
		for facet, limits := range there.Bands() {
			if len(limits) < 2 || !slices.IsSorted(limits) || len(slices.Compact(slices.Clone(limits))) != len(limits) {
				t.Fatalf("bands of %q: %v", facet, limits)
			}
		}
	})
}
