package usage_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/must"
)

var seen = usage.Kind{Type: "view", Name: "Seen"}

// named counts one event of a kind with filters of some facets.
func named(c *usage.Counter, app string, kind usage.Kind, facets ...string) {
	c.Named(app, 1, func(int) usage.Kind { return kind }, func(_ int, add func(string)) {
		for _, f := range facets {
			add(f)
		}
	})
}

// An event counts once under its kind and under each facet, in its day.
func TestNamesOfEvents(t *testing.T) {
	tb, c := newTable(), &clock{noon}
	counter := newCounter(tb, c)
	named(counter, "shop", seen, "brand", "brand", "color")
	named(counter, "shop", seen, "brand")
	named(counter, "shop", usage.Kind{}, "brand") // not counted
	named(counter, "zoo", seen)
	must.Succeed(t, counter.Flush(t.Context()))
	named(counter, "shop", usage.Kind{Type: "click", Name: "Seen"}, "brand")
	c.now = noon.Add(12 * time.Hour) // midnight
	named(counter, "shop", seen)
	for range 2 {
		must.Succeed(t, counter.Flush(t.Context()))
	}
	first := day(t, "2026-11-22")
	want := map[string]usage.Names{
		"shop" + first.String(): {
			Events: map[usage.Kind]int64{seen: 2, {Type: "click", Name: "Seen"}: 1}, Facets: map[string]int64{"brand": 3, "color": 1},
		},
		"shop" + (first + 1).String(): {Events: map[usage.Kind]int64{seen: 1}, Facets: map[string]int64{}},
		"zoo" + first.String():        {Events: map[usage.Kind]int64{seen: 1}, Facets: map[string]int64{}},
	}
	if diff := cmp.Diff(want, tb.names, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Random names take no more room than others, in all processes together. What the table
// knew before goes on to count, and nothing is lost.
func TestNamesAreBounded(t *testing.T) {
	tb, c := newTable(), &clock{noon}
	first, second := newCounter(tb, c), newCounter(tb, c)
	const sent = 3 * usage.MaxNames
	for i := range sent {
		named(first, "shop", usage.Kind{Type: "view", Name: fmt.Sprint("junk ", i)}, fmt.Sprint("junk ", i))
		if i == 0 {
			named(first, "shop", seen, "brand")
		}
	}
	must.Succeed(t, first.Flush(t.Context()))
	for range 2 {
		named(second, "shop", usage.Kind{Type: "view", Name: "new"}, "new")
		named(second, "shop", seen, "brand")
		must.Succeed(t, second.Flush(t.Context()))
	}
	got := tb.names["shop"+day(t, "2026-11-22").String()]
	if len(got.Events) != usage.MaxNames || len(got.Facets) != usage.MaxNames || got.Events[seen] != 3 || got.Facets["brand"] != 3 {
		t.Errorf("%d kinds, %d facets, %d and %d of those known before; want %d, %d, 3 and 3", len(got.Events), len(got.Facets),
			got.Events[seen], got.Facets["brand"], usage.MaxNames, usage.MaxNames)
	}
	total := got.Left
	for _, n := range got.Events {
		total += n
	}
	for _, n := range got.Facets {
		total += n
	}
	if want := int64(2 * (sent + 1 + 2*2)); total != want {
		t.Errorf("%d events and facets are counted or left, want %d", total, want)
	}
}

// Each event of a token that names nobody counts under it, and such tokens are bounded as
// other names are.
func TestTokensThatNameNobody(t *testing.T) {
	tb, c := newTable(), &clock{noon}
	counter := newCounter(tb, c)
	counter.Events("shop", 5, func(i int) string { return []string{"undefined", "ann", "undefined", "", "NaN"}[i] })
	named(counter, "shop", seen)
	counter.Events("shop", 1, func(int) string { return "undefined" })
	must.Succeed(t, counter.Flush(t.Context()))
	want := usage.Names{Events: map[usage.Kind]int64{seen: 1}, Nobody: map[string]int64{"undefined": 3, "NaN": 1}}
	at := "shop" + day(t, "2026-11-22").String()
	if diff := cmp.Diff(want, tb.names[at], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const sent = usage.MaxNames + 50
	counter.Events("shop", sent, func(i int) string { return strings.Repeat("0", i+1) })
	must.Succeed(t, counter.Flush(t.Context()))
	if got := tb.names[at]; len(got.Nobody) != usage.MaxNames || got.Left != sent+2-usage.MaxNames {
		t.Errorf("%d tokens and %d left, want %d and %d", len(got.Nobody), got.Left, usage.MaxNames, sent+2-usage.MaxNames)
	}
}

// Names count once, whether a failed write had an effect or not.
func TestFailedFlushesCountNamesOnce(t *testing.T) {
	for _, fail := range []string{"before", "after"} {
		t.Run(fail, func(t *testing.T) {
			tb, c := newTable(), &clock{noon}
			counter := newCounter(tb, c)
			for range 3 {
				tb.fail = fail
				named(counter, "shop", seen, "brand")
				if err := counter.Flush(t.Context()); err == nil {
					t.Fatal("the flush does not fail")
				}
			}
			tb.fail = ""
			must.Succeed(t, counter.Flush(t.Context()))
			want := usage.Names{Events: map[usage.Kind]int64{seen: 3}, Facets: map[string]int64{"brand": 3}}
			if diff := cmp.Diff(want, tb.names["shop"+day(t, "2026-11-22").String()], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkNamed(b *testing.B) {
	counter := usage.NewCounter(newTable(), time.Now, slog.New(slog.DiscardHandler))
	facets := make([]string, 10)
	for i := range facets {
		facets[i] = fmt.Sprint("facet", i)
	}
	kind := func(int) usage.Kind { return seen }
	of := func(_ int, add func(string)) {
		for _, f := range facets {
			add(f)
		}
	}
	b.ReportAllocs()
	for range b.N {
		counter.Named("shop", 1, kind, of)
	}
}
