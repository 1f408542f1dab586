package apply_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// rich is a catalog in which every object has the same number of filters, of 40
// bytes each. It counts the bytes that it gives away.
type rich struct {
	filters int
	bytes   int
}

func (r *rich) ScanFilters(_ context.Context, _ string, refs []store.ObjectRef, fn func(store.ObjectRef, store.ObjectFilters) error) error {
	for _, ref := range refs {
		f := store.ObjectFilters{Filters: filtersOf(ref.ID, r.filters)}
		r.bytes += 40 * r.filters
		if err := fn(ref, f); err != nil {
			return err
		}
	}
	return nil
}

func (*rich) ScanRecords(context.Context, string, []store.ObjectRef, func(store.ObjectRef, []byte) error) error {
	return errors.New("no object is stale")
}

// countedOf is how many filters an event of 20 such objects counts.
func countedOf(filters int) int {
	one := filtersOf("1", 1)[0]
	bytes := len(one.Facet) + len(one.Value)
	return min(20, event.MaxCounted/filters, event.MaxCountedBytes/(bytes*filters)) * filters
}

func filtersOf(id string, n int) []event.Filter {
	filters := make([]event.Filter, n)
	for i := range filters {
		filters[i] = event.Filter{Facet: "facet", Value: fmt.Sprintf("value %4s of attribute with %9d", id, i)}
	}
	return filters
}

// written counts what an engine is given.
type written struct {
	store  *store.Store
	events map[enrich.Place]int // the number of filters of each
	most   int                  // bytes of counts in one call
}

func (w *written) Apply(_ context.Context, _ config.App, rows []store.LogEvent) (profile.Outcome, error) {
	held := map[*affinity.Count]bool{}
	bytes := 0
	for i := range rows {
		counts := rows[i].Counts
		sum := 0
		for _, c := range counts {
			sum += c.N
		}
		w.events[enrich.PlaceOf(&rows[i])] += sum
		if !held[&counts[0]] {
			held[&counts[0]] = true
			for _, c := range counts {
				bytes += 40 + len(c.Facet) + len(c.Value)
			}
		}
	}
	w.most = max(w.most, bytes)
	return profile.Outcome{Applied: len(rows)}, nil
}

func (w *written) StoreOf(context.Context, config.App, string) (*store.Store, error) {
	return w.store, nil
}

func (*written) Remember(context.Context, config.App, []event.Event) error { return nil }

func (*written) Abandon(context.Context, config.App, []store.LogEvent) error { return nil }

// hostile is the body of n events that each name 20 of so many objects.
func hostile(n, objects int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var body strings.Builder
	body.WriteString(`{"events":[`)
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"u%d","timestamp":%d,"objectIDs":["`,
			i%7, received.UnixMilli()-int64(i))
		for k, id := range random.Perm(objects)[:20] {
			if k > 0 {
				body.WriteString(`","`)
			}
			fmt.Fprint(&body, id)
		}
		body.WriteString(`"]}`)
	}
	body.WriteString(`]}`)
	return []byte(body.String())
}

// hostileEvents is the number of events of a hostile request. 1000 take a minute.
var hostileEvents = flag.Int("hostile", 100, "events of TestHostileRequestIsBounded")

// A request of 240 KB whose events name very many filters is accepted. Ingest gives
// up after MaxCost, process splits it, and the parts carry no filters, so all
// messages together are hardly larger than the request. No delivery holds the rows
// of more than MaxCost, and every event is written once.
func TestHostileRequestIsBounded(t *testing.T) {
	sizes := []int{250, 500, 1000}
	if raced {
		sizes = []int{1000}
		*hostileEvents = min(*hostileEvents, 6)
	}
	for _, filters := range sizes {
		t.Run(fmt.Sprint(filters), func(t *testing.T) {
			h := newHarness(t)
			catalog, engine, n := &rich{filters: filters}, &written{store: h.Store, events: map[enrich.Place]int{}}, *hostileEvents
			enricher := enrich.New(catalog, config.NewCached(h.apps, 0))
			h.Catalog, h.Profiles = enricher, engine
			m := bus.Message{App: appID, ReceivedAt: received.UnixMilli(), Request: 7, Body: hostile(n, 1000)}
			events, err := m.Events()
			h.check(err)
			if _, err := enricher.Resolve(t.Context(), appID, events); !errors.Is(err, enrich.ErrTooMuch) {
				t.Fatalf("ingest resolves the request: %v", err)
			}
			read := catalog.bytes
			if read > enrich.MaxCost {
				t.Errorf("ingest read %d bytes of filters, want at most %d", read, enrich.MaxCost)
			}
			sent, parts := h.deliverAll(m)
			if body := len(m.Body); sent > 2*body+parts*200 {
				t.Errorf("%d messages of %d bytes for a request of %d", parts, sent, body)
			}
			if engine.most > enrich.MaxCost {
				t.Errorf("a delivery held %d bytes of counts, want at most %d", engine.most, enrich.MaxCost)
			}
			if len(engine.events) != n {
				t.Errorf("%d events are written, want %d", len(engine.events), n)
			}
			for at, counted := range engine.events {
				if want := countedOf(filters); counted != want {
					t.Fatalf("event %+v has %d filters, want %d once", at, counted, want)
				}
			}
			t.Logf("%d bytes in %d messages of %d bytes; at most %d bytes of counts at a time; ingest read %d bytes",
				len(m.Body), parts, sent, engine.most, read)
		})
	}
}

// deliverAll delivers a message and the parts that it is split into. It returns the
// bytes and the number of all messages.
func (h *harness) deliverAll(first bus.Message) (bytes, messages int) {
	h.t.Helper()
	for waiting := []bus.Message{first}; len(waiting) > 0; waiting = waiting[1:] {
		p := h.push(waiting[0], 1)
		bytes, messages = bytes+len(p.Message.Data), messages+1
		h.bus.published = nil
		result, err := h.Deliver(h.t.Context(), p)
		h.check(err)
		if split := result.Fate == apply.Split; split != (len(h.bus.published) > 1) || len(h.bus.published) == 1 {
			h.t.Fatalf("result %+v, and %d messages published", result, len(h.bus.published))
		}
		waiting = append(waiting, h.bus.published...)
	}
	return bytes, messages
}

// A message may carry filters that cost more than process holds. Its parts carry the same
// filters.
func TestCostlyFiltersAreSplit(t *testing.T) {
	const n = 100
	accepted := bus.Message{App: appID, ReceivedAt: received.UnixMilli(), Request: 7, Resolved: true, Body: hostile(n, 20)}
	events, err := accepted.Events()
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t)
	known := bus.Objects{}
	var logged []bus.Logged
	for i := range events {
		e := &events[i]
		for _, id := range e.ObjectIDs {
			var list []bus.Filter
			for _, f := range filtersOf(id, 1000) {
				list = append(list, bus.Filter{f.Facet, f.Value})
			}
			known.Put("shoes", id, list)
		}
		logged = append(logged, bus.Logged{User: e.UserToken, Time: e.Time, ID: e.ID(), ReceivedAt: accepted.ReceivedAt, Event: *e})
	}
	h.deliver(accepted) // without filters, so that the re-enrichment has rows to replace
	accepted.Objects = known
	again, err := bus.NewReenriched(appID, now, logged, bus.Resolution{Objects: known})
	h.check(err)
	for name, m := range map[string]bus.Message{"accepted": accepted.Part(events, 0), "reenriched": again} {
		t.Run(name, func(t *testing.T) {
			engine := &written{store: h.Store, events: map[enrich.Place]int{}}
			h.Profiles, h.Catalog = engine, nil
			_, parts := h.deliverAll(m)
			if parts < 3 || engine.most > enrich.MaxCost || len(engine.events) != n {
				t.Errorf("%d messages, %d events, at most %d bytes of counts", parts, len(engine.events), engine.most)
			}
			for at, counted := range engine.events {
				if want := countedOf(1000); counted != want {
					t.Errorf("event %+v has %d filters, want %d once", at, counted, want)
				}
			}
		})
	}
}
