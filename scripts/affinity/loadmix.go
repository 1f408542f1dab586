package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/shop"
)

// loadStrategy is as much of a strategy as load needs.
type loadStrategy struct {
	EventsScoring []struct {
		EventName string `json:"eventName"`
		EventType string `json:"eventType"`
		Score     int    `json:"score"`
	} `json:"eventsScoring"`
	FacetsScoring []struct {
		FacetName string `json:"facetName"`
		Score     int    `json:"score"`
	} `json:"facetsScoring"`
}

// loadEvent is one event by filters, so that it counts without a catalogue.
type loadEvent struct {
	EventType string   `json:"eventType"`
	EventName string   `json:"eventName"`
	Index     string   `json:"index"`
	UserToken string   `json:"userToken"`
	Timestamp int64    `json:"timestamp,omitempty"` // ms
	Filters   []string `json:"filters"`
}

// mix makes the events of a load: the names that a strategy counts, and filters of the facets that it counts.
type mix struct {
	index   string
	kinds   []kind
	filters [][]string // one set an object
}

type kind struct{ typ, name string }

// filtersMost is how many filters an event may carry.
const filtersMost = 20

// newMix takes the simulated shop's products, each with a value of the shop in the facets that the shop has and one of fifty in others.
func newMix(s loadStrategy, index string) *mix {
	m := &mix{index: index}
	for _, e := range s.EventsScoring {
		m.kinds = append(m.kinds, kind{e.EventType, e.EventName})
	}
	if len(m.kinds) == 0 {
		m.kinds = []kind{{"view", "Product Viewed"}, {"click", "Product Clicked"}, {"conversion", "Order Completed"}}
	}
	var facets []string
	for _, f := range s.FacetsScoring {
		facets = append(facets, f.FacetName)
	}
	if len(facets) == 0 {
		facets = []string{"categories.lvl0", "brand", "color"}
	}
	for i, object := range shop.New(1).Objects() {
		m.filters = append(m.filters, filtersOf(object, i, facets))
	}
	return m
}

func filtersOf(object shop.Object, n int, facets []string) []string {
	var filters []string
	for _, facet := range facets {
		if len(filters) == filtersMost {
			break
		}
		value := fmt.Sprintf("value %d", n%50)
		for _, own := range object.Filters() {
			if own.Facet == facet {
				value = own.Value
			}
		}
		filters = append(filters, escapeFilter(facet+":"+value))
	}
	return filters
}

// event is some event of that user at that time.
func (m *mix) event(user string, at time.Time) loadEvent {
	k := m.kinds[rand.IntN(len(m.kinds))]
	return loadEvent{EventType: k.typ, EventName: k.name, Index: m.index, UserToken: user, Timestamp: at.UnixMilli(),
		Filters: m.filters[rand.IntN(len(m.filters))]}
}
