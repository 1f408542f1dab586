// Package render writes answers of the engine for people: profiles as bars,
// explanations and previews as tables, jobs as progress, migrations as the next
// step to take. It makes all foreign text safe for a terminal.
//
// It is separate from the commands so that they hold flags and calls only. It
// knows no HTTP and keeps no data.
package render

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// scoreWidth is the width of a column of scores, in characters.
const scoreWidth = 10

// number is a short form of a score: whole if it is whole, else with one decimal,
// with more if it is small.
func number(score float64) string {
	switch {
	case score == math.Trunc(score) && math.Abs(score) < 1e10:
		return strconv.FormatFloat(score, 'f', 0, 64)
	case math.Abs(score) >= 1e9 || math.Abs(score) < 0.01:
		return strconv.FormatFloat(score, 'e', 2, 64)
	case math.Abs(score) < 10:
		return strconv.FormatFloat(score, 'f', 3, 64)
	default:
		return strconv.FormatFloat(score, 'f', 1, 64)
	}
}

// grouped is a count with its digits in groups: 165,474.
func grouped(n int64) string {
	digits := strconv.FormatInt(max(n, 0), 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// rows is a grouped count of rows.
func rows(n int64) string { return plural(n, "row") }

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

// timestamp is a time to the second.
func timestamp(t api.Time) string { return t.UTC().Format(time.RFC3339) }
