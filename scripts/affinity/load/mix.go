package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
)

// mix makes the events of a run: types and names that a strategy scores, and
// filters of the facets that it scores. Events carry filters, so that they count
// without a catalog.
type mix struct {
	index   string
	kinds   []kind
	filters [][]string // one set per object
}

type kind struct{ typ, name string }

// newMix takes the products of the simulated shop. Each has its own values in the
// facets that the shop knows, and one of fifty values in others.
func newMix(s api.Strategy, index string) *mix {
	m := &mix{index: index}
	for _, e := range s.EventsScoring {
		m.kinds = append(m.kinds, kind{string(e.EventType), e.EventName})
	}
	if len(m.kinds) == 0 {
		m.kinds = []kind{{api.EventView, "Product Viewed"}, {api.EventClick, "Product Clicked"},
			{api.EventConversion, "Order Completed"}}
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
		if len(filters) == api.MaxEventTargets {
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

// escapeFilter encodes the percent sign: the engine percent-decodes filters.
func escapeFilter(filter string) string { return strings.ReplaceAll(filter, "%", "%25") }

// event is a random event of that user at that time.
func (m *mix) event(user string, at time.Time) api.Event {
	k := m.kinds[rand.IntN(len(m.kinds))]
	return api.Event{EventType: k.typ, EventName: k.name, Index: m.index, UserToken: user, Timestamp: at.UnixMilli(),
		Filters: m.filters[rand.IntN(len(m.filters))]}
}
