package measure

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	seed       = 42
	vocabulary = 100 // values per facet
	zipf       = 1.1 // exponent of their frequencies
	windowDays = 90
	halfLife   = 30 // days
	dayMS      = 24 * 60 * 60 * 1000
	// youngest is the minimum age of an event in ms. Histories leave out younger ones.
	youngest = 2 * 60 * 1000
)

// instant is the clock of every measurement, so that data and scores are the same
// every day.
var instant = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// window holds all events of a synthetic data set.
var window = affinity.Window{Now: instant.UnixMilli(), RetentionDays: windowDays}

// kinds are the types and names of the events. All of them score.
var kinds = []strategy.EventScore{
	{EventType: event.View, EventName: "Product Viewed", Score: 10},
	{EventType: event.View, EventName: "Category Viewed", Score: 3},
	{EventType: event.View, EventName: "Review Read", Score: 12},
	{EventType: event.Click, EventName: "Product Clicked", Score: 20},
	{EventType: event.Click, EventName: "Banner Clicked", Score: 5},
	{EventType: event.Click, EventName: "Filter Clicked", Score: 15},
	{EventType: event.Click, EventName: "Wishlist Clicked", Score: 40},
	{EventType: event.Conversion, EventName: "Product Added to Cart", Score: 60},
	{EventType: event.Conversion, EventName: "Order Completed", Score: 100},
	{EventType: event.Conversion, EventName: "Newsletter Ordered", Score: 8},
}

var facetNames = []string{"brand", "category", "color", "material", "size", "style", "season", "price"}

// shape says how large the data set is.
type shape struct {
	users, events    int // events per user
	facets, selected int // selected: facets that the strategy scores
	values           int // maximum values per facet and event
}

// dataset generates events, independently for each user. The same shape gives the
// same events on every machine. Or it holds those of a real shop.
type dataset struct {
	shape
	name       string // of a real data set
	window     affinity.Window
	strategy   strategy.Strategy
	names      []string   // by facet
	vocabulary [][]string // by facet, then value
	shares     []float64  // of the values, cumulative

	log    []store.LogEvent // of a real data set, by user and then in the order of the log
	firsts []int            // by user: the first of their events in log
}

// entry is one event with its id.
type entry struct {
	affinity.Event
	ID string
}

func newDataset(s shape) *dataset {
	d := &dataset{shape: s, window: window, strategy: strategy.Strategy{EventsScoring: kinds,
		HalfLives: strategy.InDays(halfLife)}}
	for i := range s.facets {
		name := fmt.Sprintf("facet%d", i+1)
		if i < len(facetNames) {
			name = facetNames[i]
		}
		values := make([]string, vocabulary)
		for v := range values {
			values[v] = fmt.Sprintf("%s %02d", name, v)
		}
		d.names, d.vocabulary = append(d.names, name), append(d.vocabulary, values)
	}
	for i := range s.selected { // spread over those that are stored
		d.strategy.FacetsScoring = append(d.strategy.FacetsScoring,
			strategy.FacetScore{FacetName: d.names[i*s.facets/s.selected], Score: 100 - 10*(i%10)})
	}
	total := 0.0
	for v := range vocabulary {
		total += math.Pow(float64(v+1), -zipf)
		d.shares = append(d.shares, total)
	}
	return d
}

// user is the token of a user. Tokens sort by number. The one after the last is a token
// that sorts after all others.
func (d *dataset) user(i int) string {
	switch {
	case d.name == "":
		return fmt.Sprintf("user-%07d", i)
	case i == d.users:
		return "~"
	}
	return d.log[d.firsts[i]].User
}

// total is the number of events of all users.
func (d *dataset) total() int {
	if d.name == "" {
		return d.users * d.shape.events
	}
	return len(d.log)
}

// events returns the events of a user in the order of the log. It reuses into.
func (d *dataset) events(i int, into []entry) []entry {
	if d.name != "" {
		return d.realEvents(i, into)
	}
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	shift := make([]int, d.facets)
	for f := range shift {
		shift[f] = r.IntN(vocabulary)
	}
	into = slices.Grow(into[:0], d.shape.events)[:d.shape.events]
	for j := range into {
		e := &into[j]
		kind := kinds[r.IntN(len(kinds))]
		e.Time, e.Type, e.Name = window.Now-youngest-r.Int64N(windowDays*dayMS-youngest), kind.EventType, kind.EventName
		e.ID = base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, r.Uint64()))
		e.Counts = e.Counts[:0]
		for f := range d.facets {
			e.Counts = d.draw(r, f, shift[f], e.Counts)
		}
	}
	slices.SortFunc(into, func(a, b entry) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) })
	return into
}

// draw adds 1 to d.values different values of a facet.
func (d *dataset) draw(r *rand.Rand, facet, shift int, counts []affinity.Count) []affinity.Count {
	first := len(counts)
	for n := 1 + r.IntN(d.values); n > 0; {
		rank := sort.SearchFloat64s(d.shares, r.Float64()*d.shares[vocabulary-1])
		value := d.vocabulary[facet][(rank+shift)%vocabulary]
		if slices.ContainsFunc(counts[first:], func(c affinity.Count) bool { return c.Value == value }) {
			continue
		}
		counts = append(counts, affinity.Count{Facet: d.names[facet], Value: value, N: 1})
		n--
	}
	return counts
}
