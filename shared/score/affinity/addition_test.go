package affinity_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// logged is an event of a log.
type logged struct {
	id string
	affinity.Event
}

// drawLogged draws events with IDs. Some have equal times.
func drawLogged(t *rapid.T, w affinity.Window) []logged {
	var log []logged
	for i, e := range append(drawEvents(t, w), drawEvents(t, w)...) {
		log = append(log, logged{fmt.Sprintf("id%02d", i), e})
	}
	return log
}

// computed is the base of a log, whose newest events lie in blocks or not.
func computed(log []logged, s strategy.Strategy, c *affinity.Compiled, w affinity.Window, limit int, inBlocks func(int64) bool) affinity.Base {
	sc := affinity.NewScorer(c, w)
	var newest []logged
	for _, e := range log {
		sc.AddEvent(e.Event)
		if s.EventScore(e.Type, e.Name) > 0 && w.Contains(e.Time) {
			newest = append(newest, e)
		}
	}
	slices.SortFunc(newest, newestLogged)
	newest = newest[:min(len(newest), limit)]
	events, ids := make([]affinity.Event, len(newest)), make([]string, len(newest))
	for i, e := range newest {
		events[i] = e.Event
		if !inBlocks(e.Time) {
			ids[i] = e.id
		}
	}
	b := affinity.Base{Profile: sc.Profile()}
	b.Session, b.Counted = affinity.NewBase(c, events, ids, limit)
	return b
}

func newestLogged(a, b logged) int {
	return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.id, a.id))
}

// rounded returns how much later (ms) a profile may be valid than p. If p leaves out values,
// it is valid until a score fades. A relative difference of 1e-9 in the score moves this time
// by 1.5e-9 of the half-life.
func rounded(p affinity.Profile) int64 {
	later := 0.0
	for _, h := range p.HalfLives {
		if p.Truncated() {
			later = max(later, 1+1.5e-9*h.Millis())
		}
	}
	return int64(later)
}

// equalBase says in what a base differs from one that was computed from all events.
func equalBase(got affinity.Base, log []logged, s strategy.Strategy, b affinity.Bounds, w affinity.Window, limit int) string {
	events := make([]affinity.Event, len(log))
	for i, e := range log {
		events[i] = e.Event
	}
	all := affinity.Bounds{}.Reference(events, s, w)
	want := b.Reference(events, s, w)
	l := b.Leeway(got.Profile, all, all)
	if fault := malformed(got.Profile); fault != "" {
		return fault
	}
	p := got.Profile
	if later := rounded(want); p.Until-later > want.Until || p.Until <= p.Anchor {
		return fmt.Sprintf("valid until %d, want at most %d + %d and later than %d", p.Until, want.Until, later, p.Anchor)
	}
	p.Until = want.Until
	if a, b := facts(p), facts(want); a != b {
		return fmt.Sprintf("got  %s\nwant %s", a, b)
	}
	in := scores(p)
	for _, a := range all.Affinities {
		name := a.Facet + ":" + a.Value
		switch got := in[name]; {
		case got == nil && !l.MayMiss(a.Facet, a.Value):
			return name + " is missing"
		case got != nil && apart(got, a.Scores, 1e-9) != "":
			return name + ": " + apart(got, a.Scores, 1e-9)
		case got != nil && !l.MayList(a.Facet, a.Value):
			return name + " is listed"
		}
		delete(in, name)
	}
	for name := range in {
		return name + " is listed, and no event has it"
	}
	slices.SortStableFunc(log, func(a, b logged) int { return -newestLogged(a, b) })
	for i, e := range log {
		events[i] = e.Event
	}
	session := affinity.ReferenceSession(events, s, w).First(limit)
	return gocmp.Diff(session, got.Session, cmpopts.EquateEmpty())
}

// TestAdditionEqualsReference adds the events of a log to a base, some at a time, as time
// passes. Messages come again. Whatever is not refused equals the computation from all
// events.
func TestAdditionEqualsReference(t *testing.T) {
	added, refused := 0, [affinity.LeftOut + 1]int{}
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		bounds := affinity.StandardBounds()
		if rapid.Bool().Draw(t, "bounded") {
			bounds = affinitytest.DrawBounds(t)
		}
		c, limit := affinity.Compile(s).Within(bounds), rapid.SampledFrom([]int{1, 2, 3, affinity.MaxSessionEvents}).Draw(t, "limit")
		rest := drawLogged(t, w)
		n := rapid.IntRange(0, len(rest)).Draw(t, "counted")
		counted, rest := slices.Clone(rest[:n]), slices.Clone(rest[n:])
		folded := drawTime(t, w)
		inBlocks := func(time int64) bool { return time <= folded }
		base := computed(counted, s, c, w, limit, inBlocks)
		for len(rest) > 0 {
			n := rapid.IntRange(1, len(rest)).Draw(t, "arrivals")
			arrived := slices.Clone(rest[:n])
			rest = rest[n:]
			w.Now += rapid.SampledFrom([]int64{0, 0, 1, dayMS / 3, 40 * dayMS}).Draw(t, "passes")
			if len(counted) > 0 {
				again := rapid.SampledFrom(counted).Draw(t, "again")
				if !inBlocks(again.Time) { // else its process uncovers the block, and computes
					arrived = append(arrived, again)
				}
			}
			var arrivals []affinity.Arrival
			for _, e := range arrived {
				if inBlocks(e.Time) && rapid.Bool().Draw(t, "late") {
					continue
				}
				w.Now = max(w.Now, e.Time)
				arrivals = append(arrivals, affinity.Arrival{ID: e.id, Event: e.Event})
				if !slices.ContainsFunc(counted, func(o logged) bool { return o.id == e.id }) {
					counted = append(counted, e)
				}
			}
			next, why := base.Add(c, w, arrivals, affinity.AdditionLimits{Events: limit, Additions: affinity.MaxAdditions})
			if why != affinity.NotRefused {
				refused[why]++
				base = computed(counted, s, c, w, limit, inBlocks)
				continue
			}
			added++
			next.Profile.StrategyVersion = base.Profile.StrategyVersion
			if fault := equalBase(next, counted, s, bounds, w, limit); fault != "" {
				t.Fatal(fault)
			}
			stored := next.Profile.AppendBinary(nil)
			parsed, err := bounds.ParseBase(stored, next.Session.AppendBinary(nil, stored), next.Counted.AppendBinary(nil, stored))
			must.Succeed(t, err)
			if diff := gocmp.Diff(next.Counted, parsed.Counted, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
			base = parsed
		}
	})
	t.Logf("%d additions, refused %v", added, refused)
	if added == 0 {
		t.Error("no addition: the draws test nothing")
	}
}

// additions is the base of some events. It lists two of them.
func additions(t *testing.T, bounds affinity.Bounds, events ...logged) (*affinity.Compiled, affinity.Base, affinity.Window) {
	t.Helper()
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "a", EventType: types[0], Score: 7}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f0", Score: 3}},
		HalfLives:     strategy.InDays(1),
		Aliases:       map[string]map[string]string{"f0": {"Rouge": "Red"}},
	}
	c, w := affinity.Compile(s).Within(bounds), affinity.Window{Now: now, RetentionDays: window}
	return c, computed(events, s, c, w, 2, func(int64) bool { return false }), w
}

var two = affinity.AdditionLimits{Events: 2, Additions: affinity.MaxAdditions}

func red(id string, time int64, value string) logged {
	return logged{id, affinity.Event{Time: time, Type: types[0], Name: "a", Counts: []affinity.Count{{Facet: "f0", Value: value, N: 1}}}}
}

func arrival(e logged) []affinity.Arrival { return []affinity.Arrival{{ID: e.id, Event: e.Event}} }

func TestAdditionIsRefused(t *testing.T) {
	one := affinity.Bounds{FacetValues: 1}
	a, b, d := red("a", now-3000, "Red"), red("b", now-2000, "Red"), red("c", now-1000, "Blue")
	old := red("old", now-window*dayMS+1, "Red")
	other := a
	other.Counts = []affinity.Count{{Facet: "f0", Value: "Rouge", N: 1}}
	for name, test := range map[string]struct {
		bounds  affinity.Bounds
		events  []logged
		passes  int64
		arrives logged
		want    affinity.Refusal
	}{
		"new":                         {events: []logged{a}, arrives: b},
		"counted":                     {events: []logged{a, b}, arrives: a},
		"other filters":               {events: []logged{a}, arrives: other, want: affinity.Unclear},
		"later than the list's reach": {events: []logged{a, b, d}, arrives: red("x", now-1500, "Red")},
		"at its end":                  {events: []logged{a, b, d}, arrives: red("x", b.Time, "Red"), want: affinity.Unclear},
		"counted below its end":       {events: []logged{a, b, d}, arrives: a, want: affinity.Unclear},
		"before the window":           {events: []logged{a}, arrives: red("x", now-window*dayMS, "Red")},
		"ahead":                       {events: []logged{a}, arrives: red("x", now+1, "Red"), want: affinity.Unclear},
		"an event leaves":             {events: []logged{old}, passes: 1, arrives: a, want: affinity.Expired},
		"an event stays":              {events: []logged{old}, arrives: a},
		"value left out":              {bounds: one, events: []logged{a, b, d}, arrives: red("x", now-500, "Blue"), want: affinity.LeftOut},
		"new value":                   {bounds: one, events: []logged{a, b, d}, arrives: red("x", now-500, "Green"), want: affinity.LeftOut},
		"value that is listed":        {bounds: one, events: []logged{a, b, d}, arrives: red("x", now-500, "Red")},
		"alias of it":                 {bounds: one, events: []logged{a, b, d}, arrives: red("x", now-500, "Rouge")},
		"value becomes too many":      {bounds: one, events: []logged{a, b}, arrives: red("x", now-500, "Blue")},
		"value that has faded":        {events: []logged{a}, passes: 80 * dayMS, arrives: red("x", now-500, "Red")},
	} {
		c, base, w := additions(t, test.bounds, test.events...)
		w.Now += test.passes
		if _, why := base.Add(c, w, arrival(test.arrives), two); why != test.want {
			t.Errorf("%s: %v, want %v", name, why, test.want)
		}
	}
}

// A block holds no IDs: an event of the same time may be the one that arrives.
func TestAdditionBesideEventOfBlock(t *testing.T) {
	c, base, w := additions(t, affinity.Bounds{}, red("a", now-1000, "Red"))
	base.Counted.Events[0].ID = ""
	if _, why := base.Add(c, w, arrival(red("a", now-1000, "Red")), two); why != affinity.Unclear {
		t.Errorf("%v, want unclear", why)
	}
	if _, why := base.Add(c, w, arrival(red("b", now-999, "Red")), two); why != affinity.NotRefused {
		t.Errorf("%v of another time", why)
	}
}

// Two contents of one event in a turn: the log holds one of them.
func TestAdditionOfTwoResolutions(t *testing.T) {
	c, base, w := additions(t, affinity.Bounds{})
	first, second := red("a", now-1000, "Red"), red("a", now-1000, "Blue")
	if _, why := base.Add(c, w, append(arrival(first), arrival(second)...), two); why != affinity.Unclear {
		t.Errorf("%v, want unclear", why)
	}
	got, why := base.Add(c, w, append(arrival(first), arrival(first)...), two)
	if why != affinity.NotRefused || len(got.Session.Events) != 1 {
		t.Errorf("%v, %+v, want one event", why, got.Session)
	}
}

// TestRoundingOfAdditions adds one event at a time, until a computation is due.
func TestRoundingOfAdditions(t *testing.T) {
	c, base, w := additions(t, affinity.Bounds{}, red("first", now-dayMS, "Red"))
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "a", EventType: types[0], Score: 7}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f0", Score: 3}}, HalfLives: strategy.InDays(1),
	}
	events := []affinity.Event{red("first", now-dayMS, "Red").Event}
	for i := range affinity.MaxAdditions {
		w.Now += 977_777
		e := red(fmt.Sprint(i), w.Now-int64(i%7), "Red")
		events = append(events, e.Event)
		var why affinity.Refusal
		if base, why = base.Add(c, w, arrival(e), two); why != affinity.NotRefused {
			t.Fatalf("addition %d: %v", i, why)
		}
	}
	want := affinity.Reference(events, s, w)
	if fault := differ(base.Profile, want, 1e-12); fault != "" {
		t.Error(fault)
	}
	if _, why := base.Add(c, w, nil, two); why != affinity.Worn {
		t.Errorf("%v, want a computation after %d additions", why, affinity.MaxAdditions)
	}
}

// A session whose events exceed its bytes stays that of all events.
func TestAdditionToLongSession(t *testing.T) {
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "a", EventType: types[0], Score: 7}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f0", Score: 3}},
	}
	c, w := affinity.Compile(s), affinity.Window{Now: now}
	var log []logged
	for i := range 30 {
		e := red(fmt.Sprintf("id%02d", i), now-1000+int64(i), "Red")
		for j := range 40 {
			e.ObjectIDs = append(e.ObjectIDs, fmt.Sprintf("object number %d of %d", j, i))
		}
		log = append(log, e)
	}
	base := computed(log[:20], s, c, w, affinity.MaxSessionEvents, func(int64) bool { return false })
	for i := 20; i < len(log); i++ {
		var why affinity.Refusal
		if base, why = base.Add(c, w, arrival(log[i]), affinity.AdditionLimits{Events: affinity.MaxSessionEvents, Additions: 20}); why != affinity.NotRefused {
			t.Fatal(why)
		}
		if fault := equalBase(base, slices.Clone(log[:i+1]), s, affinity.StandardBounds(), w, affinity.MaxSessionEvents); fault != "" {
			t.Fatal(fault)
		}
	}
	if len(base.Session.Events) >= len(log) {
		t.Errorf("the session holds all %d events: the test tests nothing", len(log))
	}
}

func TestParseBaseRefusesOthers(t *testing.T) {
	_, base, _ := additions(t, affinity.StandardBounds(), red("a", now-1000, "Red"))
	profile := base.Profile.AppendBinary(nil)
	session, counted := base.Session.AppendBinary(nil, profile), base.Counted.AppendBinary(nil, profile)
	another := base.Profile
	another.Anchor++
	longer := base.Session
	longer.Events = append(slices.Clone(longer.Events), red("b", now-2000, "Red").Event)
	for name, is := range map[string][3][]byte{
		"no profile":           {nil, session, counted},
		"no session":           {profile, nil, counted},
		"no list":              {profile, session, nil},
		"another profile":      {another.AppendBinary(nil), session, counted},
		"list of another one":  {profile, session, base.Counted.AppendBinary(nil, another.AppendBinary(nil))},
		"session is longer":    {profile, longer.AppendBinary(nil, profile), counted},
		"list of other events": {profile, session, affinity.Counted{After: math.MinInt64}.AppendBinary(nil, profile)},
	} {
		if _, err := affinity.StandardBounds().ParseBase(is[0], is[1], is[2]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for i := range counted {
		damaged := slices.Clone(counted)
		damaged[i] ^= 1
		if _, err := affinity.StandardBounds().ParseBase(profile, session, damaged); err == nil {
			t.Errorf("byte %d is damaged: no error", i)
		}
	}
}

func FuzzParseBase(f *testing.F) {
	profile := affinity.Profile{Total: 0, Until: math.MaxInt64}.AppendBinary(nil)
	session := affinity.Session{}.AppendBinary(nil, profile)
	k := affinity.Counted{After: math.MinInt64, Additions: 3, Events: []affinity.CountedEvent{{Time: 9, ID: "a", Print: 7}, {Time: 9, ID: "", Print: 1}, {Time: -4, ID: "b"}}}
	f.Add(k.AppendBinary(nil, profile)[9:])
	f.Fuzz(func(t *testing.T, b []byte) {
		stored := affinity.Counted{}.AppendBinary(nil, profile)[:9]
		stored = sealSession(append(stored, b...))
		base, err := affinity.StandardBounds().ParseBase(profile, session, stored)
		if err != nil {
			return
		}
		again, err := affinity.StandardBounds().ParseBase(profile, session, base.Counted.AppendBinary(nil, profile))
		must.Succeed(t, err)
		if diff := gocmp.Diff(base.Counted, again.Counted, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
