package explain_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/explain"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// now is the T of all scenarios.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()

// TestScenarios runs testdata/reasons. Commands:
//
//	strategy [version=N]    sets the strategy, JSON
//	explain [retention=DAYS] [deleted=AGE] [out=(TYPE,...)] [facet=F value=V] [limit=N] [held=(INDEX,...)]
//
// The input of explain is an event a line, the oldest first: its age (-1h is an
// hour ahead), type, name, filters as facet:value or facet:value*count (· is a space),
// unknown=N or leftOut=N of its objects, and index=I. held are the indexes that hold each
// unknown object now; without it, nobody looks.
func TestScenarios(t *testing.T) {
	var s strategy.Strategy
	version := 0
	datadriven.RunTest(t, "testdata/reasons", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "strategy":
			version = 1
			d.MaybeScanArgs(t, "version", &version)
			var err error
			if s, err = strategy.Decode([]byte(d.Input)); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return ""
		case "explain":
			return explainScenario(t, d, s, version)
		}
		d.Fatalf(t, "unknown command %s", d.Cmd)
		return ""
	})
}

func explainScenario(t *testing.T, d *datadriven.TestData, s strategy.Strategy, version int) string {
	q := explain.Question{Window: affinity.Window{Now: now, RetentionDays: 90}, Strategy: s, StrategyVersion: int64(version), Limit: 1000}
	deleted := ""
	d.MaybeScanArgs(t, "retention", &q.Window.RetentionDays)
	d.MaybeScanArgs(t, "facet", &q.Facet)
	d.MaybeScanArgs(t, "value", &q.Value)
	d.MaybeScanArgs(t, "limit", &q.Limit)
	if d.MaybeScanArgs(t, "deleted", &deleted); deleted != "" {
		q.Window.DeletedUntil = now - age(t, deleted)
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == "out" {
			for _, name := range arg.Vals {
				set, ok := event.TypesOf(event.Type(name))
				if q.OptedOut |= set; !ok {
					d.Fatalf(t, "no type %q", name)
				}
			}
		}
	}
	x := explain.New(q)
	for line := range strings.Lines(d.Input) {
		e, original := parseEvent(t, strings.TrimSpace(line))
		x.Add(explain.Logged{Event: e, Receipt: e.Time, Original: original})
	}
	a := x.Answer(held(d, x))
	checkSum(t, a.Events)
	var b strings.Builder
	fmt.Fprintf(&b, "known %v\n%+v\n", a.Known, a.Events)
	for _, r := range a.Reasons {
		fmt.Fprintf(&b, "- %s\n", r)
	}
	if a.Score != nil {
		fmt.Fprintf(&b, "scores %.6g\n", a.Score.Scores)
	}
	if a.Score != nil {
		for _, c := range a.Score.Contributions {
			printContribution(&b, c)
		}
	}
	return b.String()
}

// held are the indexes that hold the unknown objects now, by a scenario.
func held(d *datadriven.TestData, x *explain.Explanation) map[explain.Object][]string {
	for _, arg := range d.CmdArgs {
		if arg.Key == "held" {
			now := map[explain.Object][]string{}
			for _, o := range x.Unknown() {
				now[o] = slices.DeleteFunc(arg.Vals, func(index string) bool { return index == "none" })
			}
			return now
		}
	}
	return nil
}

func printContribution(b *strings.Builder, c explain.Contribution) {
	if c.Events > 0 {
		fmt.Fprintf(b, "  %d events -%s to -%s: %.6g\n", c.Events, ms(now-c.Time), ms(now-c.Until), c.Scores)
		return
	}
	fmt.Fprintf(b, "  -%s %s %q of %s %q %q %q: (%d x %d = %d) x %d x %.6g = %.6g\n", ms(c.Age), c.Type, c.Name, c.Index, c.ObjectIDs, c.QueryID,
		c.Values, c.EventScore, c.FacetScore, c.Weight(), c.Count, c.Decay, c.Scores)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

var ageForm = regexp.MustCompile(`^(-?\d+)(ms|m|h|d)$`)

func age(t *testing.T, text string) int64 {
	t.Helper()
	m := ageForm.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("age %q", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * map[string]int64{"ms": 1, "m": 60_000, "h": 3_600_000, "d": 24 * 3_600_000}[m[2]]
}

// parseEvent reads a line of a scenario as the log would give it: an event
// without filters has neither type nor name but in its original.
func parseEvent(t *testing.T, line string) (affinity.Event, []byte) {
	t.Helper()
	words := strings.Fields(line)
	e := affinity.Event{Time: now - age(t, words[0]), Type: event.Type(words[1]), Name: words[2]}
	extra, index := "", "products"
	for _, w := range words[3:] {
		if n, ok := strings.CutPrefix(w, "unknown="); ok {
			extra = `,"unknownObjects":` + n
			continue
		}
		if name, ok := strings.CutPrefix(w, "index="); ok {
			index = name
			continue
		}
		if n, ok := strings.CutPrefix(w, "leftOut="); ok {
			extra = `,"leftOutObjects":` + n
			continue
		}
		facet, rest, _ := strings.Cut(w, ":")
		c := affinity.Count{Facet: facet, Value: strings.ReplaceAll(rest, "·", " "), N: 1}
		if star := strings.LastIndexByte(rest, '*'); star > 0 {
			if n, err := strconv.Atoi(rest[star+1:]); err == nil {
				c.Value, c.N = rest[:star], n
			}
		}
		e.Counts = append(e.Counts, c)
	}
	positions := ""
	if e.Type == event.Click {
		positions = `"positions":[1,2],`
	}
	original := fmt.Sprintf(`{"receivedAt":%d,"index":%q%s,"event":{"eventType":%q,"eventName":%q,"index":%q,"userToken":"u",%s`+
		`"timestamp":%d,"objectIDs":["1","2"],"queryID":"43b15df305339e827f0ac0bdc5ebcaa7"}}`, now, index, extra, words[1], words[2], index, positions, e.Time)
	if len(e.Counts) == 0 {
		e.Type, e.Name = "", ""
	}
	return e, []byte(original)
}

// checkSum checks that the counts add up as Events promises.
func checkSum(t interface {
	Helper()
	Errorf(string, ...any)
}, e explain.Events) {
	t.Helper()
	if sum := e.Deleted + e.OutsideWindow + e.Ahead + e.NotInStrategy + e.WithoutFilters + e.Ignored + e.Counted; sum != e.Accepted {
		t.Errorf("%+v adds up to %d", e, sum)
	}
	if e.WithUnknownObjects > e.NotInStrategy+e.WithoutFilters+e.Ignored+e.Counted {
		t.Errorf("%+v: more unknown objects than events in the window", e)
	}
}

// A damaged original is reported, and counts as far as it can be read.
func TestDamagedOriginals(t *testing.T) {
	x := explain.New(explain.Question{Window: affinity.Window{Now: now}, StrategyVersion: 1})
	x.Add(explain.Logged{Event: affinity.Event{Time: now}, Receipt: now, Original: []byte("{")})
	x.Add(explain.Logged{Event: affinity.Event{Time: now}, Receipt: now, Original: []byte("{}")})
	a := x.Answer(nil)
	checkSum(t, a.Events)
	if !a.Known || !slices.Contains(a.Reasons, "the original of 2 events can no longer be read") {
		t.Errorf("%+v", a)
	}
	x.Add(explain.Logged{Event: affinity.Event{Time: now}, Receipt: now, Original: []byte(`{"index":"i","unknownObjects":2,"event":{"eventType":"view"}}`)}) // no receivedAt
	a = x.Answer(nil)
	checkSum(t, a.Events)
	if a.Events.WithUnknownObjects != 1 || !slices.Contains(a.Reasons, "the original of 3 events can no longer be read") {
		t.Errorf("without the time of receipt: %+v", a)
	}
}

// A user whose every event has another name is explained in bounded memory.
func TestManyNamesUseBoundedMemory(t *testing.T) {
	x := explain.New(explain.Question{Window: affinity.Window{Now: now}, StrategyVersion: 1})
	for i := range 10_100 {
		x.Add(explain.Logged{Event: affinity.Event{Time: now, Type: event.View, Name: fmt.Sprint("n", i), Counts: []affinity.Count{{Facet: "f", Value: "v", N: 1}}}, Receipt: now, Original: []byte("{}")})
	}
	reasons := strings.Join(x.Answer(nil).Reasons, "\n")
	if !strings.Contains(reasons, `view "n0" (1), view "n1" (1)`) || !strings.Contains(reasons, "and more than 9995 others") {
		t.Error(reasons)
	}
}
