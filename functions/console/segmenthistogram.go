package console

import (
	"fmt"
	"math"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
)

// histogram shows how the scores of a value are distributed. Its units are those of a drawing of
// 1000 x 100, which the page stretches.
type histogram struct {
	Filter string
	Row    int // of the form that the buttons change; -1: none
	Users  api.UserCount
	Bars   []histogramBar
	Lines  []histogramLine
	Limit  string // where the limit of the condition stands; empty: it has none
	Above  string // the limit
	First  string // the lowest score, and the highest
	Last   string
	Picks  []pick
	Label  string // in words, for those who do not see it
}

type histogramBar struct{ Class, Title, X, Y, W, High string }

// histogramLine is a bucket in the table.
type histogramLine struct {
	From, To string
	Users    int64
	More     int64 // users with this score or a higher one
	Value    string
}

// pick is a limit that a button sets.
type pick struct{ Text, Value, Shown string }

func newHistogram(f askedFilter, got api.SegmentHistogram) histogram {
	h := histogram{Filter: f.Facet + event.Operator + f.Value, Row: f.row, Users: got.Users}
	if got.Quantiles == nil || len(got.Buckets) == 0 {
		return h
	}
	most := int64(1)
	for _, b := range got.Buckets {
		most = max(most, b.Users)
	}
	width, limit := chartWidth/float64(len(got.Buckets)), place(got.Buckets, f.above)
	for i, b := range got.Buckets {
		h.Lines = append(h.Lines, histogramLine{From: score(b.From), To: score(b.To), Users: b.Users,
			Value: plainNumber(b.From)})
		for j := range h.Lines {
			h.Lines[j].More += b.Users
		}
		if b.Users == 0 {
			continue
		}
		high := max(float64(b.Users)/float64(most)*chartHigh, 1)
		title := fmt.Sprintf("%s to %s: %s", score(b.From), score(b.To), plural(b.Users, "user"))
		// A bar that the limit cuts is drawn in two parts.
		from, to := float64(i), float64(i+1)
		for _, piece := range []struct {
			class    string
			from, to float64
		}{{"out", from, min(to, limit)}, {"in", max(from, limit), to}} {
			left, right := max(piece.from, from+0.05), min(piece.to, to-0.05)
			if right > left {
				h.Bars = append(h.Bars, histogramBar{piece.class, title, coordinate(left * width),
					coordinate(chartHigh - high), coordinate((right - left) * width), coordinate(high)})
			}
		}
	}
	h.First, h.Last = score(got.Buckets[0].From), score(got.Buckets[len(got.Buckets)-1].To)
	if f.above > 0 {
		h.Limit, h.Above = coordinate(limit*width), score(f.above)
	}
	q := got.Quantiles
	for _, p := range []struct {
		text  string
		score float64
		least int64 // users for whom it is more than one or two
	}{{"Upper half", q.P50, 20}, {"Top tenth", q.P90, 20}, {"Top hundredth", q.P99, 200}} {
		if got.Users.N >= p.least {
			limit := rounded(p.score)
			h.Picks = append(h.Picks, pick{p.text, plainNumber(limit), score(limit)})
		}
	}
	h.Label = fmt.Sprintf("Histogram of the scores of %s over %s: half have %s or less, nine tenths %s or less, "+
		"all but a hundredth %s or less",
		shown(h.Filter), plural(got.Users.N, "user"), score(q.P50), score(q.P90), score(q.P99))
	return h
}

// place is where a score stands among buckets, in widths of a bucket.
func place(buckets []api.SegmentBucket, at float64) float64 {
	for i, b := range buckets {
		switch {
		case at <= b.From:
			return float64(i)
		case at < b.To && b.From > 0:
			return float64(i) + math.Log(at/b.From)/math.Log(b.To/b.From)
		case at < b.To:
			return float64(i) + at/b.To
		}
	}
	return float64(len(buckets))
}

// rounded is the highest number of three digits that is not above a score, as a limit that people read.
func rounded(x float64) float64 {
	if x <= 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	unit := math.Pow10(int(math.Floor(math.Log10(x))) - 2)
	short, err := strconv.ParseFloat(strconv.FormatFloat(math.Floor(x/unit)*unit, 'g', 3, 64), 64)
	if err != nil || short > x {
		return x
	}
	return short
}
