package history_test

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

// The names and draws of package affinitytest, which this package's tests share.
var (
	types        = affinitytest.Types
	eventNames   = affinitytest.EventNames
	facets       = affinitytest.Facets
	values       = affinitytest.Values
	drawStrategy = affinitytest.DrawStrategy
	drawWindow   = affinitytest.DrawWindow
	drawTime     = affinitytest.DrawTime
)

// drawLog draws a user's events, in order.
func drawLog(t *rapid.T, w affinity.Window) []affinity.Event {
	one := rapid.Custom(func(t *rapid.T) affinity.Event {
		e := affinity.Event{Time: drawTime(t, w)}
		drawObjects(t, &e, 3)
		if rapid.IntRange(0, 9).Draw(t, "without counts") == 0 {
			return e
		}
		e.Type, e.Name = rapid.SampledFrom(types).Draw(t, "type"), rapid.SampledFrom(eventNames).Draw(t, "name")
		n := rapid.OneOf(rapid.Just(1), rapid.IntRange(-1, 200), rapid.IntRange(1<<40, math.MaxInt))
		e.Counts = affinitytest.DrawCounts(t, n)
		return e
	})
	events := rapid.SliceOfN(one, 0, 40).Draw(t, "events")
	slices.SortStableFunc(events, byTime)
	return events
}

// drawObjects draws the objects of an event from n of one of n indexes, some of
// them twice.
func drawObjects(t *rapid.T, e *affinity.Event, n int) {
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2, 5}).Draw(t, "objects") {
		e.Index = fmt.Sprint("index", rapid.IntRange(0, n).Draw(t, "index"))
		e.ObjectIDs = append(e.ObjectIDs, rapid.SampledFrom([]string{"", "object", "\x00"}).Draw(t, "prefix")+fmt.Sprint(rapid.IntRange(0, n).Draw(t, "object")))
	}
}

func byTime(a, b affinity.Event) int {
	return history.Pos{Time: a.Time}.Compare(history.Pos{Time: b.Time})
}

// drawWide draws events with more kinds, facets, values and texts than a byte
// can count, but no more than n each.
func drawWide(t *rapid.T, n int) []affinity.Event {
	text := func(kind string, n int) string {
		return fmt.Sprintf("%s%0*d", kind, rapid.SampledFrom([]int{1, 1, 1, 150}).Draw(t, "width"), rapid.IntRange(0, n).Draw(t, kind))
	}
	events := make([]affinity.Event, rapid.IntRange(0, n).Draw(t, "events"))
	at := now
	for i := range events {
		at += rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, dayMS)).Draw(t, "since")
		events[i] = affinity.Event{Time: at, Type: event.View, Name: text("name", n)}
		drawObjects(t, &events[i], n)
		for range rapid.IntRange(0, 4).Draw(t, "counts") {
			c := affinity.Count{Facet: text("facet", 3), Value: text("value", n), N: rapid.SampledFrom([]int{1, 1, 1, 2, 200}).Draw(t, "n")}
			events[i].Counts = append(events[i].Counts, c)
		}
	}
	return events
}

// drawPos draws a place among few, so that places meet.
func drawPos(t *rapid.T, label string) history.Pos {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) history.Pos {
			p := history.Pos{Time: rapid.Int64Range(0, 8).Draw(t, "ms"), ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id")}
			if rapid.Bool().Draw(t, "next") {
				p = p.Next()
			}
			return p
		}),
		rapid.Just(history.End),
	).Draw(t, label)
}

func drawRange(t *rapid.T) history.Range {
	r := history.Range{From: drawPos(t, "from"), To: drawPos(t, "to")}
	switch c := r.From.Compare(r.To); {
	case c > 0:
		r.From, r.To = r.To, r.From
	case c == 0 && r.To == history.End:
		r.From = history.Pos{}
	case c == 0:
		r.To = r.To.Next()
	}
	return r
}

func drawBlock(t *rapid.T) history.Block {
	return history.Block{
		Range:  drawRange(t),
		ID:     history.BlockID{Ticket: rapid.Int64().Draw(t, "ticket"), N: rapid.IntRange(0, math.MaxInt).Draw(t, "n")},
		Newest: rapid.Int64().Draw(t, "newest"),
		Events: rapid.IntRange(0, math.MaxInt).Draw(t, "events"),
		Bytes:  rapid.IntRange(0, math.MaxInt).Draw(t, "bytes"),
	}
}

func drawManifest(t *rapid.T) history.Manifest {
	m := history.Manifest{Version: rapid.Int64().Draw(t, "version"), Complete: rapid.Int64().Draw(t, "complete")}
	if rapid.Bool().Draw(t, "announced") {
		m.Announced = &history.Announcement{Range: drawRange(t), Ticket: rapid.Int64().Draw(t, "ticket")}
	}
	for range rapid.IntRange(0, 6).Draw(t, "blocks") {
		m = m.With(drawBlock(t))
	}
	if n := len(m.Blocks); n > 0 && rapid.Bool().Draw(t, "inline") {
		m.Blocks[rapid.IntRange(0, n-1).Draw(t, "which")].Inline = true
	}
	return m
}
