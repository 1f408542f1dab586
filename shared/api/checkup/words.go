package checkup

import (
	"fmt"
	"strconv"
	"time"
)

// number writes a number with a comma before each three digits.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// count writes a number with its noun.
func count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return number(n) + " " + noun
}

func at(t time.Time) string { return t.UTC().Format("2 January 15:04 MST") }

// ago says how long before now a time is.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	for _, unit := range []struct {
		of   time.Duration
		noun string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int64(d / unit.of); n > 0 {
			return fmt.Sprintf("%s ago", count(n, unit.noun))
		}
	}
	return "just now"
}
