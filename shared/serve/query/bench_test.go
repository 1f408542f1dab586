package query_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkPage reads pages of 100 users, with tokens and the exact total, of apps in which
// half of the users hold a filter. Some of the users have changed since the build: a minute ago, so
// that the process knows their profiles from the page before, or in the current slot, so that
// each page asks whether their rows are as they were. The Bigtable is a process of its own. It
// reports the 50th and 99th percentile in ms, and what a page reads:
//
//	go test ./shared/serve/query -run - -bench Page -benchtime 100x
func BenchmarkPage(b *testing.B) {
	for _, users := range []int{10_000, 1_000_000} {
		bigtable := storetest.StartProcess(b)
		s, _ := storetest.OpenAt(b, bigtable.Addr)
		w := newBenchOn(b, s, 30)
		w.buildHalf(users)
		pages := func(b *testing.B) {
			before := bigtable.Counts(b)
			w.pages(b)
			n := bigtable.Counts(b)
			b.ReportMetric(float64(n.Rows-before.Rows)/float64(b.N), "rows")
			b.ReportMetric(float64(n.Cells-before.Cells)/float64(b.N), "cells")
			b.ReportMetric(float64(n.Bytes-before.Bytes)/float64(b.N)/1e3, "kB")
		}
		b.Run(fmt.Sprintf("users=%d/changed=0", users), pages)
		for i := range 1_000 {
			w.see(fmt.Sprintf("user-%07d", i*(users/1_000)), w.clock, "brand:v0")
		}
		b.Run(fmt.Sprintf("users=%d/changed=1000/now", users), pages)
		w.clock += 60_000
		b.Run(fmt.Sprintf("users=%d/changed=1000/before", users), pages)
	}
}

// pages reads the first page over and over, from a second one on.
func (w *bench) pages(b *testing.B) {
	c, app := w.condition(`{"filter":"brand:v0"}`), w.app()
	page, err := w.reader.Page(b.Context(), app, c, 100, "")
	if err != nil {
		b.Fatal(err)
	}
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		start := time.Now()
		if _, err := w.reader.Page(b.Context(), app, c, 100, ""); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "ms-p99")
	b.ReportMetric(float64(page.Total), "users")
}

// buildHalf writes parts of users of whom half hold brand:v0.
func (w *bench) buildHalf(users int) {
	w.Helper()
	app, r := w.app(), rand.New(rand.NewPCG(5, 5))
	p := segment.NewPacker(segment.Scoring{Version: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives}, 0)
	m := segment.Manifest{ScoringVersion: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives,
		Generation: "half", BuiltAt: w.clock, Since: app.Segments.Since.UnixMilli()}
	for i := 0; i < users; {
		id, from := segment.NewPartID(time.UnixMilli(w.clock), uint32(i)), ""
		if i > 0 {
			from = fmt.Sprintf("user-%07d", i)
		}
		p.Begin(id, false, w.clock)
		for ; i < users && !p.Full(); i++ {
			profile := affinity.Profile{StrategyVersion: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives,
				Anchor: w.clock, Known: true, Until: w.clock + day + r.Int64N(80*day), Total: 1}
			value := fmt.Sprint("v", i%2)
			profile.Affinities = []affinity.Affinity{{Facet: "brand", Value: value, Scores: []float64{math.Exp(r.NormFloat64()*1.5 + 3)}}}
			if err := p.Add(fmt.Sprintf("user-%07d", i), profile.AppendBinary(nil)); err != nil {
				w.Fatal(err)
			}
		}
		rows := w.store.Segments.NewSegmentWriter(w.Context(), appID, id)
		part, err := p.Finish(w.clock, rows.Write)
		if err = errors.Join(err, rows.Flush()); err != nil {
			w.Fatal(err)
		}
		part.Cut, part.Generation, part.From = int64(store.CutAt(time.UnixMilli(w.clock))), m.Generation, from
		if i < users {
			part.To = fmt.Sprintf("user-%07d", i)
		}
		m.Parts = append(m.Parts, part)
	}
	w.swap(m)
}

// BenchmarkHistogram reads the scores of 100,000 holders: first by a process that knows
// nothing, then by one that has read their lists.
func BenchmarkHistogram(b *testing.B) {
	w := newBench(b, 30)
	w.buildHalf(200_000)
	c, app := w.condition(`{"filter":"brand:v0"}`), w.app()
	for _, name := range []string{"first", "again"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "first" {
					w.newReader()
				}
				if s, _, err := w.reader.Histogram(b.Context(), app, *c.Filter); err != nil || s.Users != 100_000 {
					b.Fatal(s.Users, err)
				}
			}
		})
	}
}
