package affinity_test

import (
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TestScenarios plays the stories in testdata/scenarios. Each has these
// commands, of which the later ones use what the earlier ones left:
//
//	strategy                       lines "event <type> <name> <points>", "facet <name> <weight>",
//	                               "half-lives <days> ...", "alias <facet> <from> <to>"
//	events                         lines "<time> <type> <name> <facet>:<value>[*<count>] ...", one event each
//	profile now= [retention=] [deleted-until=]   computes it, fast and by the formula
//	at now=                        lets the last profile decay
//	scaled                         shows the last profile in Algolia's form
//	stored                         shows the bytes that keep the last profile
func TestScenarios(t *testing.T) {
	affinitytest.Scenarios(t, func() func(*testing.T, *datadriven.TestData) (string, error) { return new(story).play })
}

type story struct {
	strategy strategy.Strategy
	events   []affinity.Event
	profile  affinity.Profile
}

func (st *story) play(t *testing.T, d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "strategy":
		return "ok\n", st.setStrategy(t, d.Input)
	case "events":
		return st.setEvents(t, d.Input)
	case "profile":
		return st.compute(t, d)
	case "at":
		now, err := timeArg(d, "now")
		st.profile = st.profile.At(now)
		holds := "holds\n"
		if max(now, st.profile.Anchor) >= st.profile.Until {
			holds = "out of date: to be recomputed\n"
		}
		return holds + format(st.profile), err
	case "scaled":
		return formatScaled(st.profile.Scaled(st.strategy)), nil
	case "stored":
		p := st.profile
		p.StrategyVersion = 7
		b := p.AppendBinary(nil)
		return fmt.Sprintf("%d bytes\n%s", len(b), hex.Dump(b)), nil
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
}

func (st *story) compute(t *testing.T, d *datadriven.TestData) (string, error) {
	w := affinity.Window{}
	var err error
	if w.Now, err = timeArg(d, "now"); err != nil {
		return "", err
	}
	if w.DeletedUntil, err = timeArg(d, "deleted-until"); err != nil {
		return "", err
	}
	d.MaybeScanArgs(t, "retention", &w.RetentionDays)
	sc := affinity.NewScorer(affinity.Compile(st.strategy), w)
	for _, e := range st.events {
		sc.AddEvent(e)
	}
	st.profile = sc.Profile()
	if fault := differ(st.profile, affinity.Reference(st.events, st.strategy, w), 1e-9); fault != "" {
		return "", fmt.Errorf("Scorer and Reference differ: %s", fault)
	}
	return format(st.profile), nil
}

func (st *story) setStrategy(t *testing.T, input string) error {
	st.strategy = strategy.Strategy{Aliases: map[string]map[string]string{}}
	for line := range strings.Lines(input) {
		words, err := split(line)
		if err != nil {
			return err
		}
		switch words[0] {
		case "event":
			st.strategy.EventsScoring = append(st.strategy.EventsScoring,
				strategy.EventScore{EventType: event.Type(words[1]), EventName: words[2], Score: number(t, words[3])})
		case "facet":
			st.strategy.FacetsScoring = append(st.strategy.FacetsScoring,
				strategy.FacetScore{FacetName: words[1], Score: number(t, words[2])})
		case "half-lives":
			for _, w := range words[1:] {
				st.strategy.HalfLives = append(st.strategy.HalfLives, parseHalfLife(t, w))
			}
		case "alias":
			if st.strategy.Aliases[words[1]] == nil {
				st.strategy.Aliases[words[1]] = map[string]string{}
			}
			st.strategy.Aliases[words[1]][words[2]] = words[3]
		default:
			return fmt.Errorf("unknown strategy line %q", line)
		}
	}
	return st.strategy.Validate()
}

func (st *story) setEvents(t *testing.T, input string) (string, error) {
	st.events = nil
	for line := range strings.Lines(input) {
		words, err := split(line)
		if err != nil {
			return "", err
		}
		at, err := time.Parse(time.RFC3339, words[0])
		if err != nil {
			return "", err
		}
		e := affinity.Event{Time: at.UnixMilli(), Type: event.Type(words[1]), Name: words[2]}
		for _, w := range words[3:] {
			facet, value, _ := strings.Cut(w, ":")
			value, n, many := strings.Cut(value, "*")
			c := affinity.Count{Facet: facet, Value: value, N: 1}
			if many {
				c.N = number(t, n)
			}
			e.Counts = append(e.Counts, c)
		}
		st.events = append(st.events, e)
	}
	return fmt.Sprintf("%d events\n", len(st.events)), nil
}

// split cuts a line at spaces, but not within double quotes.
func split(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma = ' '
	words, err := r.Read()
	return slices.DeleteFunc(words, func(w string) bool { return w == "" }), err
}

func parseHalfLife(t must.Test, s string) strategy.HalfLife {
	h, err := strategy.ParseHalfLife(s)
	must.Succeed(t, err)
	return h
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	must.Succeed(t, err)
	return n
}

// timeArg returns a time argument in ms, 0 if it is not given.
func timeArg(d *datadriven.TestData, key string) (int64, error) {
	if !d.HasArg(key) {
		return 0, nil
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == key && len(arg.Vals) == 1 {
			at, err := time.Parse(time.RFC3339, arg.Vals[0])
			return at.UnixMilli(), err
		}
	}
	return 0, fmt.Errorf("%s needs one time", key)
}

func format(p affinity.Profile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "as of:      %s\n", formatTime(p.Anchor))
	if p.Known {
		fmt.Fprintf(&b, "last event: %s\n", formatTime(p.LastEventAt))
	} else {
		b.WriteString("last event: none, the user is not known\n")
	}
	fmt.Fprintf(&b, "until:      %s\n", formatTime(p.Until))
	for _, a := range p.Affinities {
		fmt.Fprintf(&b, "%s:%s", a.Facet, a.Value)
		for i, score := range a.Scores {
			if len(p.HalfLives) > 0 {
				b.WriteString("  " + p.HalfLives[i].String())
				if _, days := p.HalfLives[i].WholeDays(); days {
					b.WriteByte('d')
				}
			}
			fmt.Fprintf(&b, " %.9g", score)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func formatTime(ms int64) string {
	if ms == math.MaxInt64 {
		return "forever"
	}
	return affinitytest.FormatTime(ms)
}

func formatScaled(scaled map[string]map[string]int) string {
	var b strings.Builder
	for _, facet := range slices.Sorted(maps.Keys(scaled)) {
		for _, value := range slices.Sorted(maps.Keys(scaled[facet])) {
			fmt.Fprintf(&b, "%s:%s %d\n", facet, value, scaled[facet][value])
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
