package console

import (
	"errors"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/event"
)

// functions are what templates can call.
var functions = template.FuncMap{
	"asset":      assetPath,
	"num":        number[int64],
	"count":      number[int],
	"score":      score,
	"pct":        percent,
	"shown":      shown,
	"long":       long,
	"ago":        ago,
	"utc":        func(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04:05 MST") },
	"iso":        func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"curl":       curl,
	"spark":      spark,
	"bars":       bars,
	"map":        dictionary,
	"userpath":   func(token string) string { return userPath(token, "") },
	"objectpath": objectPath,
	"scale":      func(share float64) float64 { return 100 * min(max(share, 0), 1) },
	"minus":      func(a, b float64) float64 { return a - b },
	"add":        func(a, b int) int { return a + b },
	"list":       func(all ...string) []string { return all },
	"join":       strings.Join,
	"nobody":     event.NamesNobody,
}

// number writes a whole number with commas.
func number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	sign := ""
	if text[0] == '-' {
		sign, text = "−", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), ",")
}

// score writes a score with as many digits as a person compares.
func score(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "–"
	case a >= 1e15:
		return strconv.FormatFloat(x, 'e', 2, 64)
	case a >= 100 || x == math.Trunc(x):
		return number(int64(math.Round(x)))
	case a >= 1:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 0.001:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'e', 1, 64)
}

// percent writes a share of 1.
func percent(x float64) string {
	if x > 0 && x < 0.01 {
		return "< 1 %"
	}
	return strconv.FormatFloat(100*x, 'f', 0, 64) + " %"
}

// maxShown is how many characters of a text from outside a page shows in a line.
const maxShown = 120

// shown makes a text from outside fit for a line of a page: short, and without characters that
// are invisible or change the direction of others. Templates escape it besides.
func shown(text string) string { return visible(text, maxShown) }

// long is shown for a title, which is read alone.
func long(text string) string { return visible(text, 1000) }

func visible(text string, most int) string {
	var b strings.Builder
	n := 0
	for i, c := range text {
		if n == most {
			fmt.Fprintf(&b, "… (%s more bytes)", number(len(text)-i))
			break
		}
		n++
		switch {
		case c == utf8.RuneError:
			b.WriteRune('\uFFFD')
		case c == ' ' || unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, "\\u%04x", c)
		}
	}
	if n == 0 {
		return "(empty)"
	}
	return b.String()
}

// ago says how long before now an instant was.
func ago(now, at time.Time) string {
	d := now.Sub(at)
	of := func(n float64, unit string) string {
		if n = math.Floor(n); n == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%.0f %ss ago", n, unit)
	}
	switch {
	case at.IsZero():
		return "never"
	case d < -time.Minute:
		return "ahead of the clock"
	case d < 2*time.Second:
		return "now"
	case d < time.Minute:
		return of(d.Seconds(), "second")
	case d < time.Hour:
		return of(d.Minutes(), "minute")
	case d < 48*time.Hour:
		return of(d.Hours(), "hour")
	}
	return of(d.Hours()/24, "day")
}

// curl writes the command that makes a request of a page. The key is not part of a page, so the
// command takes it from the environment.
func curl(url string, c call) string {
	var b strings.Builder
	b.WriteString("curl -sS")
	if c.Method != "GET" {
		b.WriteString(" -X " + c.Method)
	}
	b.WriteString(` -H "X-Algolia-Application-Id: $AFFINITY_APP" -H "X-Algolia-API-Key: $AFFINITY_KEY"`)
	if c.User != "" {
		b.WriteString(" -H " + quoted(userHeader+": "+c.User))
	}
	if c.Body != "" {
		b.WriteString(" -d " + quoted(visibleJSON(clipped(c.Body))))
	}
	b.WriteString(" " + quoted(url+c.Path))
	return b.String()
}

// clipped shortens a body that nobody reads whole.
func clipped(body string) string {
	const most = 2000
	if len(body) <= most {
		return body
	}
	cut := most
	for !utf8.RuneStart(body[cut]) {
		cut--
	}
	return body[:cut] + "…"
}

// quoted quotes a text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// spark draws a line of values, as an SVG of 100 x 24 units.
func spark(values []int64) template.HTML {
	if len(values) < 2 {
		return ""
	}
	most := int64(1)
	for _, v := range values {
		most = max(most, v)
	}
	var points strings.Builder
	for i, v := range values {
		fmt.Fprintf(&points, "%.1f,%.1f ", 1+98*float64(i)/float64(len(values)-1), 22-20*float64(v)/float64(most))
	}
	line := strings.TrimSpace(points.String())
	return template.HTML(`<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><polygon points="1,24 ` +
		line + ` 99,24"/><polyline points="` + line + `"/></svg>`)
}

// bars draws a bar for each value, as an SVG of 100 x 40 units.
func bars(values []int64) template.HTML {
	most := int64(1)
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	b.WriteString(`<svg class="bars" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">`)
	step := 100 / float64(max(len(values), 1))
	for i, v := range values {
		height := 38 * float64(v) / float64(most)
		if v > 0 {
			height = max(height, 0.6) // so that a day with few events is not one without
		}
		fmt.Fprintf(&b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, float64(i)*step, 40-height,
			step*0.8, height)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// dictionary makes a map for a template that takes several values.
func dictionary(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("a key has no value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is no key", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// change writes a ratio minus 1 as a percentage with its sign.
func change(ratio float64) string {
	text := strconv.FormatFloat(math.Abs(100*ratio), 'f', 0, 64) + " %"
	if ratio < 0 {
		return "−" + text
	}
	return "+" + text
}
