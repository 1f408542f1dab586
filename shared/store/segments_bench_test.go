package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkSegmentPage reads pages of 100 users, with their tokens and the exact total, of 10,000
// and of 1,000,000 users with 20 affinities each. share:half is held by half of them, and so
// on. It reports how many rows and cells a page reads, and how long the slowest of a hundred
// takes. The million takes two minutes to write: -bench SegmentPage -timeout 20m.
func BenchmarkSegmentPage(b *testing.B) {
	for _, users := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(users, " users"), func(b *testing.B) {
			s := storetest.New(b)
			parts := writeShares(b, s, users)
			for _, share := range []string{"half", "tenth", "thousandth"} {
				for name, above := range map[string]float64{"0": 0, "median": math.Exp(3), "p90": math.Exp(3 + 1.5*1.2816)} {
					b.Run(share+" above "+name, func(b *testing.B) {
						var p page
						var took []time.Duration
						for b.Loop() {
							began := time.Now()
							p = readPage(b, s, parts, share, above)
							took = append(took, time.Since(began))
						}
						slices.Sort(took)
						b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
						b.ReportMetric(float64(p.total), "users")
						b.ReportMetric(float64(p.rows), "rows")
						b.ReportMetric(float64(p.cells), "cells")
						b.ReportMetric(float64(p.bytes)/1e3, "kB")
					})
				}
			}
		})
	}
}

// writeShares writes the parts of users of 20 affinities.
func writeShares(b *testing.B, s *store.Store, users int) []segment.Part {
	b.Helper()
	r, h := rand.New(rand.NewPCG(6, 6)), strategy.InDays(30)
	p := segment.NewPacker(segment.Scoring{RetentionDays: 90, HalfLives: h}, 0)
	var parts []segment.Part
	score := func() []float64 { return []float64{math.Exp(r.NormFloat64()*1.5 + 3)} }
	for i := 0; i < users; {
		id := segment.PartID(len(parts))
		p.Begin(id, false, segmentInstant)
		for ; i < users && !p.Full(); i++ {
			profile := affinity.Profile{RetentionDays: 90, HalfLives: h, Anchor: segmentInstant, Known: true, Until: segmentInstant + r.Int64N(90*segmentDay)}
			for share, of := range map[string]float64{"half": 0.5, "tenth": 0.1, "thousandth": 0.001} {
				if r.Float64() < of {
					profile.Affinities = append(profile.Affinities, affinity.Affinity{Facet: "share", Value: share, Scores: score()})
				}
			}
			for n, v := len(profile.Affinities), r.IntN(100); n < 20; n++ {
				v += 1 + r.IntN(100)
				profile.Affinities = append(profile.Affinities, affinity.Affinity{Facet: "brand", Value: fmt.Sprint(v), Scores: score()})
			}
			profile.Total = 20
			must.Succeed(b, p.Add(fmt.Sprintf("user-%09d", i), profile.AppendBinary(nil)))
		}
		w := s.Segments.NewSegmentWriter(context.Background(), app, id)
		part, err := p.Finish(segmentInstant, w.Write)
		if err = errors.Join(err, w.Flush()); err != nil {
			b.Fatal(err)
		}
		parts = append(parts, part)
	}
	return parts
}

// page is what the read of a page counted.
type page struct{ total, rows, cells, bytes int }

func (p *page) count(cells []segment.Cell) {
	p.rows++
	p.cells += len(cells)
	for _, c := range cells {
		p.bytes += len(c.Value)
	}
}

func readPage(b *testing.B, s *store.Store, parts []segment.Part, share string, above float64) page {
	b.Helper()
	const limit, at = 100, segmentInstant + 1
	c := segment.Condition{Filter: &segment.Filter{Filter: event.Filter{Facet: "share", Value: share}, Above: above}}
	q, err := c.Compile(strategy.Strategy{HalfLives: strategy.InDays(30)})
	must.Succeed(b, err)
	lists, err := s.Segments.ReadSegmentLists(b.Context(), app, store.SegmentList{Term: q.Terms[0], Threshold: q.Lists(0, at), Parts: parts})
	must.Succeed(b, err)
	var p page
	hits := make([][]segment.Hit, len(parts))
	for i, part := range parts {
		cells := lists[part.ID]
		f, err := q.Scan(segment.Input{Part: part, Lists: [][]segment.Cell{cells}}, at, limit)
		must.Succeed(b, err)
		if len(cells) > 0 {
			p.count(cells)
		}
		p.total, hits[i] = p.total+f.Total, f.Hits
	}
	var rows []store.SegmentRow
	for _, u := range segment.Candidates(parts, hits, nil, limit) {
		row := store.SegmentRow{Part: parts[u.Part].ID, Kind: segment.Tokens, N: int(u.Ordinal) / segment.TokensPerRow}
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	tokens, err := s.Segments.ReadSegmentRows(b.Context(), app, rows)
	must.Succeed(b, err)
	for _, cells := range tokens {
		if _, err := segment.ParseTokens(cells[0].Value); err != nil {
			b.Fatal(err)
		}
		p.count(cells)
	}
	return p
}
